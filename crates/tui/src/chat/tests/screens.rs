//! Snapshots of the screen.

use pinch_agent_core::tool::ToolOutput;
use pinch_llm::ids::{ApiId, ModelId, ProviderId};
use pinch_llm::message::{AssistantMessage, Block, StopReason};
use serde_json::json;

use super::*;

/// Renders a conversation on screens of both sizes.
fn both(make: impl Fn(&mut TestChat)) -> String {
    let screens = [(80, 24), (40, 10)].map(|(columns, rows)| {
        let mut chat = TestChat::new();
        make(&mut chat);
        format!("{columns}x{rows}\n{}", chat.screen(columns, rows))
    });
    screens.join("\n")
}

pub(super) fn history() -> Vec<Arc<Message>> {
    let user = |text: &str| Arc::new(Message::user(text, 0));
    let answer = |text: &str| {
        let (api, provider, model) = (ApiId::new("a"), ProviderId::new("p"), ModelId::new("m"));
        let mut answer = AssistantMessage::pending(api, provider, model, 0);
        answer.content = vec![Arc::new(Block::text(text))];
        answer.stop_reason = StopReason::Stop;
        Arc::new(Message::Assistant(Arc::new(answer)))
    };
    vec![user("What is due?"), answer("The **taxes**.")]
}

#[test]
fn an_idle_chat() {
    let screens = both(|_| {});
    insta::assert_snapshot!(screens);
}

#[test]
fn an_answer_that_streams_while_a_message_waits() {
    let screens = both(|chat| {
        chat.say("Tell me about *crates*");
        chat.read("r1");
        chat.event("r1", ChatUpdate::AnswerStarted);
        chat.text("r1", 0, "# Crates\n\nA crate is a unit of ");
        chat.text("r1", 31, "compilation.\n\n- one\n");
        chat.say("and modules?");
        chat.now_ms = 12_400;
    });
    insta::assert_snapshot!(screens);
}

#[test]
fn a_run_with_tools_a_notice_and_an_end() {
    let screens = both(|chat| {
        chat.say("/verbose full");
        chat.say("/usage tokens");
        chat.say("List the files");
        chat.read("r1");
        chat.event("r1", ChatUpdate::Notice("anthropic:work failed (rate_limit), trying anthropic:home".to_owned()));
        chat.event("r1", ChatUpdate::AnswerStarted);
        chat.text("r1", 0, "Let me look.");
        let arguments = Arc::new(json!({"command": "ls"}).as_object().cloned().unwrap());
        let (id, name) = ("c1".to_owned(), "bash".to_owned());
        chat.event("r1", ChatUpdate::ToolStarted { id: id.clone(), name, arguments });
        let output = ToolOutput::text("a.rs\nb.rs");
        chat.event("r1", ChatUpdate::ToolEnded { id, output, duration_ms: Some(20) });
        chat.event("r1", ChatUpdate::AnswerStarted);
        chat.text("r1", 0, "Two files.");
        let reply = |text: &str| ChatReply { text: text.to_owned(), ..ChatReply::default() };
        let media = ChatReply { media: vec!["/tmp/a.png".to_owned()], ..ChatReply::default() };
        let replies = vec![reply("Let me look."), reply("Two files."), media];
        let usage = Some("900 tokens in, 12 out".to_owned());
        chat.event("r1", ChatUpdate::Final { replies, aborted: false, usage });
    });
    insta::assert_snapshot!(screens);
}

#[test]
fn lists_to_choose_from() {
    let screens = both(|chat| chat.press("ctrl+p"));
    insta::assert_snapshot!(screens);
}

#[test]
fn the_question_before_the_first_command_of_the_shell() {
    let screens = both(|chat| chat.say("!ls -l"));
    insta::assert_snapshot!(screens);
}

#[test]
fn the_question_whether_a_command_may_run() {
    let screens = both(|chat| {
        let question = CommandQuestion {
            id: "q1".to_owned(),
            session_key: Some("agent:ops:main".to_owned()),
            command: "for file in *.txt; do\n  mv \"$file\" \"$file.bak\"\ndone".to_owned(),
            cwd: "/home/me/project".to_owned(),
            reason: "The program mv is not on the allow list".to_owned(),
        };
        chat.state.event(ChatEvent::Question(question), 0);
    });
    insta::assert_snapshot!(screens);
}

#[test]
fn the_footer_names_what_differs_from_the_defaults() {
    let facts = ChatSessionInfo {
        label: Some("About\u{1b}[2J taxes".to_owned()),
        thinking: Some(ThinkingLevel::High),
        verbose: Verbosity::On,
        reasoning: ReasoningMode::Stream,
        queue: Some(QueueMode::Steer),
        tokens: Some(100_000),
        ..ChatSessionInfo::default()
    };
    let shown = [120, 80, 40].map(|columns| {
        let backend = FakeBackend { facts: Mutex::new(facts.clone()), ..FakeBackend::default() };
        let mut chat = TestChat::with(backend, |setup| setup.session = Some("Taxes".to_owned()), "");
        let screen = chat.screen(columns, 12);
        screen
            .lines()
            .skip_while(|line| !line.starts_with("agent"))
            .map(|line| format!("{line}|\n"))
            .collect::<String>()
    });
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_history_of_a_session_is_shown_and_can_be_recalled() {
    let backend = FakeBackend { history: history(), ..FakeBackend::default() };
    let mut chat = TestChat::with(backend, |_| {}, "");
    let shown = chat.shown();
    assert!(shown.contains("What is due?") && shown.contains("The taxes."), "{shown}");
    chat.press("up");
    chat.press("enter");
    assert_eq!(chat.sent()[0].text, "What is due?");
}

#[test]
fn screens_of_any_size_are_drawn() {
    for (columns, rows) in [(1, 1), (5, 2), (20, 5), (39, 7), (300, 100)] {
        let mut chat = TestChat::new();
        chat.say("a question");
        chat.say("another one");
        chat.read("r1");
        chat.text("r1", 0, &"words and words ".repeat(200));
        chat.screen(columns, rows);
        chat.press("ctrl+g");
        chat.screen(columns, rows);
    }
}
