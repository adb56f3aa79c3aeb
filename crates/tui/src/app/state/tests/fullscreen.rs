//! Fullscreen mode: the screen, keys, and the mouse.

use pinch_llm::message::{AssistantMessage, Block, Message};

use super::*;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::terminal::{Fullscreen, Mouse, MouseKind};

/// A terminal screen with the interface on it.
struct TestScreen {
    app: App,
    size: Size,
    screen: Fullscreen,
    terminal: vt100::Parser,
    now_ms: i64,
}

impl TestScreen {
    fn new(columns: u16, rows: u16, messages: &[Arc<Message>]) -> Self {
        let mut app = app();
        app.transcript.header("pinch 1", "");
        app.transcript.load(messages);
        app.mode_changed(true);
        let size = Size::new(columns, rows);
        let terminal = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        Self { app, size, screen: Fullscreen::new(size), terminal, now_ms: 1_000 }
    }

    /// Draws a frame and returns the contents of the screen.
    fn draw(&mut self) -> String {
        let frame = self.app.view(self.size, true, self.now_ms);
        assert!(frame.live.len() <= self.size.height(), "{} rows", frame.live.len());
        for row in &frame.live {
            assert!(crate::text::row_width(row) <= self.size.width(), "{row}");
        }
        self.terminal.process(&self.screen.draw(&frame.live, frame.cursor));
        self.terminal.screen().contents()
    }

    fn input(&mut self, input: &TerminalInput) -> Vec<Effect> {
        let effects = self.app.input(input, self.size, self.now_ms);
        self.draw();
        effects
    }

    fn write(&mut self, text: &str) {
        for c in text.chars() {
            self.input(&TerminalInput::Key(KeyPress::typed(c)));
        }
    }

    /// Returns the transcript rows with reversed cells, marked by brackets.
    fn reversed(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let mut rows = Vec::new();
        for row in 0..self.size.rows {
            let (mut text, mut is_reversed, mut any) = (String::new(), false, false);
            for column in 0..self.size.columns {
                let Some(cell) = screen.cell(row, column) else { continue };
                if cell.inverse() != is_reversed {
                    text.push(if is_reversed { ']' } else { '[' });
                    is_reversed = !is_reversed;
                    any = true;
                }
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            if any {
                rows.push(text.trim_matches([' ', '│', '┃']).to_owned());
            }
        }
        rows
    }

    fn mouse(&mut self, kind: MouseKind, row: u16, column: u16) -> Vec<Effect> {
        self.input(&TerminalInput::Mouse(Mouse { kind, column, row }))
    }

    /// Returns the row that contains a text, and the column where it begins.
    fn find(&mut self, text: &str) -> (u16, u16) {
        let screen = self.draw();
        let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
        let column = crate::text::width(line.split(text).next().unwrap());
        (row.try_into().unwrap(), column.try_into().unwrap())
    }

    /// Drags from one text to the beginning of another, and returns what is copied.
    fn select(&mut self, from: &str, to: &str) -> String {
        let (from, to) = (self.find(from), self.find(to));
        assert_eq!(self.mouse(MouseKind::Down, from.0, from.1), []);
        assert_eq!(self.mouse(MouseKind::Drag, to.0, to.1), []);
        self.release(to)
    }

    fn release(&mut self, at: (u16, u16)) -> String {
        match &self.mouse(MouseKind::Up, at.0, at.1)[..] {
            [Effect::CopyText(text)] => text.clone(),
            [] => String::new(),
            effects => panic!("{effects:?}"),
        }
    }

    fn press(&mut self, key: &str) -> Vec<Effect> {
        let press = match key.chars().collect::<Vec<_>>()[..] {
            [c] => KeyPress::typed(c),
            _ => KeyPress::of(key.parse().unwrap()),
        };
        self.input(&TerminalInput::Key(press))
    }
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text, 0))
}

fn answer(text: &str) -> Arc<Message> {
    let mut answer = AssistantMessage::pending("a".into(), "p".into(), "m".into(), 0);
    answer.content = vec![Arc::new(Block::text(text))];
    answer.stop_reason = pinch_llm::message::StopReason::Stop;
    Arc::new(Message::Assistant(Arc::new(answer)))
}

fn conversation() -> Vec<Arc<Message>> {
    let turn = |n: usize| {
        let text = format!(
            "Part {n} of the *answer* goes on\n\n- with a list\n- of things that are longer than a narrow screen is"
        );
        [user(&format!("Question {n}?")), answer(&text)]
    };
    (1..=6).flat_map(turn).collect()
}

/// Renders the conversation on screens of both sizes.
fn both(act: impl Fn(&mut TestScreen)) -> String {
    let screens = [(80, 24), (40, 10)].map(|(columns, rows)| {
        let mut screen = TestScreen::new(columns, rows, &conversation());
        screen.draw();
        act(&mut screen);
        format!("{columns}x{rows}\n{}\n", screen.draw())
    });
    screens.join("\n")
}

#[test]
fn a_short_conversation_needs_no_scrollbar() {
    let mut screen = TestScreen::new(80, 24, &conversation()[..2]);
    insta::assert_snapshot!(screen.draw());
    screen.press("pageUp");
    assert!(!screen.app.transcript.is_scrolled());
}

#[test]
fn the_end_of_a_conversation() {
    insta::assert_snapshot!(both(|_| {}));
}

#[test]
fn a_page_above_the_end() {
    insta::assert_snapshot!(both(|screen| {
        screen.press("pageUp");
    }));
}

#[test]
fn the_beginning() {
    insta::assert_snapshot!(both(|screen| {
        screen.press("home");
    }));
}

#[test]
fn keys_scroll_and_escape_returns_to_the_end() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    let end = screen.draw();
    for (up, down) in
        [("pageUp", "pageDown"), ("shift+pageUp", "shift+pageDown"), ("home", "end"), ("ctrl+home", "ctrl+end")]
    {
        screen.press(up);
        assert!(screen.app.transcript.is_scrolled(), "{up}");
        screen.press(down);
        assert_eq!(screen.draw(), end, "{down}");
    }
    screen.press("home");
    assert_eq!(screen.press("escape"), []);
    assert_eq!(screen.draw(), end);
    // While a text is being written, some keys belong to the editor.
    screen.press("x");
    screen.press("home");
    assert!(!screen.app.transcript.is_scrolled());
    screen.press("ctrl+home");
    assert!(screen.app.transcript.is_scrolled());
}

#[test]
fn a_search_that_finds_something() {
    insta::assert_snapshot!(both(|screen| {
        screen.press("ctrl+s");
        screen.write("part 2 of");
        assert_eq!(screen.reversed(), ["[Part 2 of] the answer goes on"]);
    }));
}

#[test]
fn a_search_that_finds_nothing() {
    insta::assert_snapshot!(both(|screen| {
        screen.press("ctrl+s");
        screen.write("Part 2 OF");
    }));
}

#[test]
fn searches_go_from_match_to_match_and_around_the_ends() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    screen.draw();
    screen.press("ctrl+s");
    screen.write("question");
    let mut seen = Vec::new();
    for key in ["enter", "up", "ctrl+s", "up", "up", "up", "down", "down"] {
        seen.push(format!(
            "{}{}",
            screen.reversed().join(""),
            if screen.draw().contains("Continued") { " around" } else { "" }
        ));
        screen.press(key);
    }
    let expected = [6, 5, 4, 3, 2, 1].map(|n| format!("[Question] {n}?"));
    assert_eq!(seen[..6], expected);
    assert_eq!(seen[6..], ["[Question] 6? around", "[Question] 1? around"]);
    assert_eq!(screen.reversed(), ["[Question] 2?"]);
    // The position is kept; the next escape returns to the end.
    assert_eq!(screen.press("escape"), []);
    assert!(screen.reversed().is_empty() && screen.draw().contains("Question 2?"));
    screen.press("escape");
    assert!(screen.draw().contains("Question 6?"));
}

#[test]
fn a_search_in_regular_mode_switches_to_fullscreen_mode() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    screen.app.mode_changed(false);
    assert_eq!(screen.press("ctrl+s"), [Effect::ToggleFullscreen]);
    screen.app.mode_changed(true);
    screen.write("Question 3");
    assert_eq!(screen.reversed(), ["[Question 3]?"]);
    screen.app.mode_changed(false);
    assert!(screen.app.search.is_none());
}

#[test]
fn a_long_search_continues_with_each_frame_while_keys_are_handled() {
    let mut messages: Vec<_> = (0..20_000).map(|n| user(&format!("message {n}"))).collect();
    messages[7] = user("the needle");
    let mut screen = TestScreen::new(80, 24, &messages);
    screen.draw();
    screen.press("ctrl+s");
    screen.app.search_paste("needle");
    let mut n_frames = 0;
    while screen.app.animation(screen.now_ms) == Some(std::time::Duration::ZERO) {
        n_frames += 1;
        assert_eq!(screen.draw().contains("Searching"), screen.app.animation(screen.now_ms).is_some());
    }
    assert!((5..100).contains(&n_frames), "{n_frames}");
    assert_eq!(screen.reversed(), ["the [needle]"]);
    assert_eq!(screen.app.animation(screen.now_ms), None);
}

#[test]
fn screens_of_any_size_are_drawn() {
    for (columns, rows) in [(1, 1), (2, 2), (5, 3), (20, 5), (39, 7), (300, 100)] {
        let mut screen = TestScreen::new(columns, rows, &conversation());
        screen.draw();
        for key in ["pageUp", "home", "pageDown", "end", "ctrl+s", "a", "up", "down"] {
            screen.press(key);
        }
    }
}

#[test]
fn a_mouse_selection_is_copied_across_messages() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    assert_eq!(screen.select("list", "list"), "", "a click selects nothing");
    let expected = "with a list\n- of things that are longer than a narrow screen is\n\n\nQuestion 6?\n\n\nPa";
    // Dragging upwards is the same, except for the cells at the ends.
    let (from, to) = (screen.find("Part 6"), (screen.find("Question 6").0 - 4, 3));
    screen.mouse(MouseKind::Down, from.0, from.1 + 1);
    screen.mouse(MouseKind::Drag, to.0, to.1);
    assert_eq!(screen.release(to), expected);
    assert_eq!(screen.reversed().first().unwrap(), "- [with a list]");
    assert_eq!(screen.press("escape"), []);
    assert!(screen.reversed().is_empty());
    assert_eq!(screen.select("Question 6", "6?"), "Question 6");
    insta::assert_snapshot!(screen.reversed().join("\n"), @"[Question 6]?");
}

#[test]
fn clicks_select_words_and_lines_and_wrapped_lines_are_copied_unwrapped() {
    let text = "Look into `crates/tui/src/app.rs` and then at the words that follow it here\n\n```\nlet code = 1;\n    indented\n```\n";
    for columns in [100, 40, 23] {
        let mut screen = TestScreen::new(columns, 24, &[user("hi"), answer(text)]);
        let at = screen.find("Look");
        let click = |screen: &mut TestScreen, at: (u16, u16)| {
            screen.mouse(MouseKind::Down, at.0, at.1);
            screen.now_ms += 50;
            screen.release(at)
        };
        assert_eq!(click(&mut screen, at), "");
        assert_eq!(click(&mut screen, at), "Look");
        assert_eq!(click(&mut screen, at), text.lines().next().unwrap().replace('`', ""), "{columns}");
        assert_eq!(click(&mut screen, at), "", "a fourth click begins again");
        screen.now_ms += 1_000;
        let begin = screen.find("let code");
        let end = screen.find("indented");
        screen.mouse(MouseKind::Down, begin.0, 0);
        screen.mouse(MouseKind::Drag, end.0, 22);
        assert_eq!(screen.release(end), "let code = 1;\n    indented");
    }
    let long = "x".repeat(100);
    let mut screen = TestScreen::new(40, 24, &[user("hi"), answer(&long)]);
    let at = screen.find("xxxx");
    screen.mouse(MouseKind::Down, at.0, 0);
    screen.mouse(MouseKind::Drag, at.0 + 2, 38);
    assert_eq!(screen.release(at), long, "a word that is broken stays whole");
}

#[test]
fn bars_that_replace_colours_are_not_copied() {
    let question = "a question that is longer than the screen is wide";
    let mut screen = TestScreen::new(30, 24, &[]);
    let capabilities = TerminalCapabilities::of(&[("NO_COLOR", "1")].into_iter().collect());
    screen.app = App::new(screen.app.options.clone(), &capabilities);
    screen.app.mode_changed(true);
    screen.app.transcript.load(&[user(question), answer("> quoted words that go on in the next row")]);
    assert!(screen.draw().contains("│ a question"), "{}", screen.draw());
    let (from, to) = (screen.find("a question"), screen.find("next row"));
    screen.mouse(MouseKind::Down, from.0, 0);
    screen.mouse(MouseKind::Drag, to.0, 29);
    assert_eq!(screen.release(to), format!("{question}\n\n│ quoted words that go on in the next row"));
}

#[test]
fn holding_the_mouse_beyond_an_edge_scrolls() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    let from = screen.find("Part 6");
    screen.mouse(MouseKind::Down, from.0, from.1);
    screen.mouse(MouseKind::Drag, 0, 0);
    let mut n = 0;
    while screen.app.animation(screen.now_ms).is_some() {
        screen.now_ms += 50;
        screen.draw();
        n += 1;
        assert!(n < 100, "{}", screen.draw());
    }
    assert!(screen.draw().starts_with(" pinch 1"), "{}", screen.draw());
    let copied = screen.release((0, 0));
    assert!(copied.starts_with("pinch 1\n") && copied.ends_with("\nP"), "{copied}");
    assert!(copied.contains("Question 2?\n\n\nPart 2 of the answer"), "{copied}");
    // And back down, onto the editor.
    screen.mouse(MouseKind::Down, 0, 1);
    screen.mouse(MouseKind::Drag, 23, 79);
    for _ in 0..100 {
        screen.now_ms += 50;
        screen.draw();
    }
    assert!(!screen.app.transcript.is_scrolled());
    let all = screen.release((23, 79));
    assert!(all.starts_with("pinch 1") && all.ends_with("longer than a narrow screen is"), "{all}");
}

#[test]
fn a_selection_stays_with_its_text() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    let copied = screen.select("Question 6", "6?");
    assert_eq!(copied, "Question 6");
    screen.mouse(MouseKind::WheelUp, 0, 0);
    assert_eq!(screen.reversed(), ["[Question 6]?"]);
    screen.press("home");
    assert!(screen.reversed().is_empty());
    screen.press("end");
    screen.app.transcript.user("another one");
    screen.draw();
    assert_eq!(screen.reversed(), ["[Question 6]?"]);
    screen.size = Size::new(60, 24);
    screen.screen.resize(screen.size);
    screen.draw();
    assert!(screen.reversed().is_empty(), "a change of width clears the selection");
}

#[test]
fn a_note_about_copied_text_is_shown_for_a_while() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    screen.draw();
    screen.app.note("Copied 12 characters".to_owned(), screen.now_ms);
    assert!(screen.draw().contains("\nCopied 12 characters"));
    assert!(screen.app.animation(screen.now_ms).is_some());
    screen.now_ms += 2_000;
    assert!(!screen.draw().contains("Copied"));
    assert_eq!(screen.app.animation(screen.now_ms), None);
}

#[test]
fn a_click_on_the_note_about_rows_below_scrolls_there() {
    let mut screen = TestScreen::new(80, 24, &conversation());
    let end = screen.draw();
    screen.press("home");
    let at = screen.find("below (escape returns)");
    screen.mouse(MouseKind::Down, at.0, 0);
    assert_eq!(screen.draw(), end);
}

#[test]
fn links_are_clickable_if_the_terminal_supports_them_or_they_are_enabled() {
    let text = "see [the docs](https://a.b/c)";
    for (vars, set, expected) in [
        (&[("TERM", "xterm-kitty")][..], None, true),
        (&[("TERM", "xterm-kitty")], Some(false), false),
        (&[("TERM", "xterm-kitty"), ("TMUX", "x")], None, false),
        (&[("TERM", "xterm-kitty"), ("TMUX", "x")], Some(true), true),
        (&[("TERM", "xterm")], None, false),
    ] {
        let capabilities = TerminalCapabilities::of(&vars.iter().copied().collect());
        let mut screen = TestScreen::new(80, 24, &[]);
        let options = screen.app.options.clone();
        screen.app = App::new(options, &capabilities);
        screen.screen.set_links(screen.app.links());
        let mut interface = pinch_coding_agent::settings::Settings::default().interface;
        interface.terminal.hyperlinks = set;
        screen.app.interface = Some(interface);
        screen.app.use_palette(screen.app.theme.clone());
        screen.app.transcript.load(&[user("hi"), answer(text)]);
        screen.app.mode_changed(true);
        let arguments = serde_json::json!({"path": "src/a b.rs"}).as_object().cloned().unwrap();
        screen.app.transcript.tool_started("1", "read", &arguments, 0);
        let frame = screen.app.view(screen.size, true, 0);
        let bytes = String::from_utf8(screen.screen.draw(&frame.live, None)).unwrap();
        assert_eq!(bytes.contains(";https://a.b/c\u{1b}\\"), expected, "{vars:?} {set:?}");
        assert_eq!(bytes.contains(";file:///work/src/a%20b.rs\u{1b}\\"), expected, "{vars:?} {set:?}");
        assert_eq!(bytes.contains(" (https://a.b/c)"), !expected, "{vars:?} {set:?}");
    }
}
