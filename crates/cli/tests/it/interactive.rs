//! The interactive mode on a terminal: screen contents, and bytes that reach the terminal.
#![cfg(target_os = "linux")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

#[tokio::test]
async fn a_conversation_works_and_can_be_continued_afterwards() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    user.answer("# Fine\n\n- one\n- two\n");
    program.keys("how are you\r").await;
    program.wait_for("- two").await;
    program.wait_until("an idle footer", |screen| !screen.contains("Working")).await;
    let screen = program.contents();
    assert!(screen.contains("how are you") && screen.contains("\n Fine\n"), "{screen}");
    assert!(!screen.contains("# Fine"), "{screen}");
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    let id = text.split("pinch --session ").nth(1).unwrap().split(['\u{1b}', '\r']).next().unwrap();
    user.answer("still fine");
    let continued = user.run(&["--model", "local/m1", "--session", id, "-p", "and now?"]).await;
    assert_eq!(continued.out, "still fine\n");
    let sent = user.server.requests();
    assert!(String::from_utf8_lossy(&sent.last().unwrap().body).contains("how are you"));
}

#[tokio::test]
async fn a_run_is_steered_and_stopped() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    let gate = Gate::new();
    let first = AnthropicResponse::new("msg_1").text("working on it").stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(&gate, [first]));
    program.keys("begin\r").await;
    program.wait_for("Working").await;
    program.keys("turn left\r").await;
    program.wait_for("Steering: turn left").await;
    // Queued messages come back to the editor when the run is stopped.
    program.keys("\u{1b}").await;
    program.wait_for("Operation aborted").await;
    program
        .wait_until("the message in the editor", |screen| screen.contains("turn left") && !screen.contains("Steering:"))
        .await;
    gate.open();
    program.keys("\u{3}").await;
    program.wait_for("/ for commands").await;
    program.keys("\u{3}").await;
    program.wait_for("again to exit").await;
    program.keys("\u{3}").await;
    assert_eq!(program.end().await, Some(0));
    user.server.take_unexpected();
}

#[tokio::test]
async fn dialogs_open_and_close_and_commands_are_completed() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.keys("/mod").await;
    program.wait_for("scoped-models").await;
    program.keys("\t\r").await;
    program.wait_for("use in this session").await;
    program.keys("\u{1b}").await;
    program.wait_until("no dialog", |screen| !screen.contains("use in this session")).await;
    program.keys("/settings\r").await;
    program.wait_for("Auto-compact").await;
    program.keys("\u{1b}").await;
    program.wait_until("no dialog", |screen| !screen.contains("Auto-compact")).await;
    program.keys("/modl\r").await;
    program.wait_for("did you mean /model?").await;
    program.keys("\u{3}").await;
    program.keys("!echo from the shell\r").await;
    program.wait_until("its output", |screen| screen.contains("\n from the shell")).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn the_prompt_is_edited_with_vi_keys_if_enabled() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", r#"{"editorViKeys": true, "editorPaddingX": 2}"#);
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.keys("one two").await;
    program.wait_for("  one two").await;
    program.keys("\u{1b}").await;
    program.wait_for("normal").await;
    program.keys("0dw").await;
    program.wait_until("the second word alone", |screen| screen.contains("\n  two")).await;
    program.keys("\u{3}\u{3}\u{3}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn the_mode_and_the_theme_of_the_command_line_are_used() {
    let user = TestUser::new().await;
    let args = ["--model", "local/m1", "--tui-mode", "fullscreen", "--use-theme", "nowhere"];
    let mut program = TerminalProgram::start(&user, &args).await;
    program.wait_for("There is no theme \"nowhere\"").await;
    assert!(program.screen.screen().alternate_screen());
    user.answer("an answer");
    program.keys("a question\r").await;
    program.wait_for("an answer").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    let after = text.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains("an answer"), "what was said stays in the terminal: {after:?}");
}

#[tokio::test]
async fn a_long_conversation_is_scrolled_searched_and_copied_in_fullscreen_mode() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1", "--tui-mode", "fullscreen"]).await;
    let lines: String = (1..=200).map(|n| format!("- item number {n}\n")).collect();
    user.answer(&lines);
    program.keys("count\r").await;
    program.wait_for("item number 200").await;
    program.wait_until("an idle footer", |screen| !screen.contains("Working")).await;
    program.keys("\u{1b}[5~").await;
    program.wait_for("lines below").await;
    program.keys("\u{13}NUMBER 42").await;
    program.wait_for("No match").await;
    program.keys("\u{15}number 42").await;
    program.wait_for("item number 42 ").await;
    // Press the button on the item, move and release.
    let row = program.contents().lines().position(|line| line.contains("item number 42")).unwrap() + 1;
    program.keys(&format!("\u{1b}[<0;4;{row}M\u{1b}[<32;17;{row}M\u{1b}[<0;17;{row}m")).await;
    program.wait_for("Copied 14 characters").await;
    let bytes = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(bytes.contains("]52;c;aXRlbSBudW1iZXIgNDI="), "{bytes:?}");
    program.keys("\u{1b}").await;
    program.wait_until("no search", |screen| !screen.contains("Search >")).await;
    program.keys("/mouse off\r").await;
    program.wait_for("Mouse support is off").await;
    assert!(program.contents().contains("item number 200"));
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn shortened_output_in_the_scrollback_is_shown_whole_in_fullscreen_mode() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    // Nothing goes into the scrollback before the time for the terminal's colours is over.
    program.keys("!sleep .3; seq 101 160\r").await;
    let has_ended = |screen: &str| screen.contains("40 more lines (ctrl+o to expand)") && !screen.contains("Running");
    program.wait_until("the end of the command", has_ended).await;
    assert!(!program.contents().contains(" 101"), "{}", program.contents());
    program.keys("\u{f}").await;
    program.wait_for("ctrl+o returns").await;
    program.wait_until("the beginning", |screen| screen.contains("$ sleep") && screen.contains(" 101")).await;
    program.keys("\u{f}").await;
    program.wait_until("regular mode", |screen| !screen.contains(" 101") && screen.contains("more lines")).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn foreign_text_never_reaches_the_terminal_as_control_sequences() {
    const HOSTILE: &str = "a\u{1b}]52;c;eA==\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e";
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    user.answer(HOSTILE);
    program.keys("attack\r").await;
    program.wait_for("abcde").await;
    program.keys("\u{4}").await;
    program.end().await;
    let text = String::from_utf8_lossy(&program.bytes);
    assert!(
        !text.contains("]52;") && !text.contains("\u{1b}[2J") && !text.contains(['\u{9b}', '\u{202e}']),
        "{text:?}"
    );
}

#[tokio::test]
async fn the_terminal_is_restored_on_sigterm() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.terminate().await;
    assert_eq!(program.end().await, Some(143));
    let text = String::from_utf8_lossy(&program.bytes);
    assert!(text.contains("\u{1b}[?2004l") && text.contains("\u{1b}[?25h"), "{text:?}");
}

/// Starts the program in a directory with its own prompts.
pub(crate) fn visit_work(user: &TestUser) -> TerminalProgram {
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    TerminalProgram::run_in(user, "work", &args)
}

#[tokio::test]
async fn trust_in_a_project_with_its_own_settings_is_asked_for_once() {
    let user = TestUser::new().await;
    user.write("work/.pinch/prompts/greet.md", "Say hello to everyone");
    let visit = async |answer: &str| {
        let mut program = visit_work(&user);
        program.wait_for("Do you trust").await;
        // Keys typed right after a question appears do not answer it.
        tokio::time::sleep(Duration::from_millis(700)).await;
        program.keys(answer).await;
        program.wait_for("/ for commands").await;
        program
    };
    // Neither dismissing the question nor an answer for one session is stored.
    for answer in ["\u{1b}", "\u{1b}[B\u{1b}[B\r"] {
        let mut program = visit(answer).await;
        program.keys("/greet\r").await;
        program.wait_for("Unknown command").await;
        program.keys("\u{3}\u{4}").await;
        assert_eq!(program.end().await, Some(0));
        assert!(!user.path("agent/trust.json").exists());
    }
    let mut program = visit("\r").await;
    user.answer("hello to all");
    program.keys("/greet\r").await;
    program.wait_for("hello to all").await;
    program.keys("/trust\r").await;
    program.wait_for("work is trusted").await;
    program.keys("\u{1b}[B\r").await;
    program.wait_for("Reloaded").await;
    program.keys("/greet\r").await;
    program.wait_for("Unknown command").await;
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let kept = std::fs::read_to_string(user.path("agent/trust.json")).unwrap();
    assert!(kept.contains("false") && kept.contains("/work"), "{kept}");
    let mut program = visit_work(&user);
    program.wait_for("/ for commands").await;
    assert!(!program.contents().contains("Do you trust"));
}

/// A black PNG of 90 by 54 pixels.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAFoAAAA2AQAAAABv5bOOAAAAD0lEQVR42mNgGAWjYKgCAAK+AAHOg+CiAAAAAElFTkSuQmCC";

/// Starts the program on kitty, for a user with or without a vision model.
async fn on_kitty(model_sees: bool) -> (TestUser, TerminalProgram) {
    let user = TestUser::new().await;
    let input = if model_sees { json!(["text", "image"]) } else { json!(["text"]) };
    let models = json!({"providers": {"local": {
        "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1", "input": input}],
    }}});
    user.write("agent/models.json", &models.to_string());
    let png = STANDARD.decode(PNG).unwrap();
    std::fs::write(user.path("a picture.png"), png).unwrap();
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    let mut program = TerminalProgram::run_on(&user, "", &args, "xterm-kitty");
    program.wait_for("/ for commands").await;
    (user, program)
}

/// Returns what a terminal sends when a file is dropped on it.
fn dropped(user: &TestUser) -> String {
    format!("\u{1b}[200~{}\u{1b}[201~", user.path("a\\ picture.png").display())
}

/// Returns the texts of the user's last message, and the data of its images.
fn last_message(user: &TestUser) -> Vec<String> {
    let asked = user.asked().unwrap();
    let message = asked.as_array().unwrap().iter().rfind(|message| message["role"] == "user").unwrap();
    let part = |part: &Value| part["text"].as_str().or(part["source"]["data"].as_str()).unwrap().to_owned();
    message["content"].as_array().unwrap().iter().map(part).collect()
}

#[tokio::test]
async fn a_dropped_image_is_sent_to_the_model_and_shown() {
    let (user, mut program) = on_kitty(true).await;
    program.keys("what is ").await;
    program.keys(&dropped(&user)).await;
    program.wait_for("what is [image 1: a picture.png]").await;
    let gate = Gate::new();
    let first = AnthropicResponse::new("msg_1").text("a black picture").stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(&gate, [first]));
    program.keys("\r").await;
    program.wait_until("the image", |screen| screen.matches('\u{10eeee}').count() == 30).await;
    program.wait_for("Working").await;
    // The request can arrive after the activity is shown.
    while user.asked().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(last_message(&user), ["what is [image 1: a picture.png]", PNG]);
    // The same image again, while the model is answering.
    program.keys(&format!("and \u{1b}[200~'{}'\u{1b}[201~\r", user.path("a picture.png").display())).await;
    program.wait_for("Steering: and [image 1: a picture.png]").await;
    user.answer("black as well");
    gate.open();
    program.wait_for("black as well").await;
    program.wait_until("both images", |screen| screen.matches('\u{10eeee}').count() == 60).await;
    assert_eq!(last_message(&user), ["and [image 1: a picture.png]", PNG]);
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    let sent = format!("p=1,c=10,r=3,q=2,m=0;{PNG}\u{1b}\\");
    assert!(text.contains(";58:5:1m\u{10eeee}"), "placeholders have the number of their placement");
    assert_eq!((text.matches(&sent).count(), text.matches(PNG).count()), (1, 1), "the data is sent once");
}

#[tokio::test]
async fn images_become_paths_for_models_without_vision_and_other_files_are_text() {
    let (user, mut program) = on_kitty(false).await;
    program.keys(&dropped(&user)).await;
    program.wait_for("m1 does not accept images").await;
    program.wait_for("/a picture.png").await;
    program.keys("\u{3}\u{1b}[200~/nowhere/x.png\u{1b}[201~").await;
    program.wait_for("/nowhere/x.png").await;
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn an_image_that_a_tool_reads_is_shown_as_a_png() {
    const GIF: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    let (user, mut program) = on_kitty(true).await;
    std::fs::write(user.path("dot.gif"), STANDARD.decode(GIF).unwrap()).unwrap();
    let call = AnthropicResponse::new("msg_1").tool_call("toolu_1", "read", &json!({"path": "dot.gif"}).to_string());
    user.server.reply(ServerReply::sse(call.stop("tool_use").concat()));
    user.answer("a dot");
    program.keys("read it\r").await;
    program.wait_until("the image", |screen| screen.contains("a dot") && screen.contains('\u{10eeee}')).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(text.contains("c=1,r=1,q=2,m=0;iVBOR"), "a PNG");
}

#[tokio::test]
async fn prompts_of_earlier_sessions_are_recalled_in_their_project() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    user.answer("fine");
    program.keys("what is a kestrel\r").await;
    program.wait_for("fine").await;
    program.wait_until("an idle footer", |screen| !screen.contains("Working")).await;
    program.keys("!echo falcon\r").await;
    program.wait_for("falcon").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let file = user.path("agent/prompt-history.jsonl");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A new session has the prompts, newest first.
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.wait_for("(local) m1").await;
    program.keys("\u{1b}[A").await;
    program.wait_for("!echo falcon").await;
    program.keys("\u{1b}[A").await;
    program.wait_for("what is a kestrel").await;
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    // Another project has its own history.
    user.write("other/x", "");
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    let mut program = TerminalProgram::run_in(&user, "other", &args);
    program.wait_for("/ for commands").await;
    program.wait_for("(local) m1").await;
    program.keys("\u{1b}[Anothing").await;
    program.wait_for("nothing").await;
    assert!(
        !program.contents().contains("kestrel") && !program.contents().contains("falcon"),
        "{}",
        program.contents()
    );
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    // Nothing is kept if it is disabled.
    let kept = std::fs::read(&file).unwrap();
    let settings = json!({"editor": {"historyFile": false}, "retry": {"enabled": false}});
    user.write("agent/settings.json", &settings.to_string());
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.wait_for("(local) m1").await;
    program.keys("\u{1b}[A!echo owl\r").await;
    program.wait_until("the output", |screen| screen.matches("owl").count() > 1).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), kept);
    // A session that is not stored keeps nothing either.
    user.write("agent/settings.json", &json!({"retry": {"enabled": false}}).to_string());
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1", "--no-session"]).await;
    program.keys("!echo owl\r").await;
    program.wait_until("the output", |screen| screen.matches("owl").count() > 1).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    assert_eq!(std::fs::read(&file).unwrap(), kept);
}

#[tokio::test]
async fn queued_messages_are_edited_and_removed_one_by_one() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    let gate = Gate::new();
    let first = AnthropicResponse::new("msg_1").text("working on it").stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(&gate, [first]));
    program.keys("/queue\r").await;
    program.wait_for("There are no queued messages").await;
    program.keys("begin\r").await;
    program.wait_for("Working").await;
    program.keys("turn left\r").await;
    program.wait_for("Steering: turn left").await;
    program.keys("turn right\r").await;
    program.wait_for("Steering: turn right").await;
    program.keys("go straight\r").await;
    program.wait_for("Steering: go straight").await;
    program.keys("/queue\r").await;
    program.wait_for("Queued messages").await;
    program.keys("\u{1b}[3~").await;
    program.wait_for("Removed a queued message").await;
    // The second of the remaining ones.
    program.keys("\u{1b}[B\r").await;
    program
        .wait_until("the message in the editor", |screen| {
            screen.contains("go straight") && !screen.contains("Steering: go straight") && !screen.contains("turn left")
        })
        .await;
    assert!(program.contents().contains("Steering: turn right"), "{}", program.contents());
    user.answer("turned");
    gate.open();
    program.wait_for("turned").await;
    let bodies: String =
        user.server.requests().iter().map(|sent| String::from_utf8_lossy(&sent.body).into_owned()).collect();
    assert!(bodies.contains("turn right") && !bodies.contains("turn left") && !bodies.contains("go straight"));
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

/// Returns the bytes that reached the terminal, without line ends added by it.
fn written(program: &TerminalProgram) -> String {
    String::from_utf8_lossy(&program.bytes).replace('\r', "")
}

#[tokio::test]
async fn screen_reader_mode_writes_plain_lines() {
    let user = TestUser::new().await;
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1", "--plain"];
    let mut program = TerminalProgram::run_on(&user, "", &args, "dumb");
    program.wait_for("\n> ").await;
    user.answer("# Fine\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n");
    program.keys("how are \\\nyou\n").await;
    program.wait_for("quoted").await;
    program.wait_until("the next prompt", |screen| screen.trim_end().ends_with("\n>")).await;
    let text = written(&program);
    assert!(text.contains("You:\nhow are\nyou\n") || text.contains("You:\nhow are \nyou\n"), "{text}");
    assert!(text.contains("Assistant:\n"), "{text}");
    assert_eq!(text.matches("quoted").count(), 1, "nothing is written twice: {text}");
    let sent = String::from_utf8_lossy(&user.server.requests().last().unwrap().body).into_owned();
    assert!(sent.contains("how are \\nyou") || sent.contains("how are\\nyou"), "{sent}");
    // A dialog: a choice by the start of its name, a line that matches none, and a key by name.
    program.keys("/thinking\n/settings\n").await;
    program.wait_for("Auto-compact").await;
    program.keys("/escape\n").await;
    program.keys("!echo falcon\n").await;
    program.wait_for("Command:").await;
    program.wait_until("the output", |screen| screen.matches("falcon").count() > 1).await;
    // Ctrl+C stops a run.
    let gate = Gate::new();
    let first = AnthropicResponse::new("msg_1").text("working on it").stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(&gate, [first]));
    program.keys("begin\n").await;
    program.wait_until("the second run", |screen| screen.matches("Working").count() > 1).await;
    program.keys("\u{3}").await;
    program.wait_for("Operation aborted").await;
    gate.open();
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = written(&program);
    assert!(text.contains("continue with: pinch --session"), "{text}");
    assert!(!text.contains('\u{1b}'), "no control sequence: {text:?}");
    assert!(!text.chars().any(|c| ('\u{2500}'..='\u{259f}').contains(&c)), "no drawing: {text}");
    user.server.take_unexpected();
}

#[tokio::test]
async fn a_dumb_terminal_is_an_error_with_a_remedy() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::run_on(&user, "", &["--model", "local/m1"], "dumb");
    program.wait_for("hint: use --plain").await;
    assert_eq!(program.end().await, Some(1));
}

#[tokio::test]
async fn a_key_typed_in_screen_reader_mode_is_not_echoed() {
    let user = TestUser::new().await;
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1", "--plain"];
    let mut program = TerminalProgram::run_on(&user, "", &args, "dumb");
    program.wait_for("\n> ").await;
    program.keys("/login local\n").await;
    program.wait_until("the question", |screen| screen.trim_end().ends_with("\n?")).await;
    user.answer("checked");
    program.keys("sk-plain-secret\n").await;
    program.wait_for("Saved").await;
    program.keys("typed again\u{15}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = written(&program);
    assert!(!text.contains("sk-plain-secret") && text.contains("typed again"), "{text}");
    assert!(std::fs::read_to_string(user.path("agent/auth.json")).unwrap().contains("sk-plain-secret"));
}

#[tokio::test]
async fn the_terminal_is_examined_and_the_screen_is_logged() {
    let user = TestUser::new().await;
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    user.answer("an answer to log");
    program.keys("a question\r").await;
    program.wait_until("the answer", |screen| screen.contains("an answer to log") && !screen.contains("Working")).await;
    program.keys("/doctor\r").await;
    program.wait_for("Press keys to see how they arrive").await;
    program.keys("\u{1b}x").await;
    program.wait_for("alt+x").await;
    program.keys("\u{1b}").await;
    program.wait_for("Type a message").await;
    program.keys("/debug\r").await;
    program.wait_for("pinch-debug.log").await;
    let log = std::fs::read_to_string(user.path("agent/pinch-debug.log")).unwrap();
    assert!(log.starts_with("Terminal: 80x24\n") && log.contains("Type a message"), "{log}");
    assert!(log.contains(r#""role":"user""#) && log.contains("an answer to log"), "{log}");
    program.keys("/transcript\r").await;
    program.wait_for_bytes("\u{1b}[?1049h").await;
    program.wait_for("an answer to log").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}
