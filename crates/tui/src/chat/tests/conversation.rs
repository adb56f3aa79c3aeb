//! Messages, runs, and what is shown of them.

use pinch_agent_core::tool::{JsonObject, ToolOutput};
use serde_json::json;

use super::screens::history;
use super::*;
use crate::terminal::{NotificationKind, ProgramStatus};

fn arguments() -> Arc<JsonObject> {
    Arc::new(json!({"command": "echo hi"}).as_object().cloned().unwrap())
}

#[test]
fn an_answer_repeated_by_its_run_is_shown_once() {
    let mut chat = TestChat::new();
    chat.say("hello");
    chat.read("r1");
    chat.shows("waiting");
    chat.text("r1", 0, "Hello ");
    chat.shows("streaming");
    chat.text("r1", 6, "there.");
    chat.finish("r1", "Hello there.\n");
    let shown = chat.shown();
    assert_eq!(shown.matches("Hello there.").count(), 1, "{shown}");
    assert!(shown.contains("local | idle"), "{shown}");
    // Late events are not shown.
    chat.text("r1", 12, " Late.");
    assert!(!chat.shown().contains("Late"));
}

#[test]
fn a_reply_that_did_not_stream_is_shown_at_the_end_and_a_missing_one_reported() {
    let mut chat = TestChat::new();
    chat.say("hello");
    chat.read("r1");
    chat.finish("r1", "All at once.");
    chat.shows("All at once.");
    chat.say("and?");
    chat.read("r2");
    chat.event("r2", ChatUpdate::Final { replies: Vec::new(), aborted: false, usage: None });
    chat.shows("(no output)");
}

#[test]
fn truncated_text_disappears() {
    let mut chat = TestChat::new();
    chat.say("hello");
    chat.read("r1");
    chat.text("r1", 0, "One.\nMEDIA: /tm");
    chat.shows("MEDIA");
    chat.text("r1", 5, "Two.");
    let shown = chat.shown();
    assert!(shown.contains(" One.\n Two.\n") && !shown.contains("MEDIA"), "{shown}");
    chat.event("r1", ChatUpdate::Thinking("Hm.".to_owned()));
    chat.text("r1", 9, " Three.");
    chat.text("r1", 0, "Else.");
    let shown = chat.shown();
    assert!(shown.contains("Else.") && !shown.contains("One.") && !shown.contains("Three."), "{shown}");
}

#[test]
fn messages_during_a_run_wait_until_a_run_reads_them() {
    let mut chat = TestChat::new();
    chat.say("first");
    chat.read("r1");
    chat.say("second");
    chat.shows("Queued: second");
    assert_eq!(chat.sent().len(), 2, "the engine decides what becomes of it");
    chat.text("r1", 0, "one");
    chat.finish("r1", "one");
    let id = chat.read("r2");
    let shown = chat.shown();
    assert!(!shown.contains("Queued"), "{shown}");
    let places = ["first", "one", "second"].map(|text| shown.find(text).unwrap());
    assert!(places.is_sorted(), "{shown}");
    chat.finish("r2", "two");
    let news =
        super::super::effect::ChatNews::Sent { id, session: MAIN.to_owned(), outcome: Ok(MessageOutcome::Ended) };
    chat.state.news(news, 0);
    chat.shows("local | idle");
}

#[test]
fn messages_also_wait_between_two_runs() {
    let mut chat = TestChat::new();
    chat.say("first");
    chat.read("r1");
    chat.say("second");
    chat.finish("r1", "one");
    chat.shows("waiting for the next run");
    chat.say("third");
    chat.shows("Queued: third");
    chat.press("escape");
    let shown = chat.shown();
    assert!(shown.contains("second\n\nthird\n") && shown.contains("local | idle"), "{shown}");
    assert_eq!(*chat.backend.calls.lock().unwrap(), [""; 0]);
}

#[test]
fn stopping_withdraws_waiting_messages() {
    let mut chat = TestChat::new();
    chat.say("first");
    chat.read("r1");
    chat.say("second");
    chat.say("third");
    chat.press("escape");
    let ids: Vec<String> = chat.sent()[1..].iter().map(|message| message.id.clone()).collect();
    assert!(chat.effects.contains(&ChatEffect::Withdraw(ids)), "{:?}", chat.effects);
    assert_eq!(*chat.backend.calls.lock().unwrap(), [format!("abort {MAIN}")]);
    chat.shows("stopping");
    chat.event("r1", ChatUpdate::Final { replies: Vec::new(), aborted: true, usage: None });
    let shown = chat.shown();
    assert!(shown.contains("The run was stopped") && !shown.contains("(no output)"), "{shown}");
    assert!(shown.contains("second\n\nthird\n"), "{shown}");
    // There is nothing left to stop.
    chat.effects.clear();
    chat.press("escape");
    assert_eq!(chat.effects, []);
    chat.press("alt+up");
    chat.shows("There are no queued messages");
}

#[test]
fn unsent_and_dropped_messages_are_reported() {
    let mut chat = TestChat::new();
    chat.say("first");
    let sent = |chat: &mut TestChat, outcome| {
        let id = chat.sent().last().unwrap().id.clone();
        let news = super::super::effect::ChatNews::Sent { id, session: MAIN.to_owned(), outcome };
        let effects = chat.state.news(news, 0);
        chat.perform(effects);
    };
    sent(&mut chat, Err(ChatError::new("no model is configured")));
    chat.shows("Error: no model is configured");
    chat.shows("local | idle");
    chat.say("second");
    chat.read("r1");
    chat.say("third");
    sent(&mut chat, Ok(MessageOutcome::Dropped));
    chat.shows("A message was dropped before a run could read it: third");
    chat.event("r1", ChatUpdate::Failed("the provider is down".to_owned()));
    chat.shows("Error: the provider is down");
    chat.shows("local | idle");
}

#[test]
fn tools_are_shown_according_to_the_verbosity_of_the_session() {
    let run = |verbose| {
        let mut chat = TestChat::with(FakeBackend::default(), |setup| setup.verbose = Some(verbose), "");
        chat.say("go");
        chat.read("r1");
        let id = || "c1".to_owned();
        let name = "bash".to_owned();
        chat.event("r1", ChatUpdate::ToolStarted { id: id(), name, arguments: arguments() });
        chat.shows("running bash");
        chat.event("r1", ChatUpdate::ToolProgress { id: id(), output: ToolOutput::text("half of it") });
        let output = ToolOutput::text("the result");
        chat.event("r1", ChatUpdate::ToolEnded { id: id(), output, duration_ms: None });
        let shown = chat.shown();
        (shown.contains("$ echo hi"), shown.contains("the result"))
    };
    assert_eq!(run(Verbosity::Off), (false, false));
    assert_eq!(run(Verbosity::On), (true, false));
    assert_eq!(run(Verbosity::Full), (true, true));
}

#[test]
fn thinking_is_shown_according_to_the_session_and_toggled_by_its_key() {
    let run = |mode, toggles: usize| {
        let facts = ChatSessionInfo { reasoning: mode, ..ChatSessionInfo::default() };
        let backend = FakeBackend { facts: Mutex::new(facts), ..FakeBackend::default() };
        let mut chat = TestChat::with(backend, |_| {}, "");
        (0..toggles).for_each(|_| chat.press("ctrl+t"));
        chat.say("go");
        chat.read("r1");
        chat.event("r1", ChatUpdate::Thinking("Let me see.".to_owned()));
        let at_first = chat.shown().contains("Let me see.");
        chat.event("r1", ChatUpdate::ThinkingEnded);
        chat.text("r1", 0, "Well.");
        (at_first, chat.shown().contains("Let me see."))
    };
    assert_eq!(run(ReasoningMode::Off, 0), (false, false));
    assert_eq!(run(ReasoningMode::On, 0), (false, true));
    assert_eq!(run(ReasoningMode::Stream, 0), (true, true));
    assert_eq!(run(ReasoningMode::Off, 1), (true, true));
    assert_eq!(run(ReasoningMode::Stream, 1), (false, false));
}

#[test]
fn a_wait_counts_down_and_an_activity_is_named() {
    let mut chat = TestChat::new();
    chat.say("go");
    chat.read("r1");
    let wait = ChatUpdate::Busy { activity: "waiting (rate_limit)".to_owned(), until_ms: Some(9_000) };
    chat.event("r1", wait);
    chat.now_ms = 4_000;
    chat.shows("waiting (rate_limit) for 5s • 4s | local (escape to stop)");
}

#[test]
fn events_of_other_sessions_are_not_shown() {
    let mut chat = TestChat::new();
    chat.say("first");
    chat.read("r1");
    chat.say("/session notes");
    chat.text("r1", 0, "An answer elsewhere");
    let shown = chat.shown();
    assert!(shown.contains("session notes") && !shown.contains("elsewhere"), "{shown}");
    assert!(shown.contains("local | idle"), "{shown}");
    // The run continues in its session.
    chat.say("/session main");
    chat.text("r1", 19, "; more of it");
    chat.shows("An answer elsewhere; more of it");
    chat.shows("streaming");
    chat.say("/session notes");
    chat.finish("r1", "An answer elsewhere; more of it");
    chat.say("/session main");
    chat.shows("local | idle");
}

#[test]
fn runs_of_others_are_shown_and_their_messages_read_from_the_history() {
    let backend = FakeBackend { history: history(), ..FakeBackend::default() };
    let mut chat = TestChat::with(backend, |_| {}, "");
    chat.event("r9", ChatUpdate::Started);
    chat.text("r9", 0, "Said to somebody else");
    chat.shows("Said to somebody else");
    assert_eq!(chat.shown().matches("What is due?").count(), 1);
    chat.finish("r9", "Said to somebody else");
    assert_eq!(chat.shown().matches("What is due?").count(), 2);
}

#[test]
fn the_message_from_the_command_line_is_sent_after_the_history_is_loaded() {
    let backend = FakeBackend { history: history(), ..FakeBackend::default() };
    let first = |setup: &mut ChatSetup| {
        setup.message = Some("now".to_owned());
        setup.thinking = Some(ThinkingLevel::High);
        setup.timeout = Some(std::time::Duration::from_secs(9));
    };
    let mut chat = TestChat::with(backend, first, "");
    let [sent] = &chat.sent()[..] else { panic!("one message") };
    assert_eq!((&*sent.text, &*sent.session_key), ("now", MAIN));
    assert_eq!((sent.thinking, sent.timeout.unwrap().as_secs()), (Some(ThinkingLevel::High), 9));
    let shown = chat.shown();
    assert!(shown.find("What is due?") < shown.find(" now"), "{shown}");
    // From then on the user's choice applies.
    chat.say("/think low");
    chat.say("again");
    assert_eq!(chat.sent()[1].thinking, None);
    chat.shows("think low");
}

#[test]
fn the_end_of_the_engine_is_reported() {
    let mut chat = TestChat::new();
    chat.say("hello");
    chat.read("r1");
    chat.state.disconnected();
    chat.shows("Error: The engine has stopped");
    chat.shows("disconnected | idle");
}

#[test]
fn a_user_who_is_away_is_notified_and_the_terminal_knows_the_status() {
    let mut chat = TestChat::new();
    let view = |chat: &mut TestChat| {
        let frame = chat.state.view(Size::new(80, 24), chat.now_ms);
        (frame.status, frame.progress)
    };
    let notification = |chat: &mut TestChat| {
        chat.state.take_notification(NotificationKind::Osc9).map(|bytes| String::from_utf8(bytes).unwrap())
    };
    assert_eq!(view(&mut chat), (ProgramStatus::Idle, false));
    chat.say("Hello");
    assert_eq!(view(&mut chat), (ProgramStatus::Working, true));
    chat.read("r1");
    chat.input(&TerminalInput::Focus(false));
    chat.finish("r1", "Hi");
    assert_eq!(notification(&mut chat), None, "just left");
    chat.now_ms += 20_000;
    chat.say("Again");
    chat.read("r2");
    chat.finish("r2", "Hi");
    assert_eq!(notification(&mut chat).as_deref(), Some("\u{1b}]9;pinch: The answer is complete (main)\u{1b}\\"));
    assert_eq!(view(&mut chat), (ProgramStatus::Done, false));
    chat.press("left");
    assert_eq!(view(&mut chat).0, ProgramStatus::Idle);
}
