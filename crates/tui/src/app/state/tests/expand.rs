//! Expanding output from regular mode.

use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResult};

use super::*;
use crate::effect::Effect;
use crate::key::KeyPress;

const SIZE: Size = Size { columns: 60, rows: 14 };

/// Draws a frame and returns its rows: those for the scrollback, and those that are redrawn.
fn draw(app: &mut App) -> (String, String) {
    let is_fullscreen = app.transcript.is_fullscreen();
    let frame = app.view(SIZE, is_fullscreen, 1_000);
    let text = |rows: &[Row]| rows.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect::<String>();
    (text(&frame.finished), text(&frame.live))
}

/// Presses a key, and changes the mode if that is what it does.
fn press(app: &mut App, key: &str) -> Vec<Effect> {
    let effects = app.input(&TerminalInput::Key(KeyPress::of(key.parse().unwrap())), SIZE, 1_000);
    if effects == [Effect::ToggleFullscreen] {
        let is_fullscreen = app.transcript.is_fullscreen();
        app.mode_changed(!is_fullscreen);
    }
    effects
}

fn lines(prefix: &str, n: usize) -> String {
    (1..=n).map(|at| format!("{prefix} {at}\n")).collect()
}

/// Runs a command of the user to its end.
fn run(app: &mut App, output: &str) {
    app.bash_started("make", false);
    let output = output.to_owned();
    let end = UserCommand { output, exit_code: Some(0), cancelled: false, truncated: false, full_output_path: None };
    app.bash_finished(&Ok(end));
}

/// Returns a call of a tool, and its result.
fn call(name: &str, arguments: &serde_json::Value, output: &str) -> [Arc<Message>; 2] {
    let mut answer = AssistantMessage::pending("a".into(), "p".into(), "m".into(), 0);
    let call = ToolCall::new("call_1", name, arguments.as_object().unwrap().clone());
    answer.content = vec![Arc::new(Block::ToolCall(call.clone()))];
    answer.stop_reason = StopReason::ToolUse;
    let result = ToolResult::text(&call, output, false, 0);
    [Arc::new(Message::Assistant(Arc::new(answer))), Arc::new(Message::ToolResult(result))]
}

#[test]
fn output_in_the_scrollback_is_expanded_in_fullscreen_mode_until_the_key_is_pressed_again() {
    let mut app = app();
    app.transcript.load(&call("ls", &serde_json::json!({"path": "src"}), &lines("file", 50)));
    app.transcript.markdown("The end");
    let (finished, _) = draw(&mut app);
    assert!(finished.contains("(30 more lines, ctrl+o to expand)"), "{finished}");
    assert_eq!(press(&mut app, "ctrl+o"), [Effect::ToggleFullscreen]);
    let (_, live) = draw(&mut app);
    assert!(live.contains("ls src") && live.contains("file 5") && live.contains("ctrl+o returns"), "{live}");
    app.input(&TerminalInput::Key(KeyPress::of("end".parse().unwrap())), SIZE, 60_000);
    let (_, live) = draw(&mut app);
    assert!(live.contains("file 50"), "{live}");
    run(&mut app, &lines("new", 30));
    assert_eq!(press(&mut app, "ctrl+o"), [Effect::ToggleFullscreen]);
    let (finished, _) = draw(&mut app);
    assert!(finished.contains("... 10 more lines (ctrl+o to expand)"), "{finished}");
    assert!(!finished.contains("file"), "{finished}");
}

#[test]
fn the_key_of_fullscreen_mode_also_closes_expanded_output() {
    let mut app = app();
    app.transcript.compacted("Everything so far", 12_345);
    assert!(draw(&mut app).0.contains("Compacted from 12k tokens"));
    press(&mut app, "ctrl+o");
    let (_, live) = draw(&mut app);
    assert!(live.contains("Everything so far"), "{live}");
    assert_eq!(press(&mut app, "ctrl+r"), [Effect::ToggleFullscreen]);
    app.transcript.compacted("Everything after that", 23_456);
    let (finished, _) = draw(&mut app);
    assert!(finished.contains("Compacted from 23k tokens") && !finished.contains("Everything"), "{finished}");
}

#[test]
fn the_newest_output_that_was_shortened_is_shown() {
    let mut app = app();
    run(&mut app, &lines("old", 30));
    run(&mut app, &lines("new", 40));
    run(&mut app, "short");
    draw(&mut app);
    press(&mut app, "ctrl+o");
    let (_, live) = draw(&mut app);
    assert!(live.contains(" new 1 ") && live.contains("$ make") && !live.contains("old"), "{live}");
}

#[test]
fn output_that_is_still_on_the_screen_is_expanded_there() {
    let mut app = app();
    run(&mut app, &lines("old", 30));
    draw(&mut app);
    app.bash_started("make", false);
    app.bash_output(&lines("new", 24));
    assert!(draw(&mut app).1.contains("... 4 more lines"));
    assert_eq!(press(&mut app, "ctrl+o"), []);
    assert!(!draw(&mut app).1.contains("more lines"));
    assert_eq!(press(&mut app, "ctrl+o"), []);
    assert!(draw(&mut app).1.contains("... 4 more lines"));
}

#[test]
fn the_key_says_what_it_changed_if_nothing_was_shortened() {
    let mut app = app();
    run(&mut app, "short");
    draw(&mut app);
    for text in ["Output is expanded", "Output is collapsed"] {
        assert_eq!(press(&mut app, "ctrl+o"), []);
        assert!(draw(&mut app).0.contains(text), "{text}");
    }
}

#[test]
fn the_text_of_a_skill_is_folded_to_its_name() {
    let mut app = app();
    let prompt = "<skill name=\"pdf\" location=\"/s/pdf/SKILL.md\">\nRead **all** pages.\n</skill>\n\nSummarize it";
    app.transcript.load(&[Arc::new(Message::user(prompt, 0))]);
    let (finished, _) = draw(&mut app);
    assert!(finished.contains("[skill] pdf (ctrl+o to expand)") && finished.contains("Summarize it"), "{finished}");
    assert!(!finished.contains("<skill") && !finished.contains("pages"), "{finished}");
    press(&mut app, "ctrl+o");
    let (_, live) = draw(&mut app);
    assert!(live.contains("[skill] pdf") && live.contains("Read all pages."), "{live}");
    assert_eq!(prompts_in(&[Arc::new(Message::user(prompt, 0))]), ["/skill:pdf Summarize it"]);
}

#[test]
fn reading_instructions_shows_one_line() {
    for (path, line) in [("skills/pdf/SKILL.md", "[skill] pdf"), ("a/AGENTS.md", "read resource AGENTS.md")] {
        let mut app = app();
        app.transcript.load(&call("read", &serde_json::json!({"path": path}), "# Instructions"));
        let (finished, _) = draw(&mut app);
        assert!(finished.contains(&format!("{line} (ctrl+o to expand)")), "{finished}");
        assert!(!finished.contains("Instructions"), "{finished}");
        press(&mut app, "ctrl+o");
        let (_, live) = draw(&mut app);
        assert!(live.contains("# Instructions") && live.contains(&format!("read {path}")), "{live}");
    }
}
