//! Resizes of a terminal that rewraps its rows, at any time.

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Config;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::vte::ansi::Processor;
use proptest::prelude::*;

use super::*;

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.height()
    }

    fn screen_lines(&self) -> usize {
        self.height()
    }

    fn columns(&self) -> usize {
        self.width()
    }
}

/// A screen on a terminal that rewraps, and what should be on it.
struct Reflowing {
    screen: InlineScreen,
    terminal: Term<VoidListener>,
    parser: Processor,
    size: Size,
    finished: Vec<String>,
    live: Vec<String>,
    cursor: Cursor,
}

impl Reflowing {
    fn new(size: Size) -> Self {
        let config = Config { scrolling_history: 3_000, ..Config::default() };
        Self {
            screen: InlineScreen::new(size, true),
            terminal: Term::new(config, &size, VoidListener),
            parser: Processor::new(),
            size,
            finished: Vec::new(),
            live: Vec::new(),
            cursor: ANCHOR,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.terminal, bytes);
    }

    /// Resizes the terminal, which the screen does not know yet.
    fn resize(&mut self, size: Size) {
        self.terminal.resize(size);
        self.size = size;
    }

    /// Draws a frame: more finished rows, and a live area with rows of these widths, unless it is hidden.
    fn draw(&mut self, n_finished: usize, widths: Option<&[usize]>, cursor: Cursor) {
        let width = self.screen.size().width();
        let finished: Vec<String> = (0..n_finished)
            .map(|n| {
                let n = self.finished.len() + n;
                // Some rows have the full width.
                if n.is_multiple_of(3) { format!("{:=<width$}", format!("row{n}")) } else { format!("row{n}") }
            })
            .collect();
        let height = self.screen.size().height();
        let live: Vec<String> = widths
            .unwrap_or_default()
            .iter()
            .take(height)
            .enumerate()
            .map(|(n, wide)| format!("{:~<wide$}", format!("~{n}"), wide = (*wide).min(width)))
            .collect();
        let rows = |texts: &[String]| texts.iter().map(|text| Row::from(text.clone())).collect::<Vec<_>>();
        let bytes = self.screen.draw(&rows(&finished), &rows(&live), cursor);
        self.write(&bytes);
        self.finished.extend(finished);
        self.cursor = Cursor { row: cursor.row.min(live.len().saturating_sub(1)), ..cursor };
        self.live = live;
    }

    /// Returns the lines of the scrollback and the screen, without blank ones at the end.
    fn lines(&self) -> Vec<String> {
        let grid = self.terminal.grid();
        let mut lines = vec![String::new()];
        for line in grid.topmost_line().0..=grid.bottommost_line().0 {
            let row = &grid[Line(line)];
            lines.last_mut().unwrap().extend((0..grid.columns()).map(|column| row[Column(column)].c));
            if !row[Column(grid.columns() - 1)].flags.contains(Flags::WRAPLINE) {
                lines.push(String::new());
            }
        }
        let mut lines: Vec<String> = lines.into_iter().map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn expected(&self) -> Vec<String> {
        self.finished.iter().chain(&self.live).cloned().collect()
    }

    /// Returns whether a screen of this size still has the whole live area: nothing can erase rows of it from the scrollback. They get there
    /// if they are split into more rows than there are above the live area, even if there are blank rows below.
    fn keeps(&self, size: Size) -> bool {
        let height = |text: &String, width: usize| text.len().max(1).div_ceil(width);
        let above: usize = self.live[..self.cursor.row].iter().map(|text| height(text, self.size.width())).sum();
        let split: usize = self.live.iter().map(|text| height(text, size.width()) - 1).sum();
        let row = usize::try_from(self.terminal.grid().cursor.point.line.0).unwrap().min(size.height() - 1);
        row >= above + split
    }
}

/// The first column of the live area.
const ANCHOR: Cursor = Cursor { row: 0, column: 0, visible: false };

#[derive(Clone, Debug)]
enum ScreenStep {
    Draw {
        finished: usize,
        widths: Vec<usize>,
        cursor: usize,
    },
    /// These sizes, before the first report.
    Resize(Vec<(u16, u16)>),
    /// Finished rows and further sizes while the live area is hidden.
    Storm(Vec<(usize, u16, u16)>),
}

fn steps(longest_resize: usize) -> impl Strategy<Value = Vec<ScreenStep>> {
    let size = (20u16..130, 5u16..40);
    let widths = proptest::collection::vec(prop_oneof![0usize..20, Just(1000), 0usize..130], 1..9);
    let step = prop_oneof![
        2 => (0usize..12, widths, 0usize..8).prop_map(|(finished, widths, cursor)| ScreenStep::Draw { finished, widths, cursor }),
        1 => proptest::collection::vec(size, 1..=longest_resize).prop_map(ScreenStep::Resize),
        1 => proptest::collection::vec((0usize..9, 20u16..130, 5u16..40), 0..20).prop_map(ScreenStep::Storm),
    ];
    proptest::collection::vec(step, 1..12)
}

/// Performs steps, as the loop of the interactive mode does, and checks the terminal after each.
fn check(steps: Vec<ScreenStep>, is_anchored: bool) -> Result<(), TestCaseError> {
    let mut terminal = Reflowing::new(Size::new(80, 24));
    terminal.draw(20, Some(&[80, 3, 80]), ANCHOR);
    for step in steps {
        match step {
            ScreenStep::Draw { finished, widths, cursor } => {
                let row = cursor.min(widths.len() - 1).min(terminal.size.height() - 1);
                let cursor = if is_anchored { ANCHOR } else { Cursor { row, column: 1, visible: true } };
                terminal.draw(finished, Some(&widths), cursor);
            }
            ScreenStep::Resize(sizes) => {
                for (columns, rows) in sizes {
                    let size = Size::new(columns, rows);
                    if terminal.keeps(size) {
                        terminal.resize(size);
                    }
                }
                hide_and_show(&mut terminal, Vec::new());
            }
            ScreenStep::Storm(storm) => hide_and_show(&mut terminal, storm),
        }
        prop_assert_eq!(terminal.lines(), terminal.expected());
    }
    Ok(())
}

/// The first report of a resize hides the live area, which is shown again at the end.
fn hide_and_show(terminal: &mut Reflowing, storm: Vec<(usize, u16, u16)>) {
    if !terminal.screen.is_anchored() {
        terminal.screen.resize(terminal.size);
    }
    let bytes = terminal.screen.hide();
    terminal.write(&bytes);
    let widths: Vec<usize> = terminal.live.iter().map(String::len).collect();
    let cursor = terminal.cursor;
    for (finished, columns, rows) in storm {
        // Rows are laid out for a size that is not the actual one.
        let reported = terminal.size;
        terminal.resize(Size::new(columns, rows));
        terminal.screen.resize(reported);
        terminal.draw(finished, None, ANCHOR);
    }
    terminal.screen.resize(terminal.size);
    terminal.draw(0, Some(&widths), cursor);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each finished row is on the terminal exactly once, in order, and nothing of earlier live areas remains.
    #[test]
    fn resizes_leave_no_row_behind_while_the_conversation_grows(steps in steps(20)) {
        check(steps, true)?;
    }

    /// The same while the cursor is in the editor, if the terminal reports each resize.
    #[test]
    fn resizes_leave_no_row_behind_while_a_text_is_written(steps in steps(1)) {
        check(steps, false)?;
    }
}

#[test]
fn a_lower_terminal_deletes_rows_of_the_live_area_instead_of_scrolling_them_up() {
    let mut terminal = Reflowing::new(Size::new(80, 24));
    terminal.draw(30, Some(&[10; 18]), ANCHOR);
    terminal.resize(Size::new(80, 5));
    hide_and_show(&mut terminal, Vec::new());
    assert_eq!(terminal.lines(), terminal.expected());
    assert_eq!(terminal.live.len(), 5);
}
