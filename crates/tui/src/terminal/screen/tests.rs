mod reflow;

use proptest::prelude::*;

use super::*;

const HIDDEN: Cursor = Cursor { row: 0, column: 0, visible: true };

/// A screen on an emulated terminal.
struct Harness {
    screen: InlineScreen,
    terminal: vt100::Parser,
}

impl Harness {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            screen: InlineScreen::new(Size::new(columns, rows), true),
            terminal: vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 10_000),
        }
    }

    fn draw(&mut self, finished: &[&str], live: &[String], cursor: Cursor) {
        let rows = |texts: &[String]| texts.iter().map(|text| Row::from(text.clone())).collect::<Vec<_>>();
        let finished: Vec<String> = finished.iter().map(|&text| text.to_owned()).collect();
        let bytes = self.screen.draw(&rows(&finished), &rows(live), cursor);
        self.terminal.process(&bytes);
    }

    /// Returns scrollback and screen, without trailing blank rows.
    fn everything(&mut self) -> Vec<String> {
        let (rows, columns) = self.terminal.screen().size();
        let (rows, columns) = (rows.get(), columns.get());
        self.terminal.screen_mut().set_scrollback(usize::MAX);
        let n_back = self.terminal.screen().scrollback();
        let mut all = Vec::new();
        for back in (1..=n_back).rev() {
            self.terminal.screen_mut().set_scrollback(back);
            all.extend(self.terminal.screen().rows(0, columns).next());
        }
        self.terminal.screen_mut().set_scrollback(0);
        all.extend(self.terminal.screen().rows(0, columns).take(usize::from(rows)));
        while all.last().is_some_and(String::is_empty) {
            all.pop();
        }
        all
    }
}

fn texts(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|at| format!("{prefix}{at}")).collect()
}

#[test]
fn finished_rows_are_above_the_live_area_and_the_cursor_is_in_it() {
    let mut harness = Harness::new(20, 6);
    harness.draw(&["one", "two"], &texts("live", 3), Cursor { row: 1, column: 4, visible: true });
    assert_eq!(harness.everything(), ["one", "two", "live0", "live1", "live2"]);
    assert_eq!(harness.terminal.screen().cursor_position(), (3, 4));
    harness.draw(&["three", "four", "five"], &texts("new", 2), HIDDEN);
    assert_eq!(harness.everything(), ["one", "two", "three", "four", "five", "new0", "new1"]);
}

#[test]
fn an_equal_frame_writes_nothing_and_a_changed_row_only_itself() {
    let mut screen = InlineScreen::new(Size::new(20, 6), true);
    let live = [Row::from("a"), Row::from("b")];
    let cursor = Cursor { row: 1, column: 1, visible: true };
    screen.draw(&[], &live, cursor);
    assert_eq!(screen.draw(&[], &live, cursor), b"");
    let changed = screen.draw(&[], &[Row::from("x"), Row::from("b")], cursor);
    assert_eq!(String::from_utf8(changed).unwrap(), "\x1b[?25l\x1b7\x1b[?7l\x1b[1A\r\x1b[2Kx\x1b[?7h\x1b8\x1b[?25h");
}

#[test]
fn a_spinner_above_the_top_of_the_screen_writes_nothing() {
    let mut screen = InlineScreen::new(Size::new(20, 6), true);
    let frame = |spinner: &str, last: &str| -> Vec<Row> {
        let rows = [spinner.to_owned()].into_iter().chain(texts("live", 19)).chain([last.to_owned()]);
        rows.map(Row::from).collect()
    };
    let cursor = Cursor { row: 5, column: 0, visible: true };
    screen.draw(&[], &frame("⠋ Working", "end"), cursor);
    for spinner in ["⠙ Working", "⠹ Working", "⠸ Working"] {
        assert_eq!(screen.draw(&[], &frame(spinner, "end"), cursor), b"");
    }
    let changed = String::from_utf8(screen.draw(&[], &frame("⠼ Working", "END"), cursor)).unwrap();
    assert!(changed.contains("END") && !changed.contains("live") && !changed.contains("Working"), "{changed:?}");
}

#[test]
fn a_frame_is_synchronized_only_if_supported() {
    let mut screen = InlineScreen::new(Size::new(20, 6), true);
    assert!(!String::from_utf8(screen.draw(&[], &[Row::from("a")], HIDDEN)).unwrap().contains("2026"));
    screen.set_synchronized(true);
    let bytes = String::from_utf8(screen.draw(&[], &[Row::from("b")], HIDDEN)).unwrap();
    assert!(bytes.starts_with("\x1b[?2026h") && bytes.ends_with("\x1b[?2026l"), "{bytes:?}");
}

#[test]
fn a_new_height_redraws_only_the_live_area() {
    let mut screen = InlineScreen::new(Size::new(20, 6), true);
    let finished: Vec<Row> = texts("finished", 50).into_iter().map(Row::from).collect();
    let live = [Row::from("live"), Row::from("end")];
    let mut bytes = screen.draw(&finished, &live, HIDDEN);
    for rows in [9, 3, 40, 6] {
        bytes.clear();
        screen.resize(Size::new(20, rows));
        bytes.extend(screen.hide());
        bytes.extend(screen.draw(&[], &live, HIDDEN));
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains("live") && text.contains("end") && !text.contains("finished"), "{rows}: {text:?}");
        assert_eq!(text.matches('\n').count(), 1, "nothing scrolls: {text:?}");
    }
}

/// Returns the control sequences in bytes, without their introducers.
fn sequences(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let sequence = |after: &str| {
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        after[..end].to_owned()
    };
    text.split("\u{1b}[").skip(1).map(sequence).collect()
}

proptest! {
    /// Many terminals lose rows that leave a scroll region, and some the scrollback when the screen is erased.
    #[test]
    fn rows_reach_the_scrollback_by_line_feeds_only(
        steps in prop::collection::vec((0..4usize, 0..30usize, 0..12usize, 5..40u16, 2..20u16), 1..20)
    ) {
        let mut screen = InlineScreen::new(Size::new(20, 6), true);
        let mut bytes = Vec::new();
        let rows = |prefix: &str, n: usize| texts(prefix, n).into_iter().map(Row::from).collect::<Vec<_>>();
        for (kind, n_finished, n_live, columns, height) in steps {
            match kind {
                0 => screen.resize(Size::new(columns, height)),
                1 => bytes.extend(screen.hide()),
                2 => bytes.extend(screen.leave(&rows("r", n_live.min(3)))),
                _ => bytes.extend(screen.draw(&rows("f", n_finished), &rows("l", n_live), HIDDEN)),
            }
        }
        for sequence in sequences(&bytes) {
            let (parameters, last) = sequence.split_at(sequence.len() - 1);
            let is_expected = matches!(last, "A" | "B" | "C" | "m")
                || (parameters, last) == ("2", "K")
                || (parameters, last) == ("", "J")
                || parameters.starts_with('?') && matches!(last, "h" | "l");
            prop_assert!(is_expected, "CSI {sequence}");
        }
    }
}

#[test]
fn leaving_replaces_the_live_area_with_the_last_rows() {
    let mut harness = Harness::new(20, 6);
    harness.draw(&["one"], &texts("live", 4), HIDDEN);
    let bytes = harness.screen.leave(&[Row::from("bye")]);
    harness.terminal.process(&bytes);
    assert_eq!(harness.everything(), ["one", "bye"]);
    assert_eq!(harness.terminal.screen().cursor_position(), (2, 0));
}

#[test]
fn a_live_area_that_is_too_high_loses_its_upper_rows() {
    let mut harness = Harness::new(20, 4);
    harness.draw(&["one"], &texts("live", 9), HIDDEN);
    assert_eq!(harness.everything(), ["one", "live5", "live6", "live7", "live8"]);
}

proptest! {
    /// Whatever the heights of the live area and the number of added rows, scrollback and screen contain every finished row exactly once,
    /// in order, followed by the live area.
    #[test]
    fn scrollback_is_exact_to_the_row(
        rows in 3u16..12,
        steps in proptest::collection::vec((0usize..40, 1usize..12, 0usize..12), 1..40),
    ) {
        let mut harness = Harness::new(16, rows);
        let mut expected: Vec<String> = Vec::new();
        for (step, (n_finished, height, cursor_row)) in steps.into_iter().enumerate() {
            let height = height.min(usize::from(rows));
            let finished: Vec<String> = (0..n_finished).map(|at| format!("r{}", expected.len() + at)).collect();
            // Terminals differ in where the cursor is after rows of the full width.
            let live: Vec<String> = (0..height).map(|at| format!("{:<16}", format!("l{step}.{at}")).replace(' ', ".")).collect();
            let finished_rows: Vec<&str> = finished.iter().map(String::as_str).collect();
            let cursor = Cursor { row: cursor_row, column: 3, visible: true };
            harness.draw(&finished_rows, &live, cursor);
            expected.extend(finished);
            let all: Vec<String> = expected.iter().chain(&live).cloned().collect();
            prop_assert_eq!(harness.everything(), all);
        }
    }
}

/// Returns a row in which an image begins that is drawn over it and the rows below it.
fn image_row(text: &str, number: u8) -> Row {
    use ratatui_core::style::{Color, Modifier, Style};
    use ratatui_core::text::Span;
    let style = Style::new().fg(Color::Rgb(0, 0, number)).add_modifier(Modifier::HIDDEN);
    Row::from(vec![Span::raw(text.to_owned()), Span::styled("", style)])
}

#[test]
fn images_are_drawn_over_rows_on_the_screen_and_the_cursor_is_restored() {
    let mut harness = Harness::new(20, 6);
    harness.draw(&["before"], &texts("live", 2), HIDDEN);
    let blank = Row::default;
    let finished = [image_row("  ", 0), blank(), blank(), image_row("", 1), blank(), Row::from("after")];
    let images = [
        DrawnImage { rows: 3, bytes: b"IMAGE".to_vec() },
        DrawnImage { rows: 2, bytes: b"SECOND\x1b[BIMAGE".to_vec() },
    ];
    let live: Vec<Row> = texts("live", 2).into_iter().map(Row::from).collect();
    let bytes = harness.screen.draw_with_images(&finished, &live, &images, HIDDEN);
    harness.terminal.process(&bytes);
    let expected = ["before", "  IMAGE", "", "", "SECOND", "      IMAGE", "after", "live0", "live1"];
    assert_eq!(harness.everything(), expected);
    assert_eq!(String::from_utf8_lossy(&bytes).matches("IMAGE").count(), 2);
    let again = harness.screen.draw_with_images(&[], &live, &images, HIDDEN);
    assert_eq!(again, b"", "an image is never drawn again");
    harness.draw(&["more"], &texts("live", 1), HIDDEN);
    assert_eq!(harness.everything()[1..], ["  IMAGE", "", "", "SECOND", "      IMAGE", "after", "more", "live0"]);
}

#[test]
fn positions_convert_into_cursors() {
    assert_eq!(Cursor::from((2, 3)), Cursor { row: 2, column: 3, visible: true });
    assert_eq!(Cursor::from(Some((2, 3))), Cursor { row: 2, column: 3, visible: true });
    assert_eq!(Cursor::from(None), Cursor { row: 0, column: 0, visible: false });
}
