//! Commands, keys and lists.

use super::*;

#[test]
fn sessions_are_named_by_key_or_by_name_within_the_agent() {
    for (agent, named, key) in [
        ("main", "", "agent:main:main"),
        ("ops", " ", "agent:ops:main"),
        ("ops", "Notes", "agent:ops:notes"),
        ("main", "agent:ops:x:y", "agent:ops:x:y"),
        ("main", "global", "global"),
    ] {
        let set = |setup: &mut ChatSetup| {
            setup.agent = agent.to_owned();
            setup.session = Some(named.to_owned());
            setup.message = Some("x".to_owned());
        };
        assert_eq!(TestChat::with(FakeBackend::default(), set, "").sent()[0].session_key, key, "{agent} {named:?}");
    }
}

#[test]
fn commands_change_the_session() {
    let mut chat = TestChat::new();
    for (typed, patch, shown) in [
        ("/think low", "Thinking(Some(Low))", "Thinking: low"),
        ("/think default", "Thinking(None)", "Thinking: as configured"),
        ("/verbose on", "Verbose(On)", "Verbose: on"),
        ("/reasoning stream", "Reasoning(Stream)", "Reasoning: stream"),
        ("/usage", "Usage(Tokens)", "Usage: tokens"),
        ("/usage", "Usage(Full)", "Usage: full"),
        ("/usage", "Usage(Off)", "Usage: off"),
        ("/queue steer", "Queue(Some(Steer))", "Queue: steer"),
        ("/elevated ask", "Elevated(Ask)", "Elevated: ask"),
        ("/elev off", "Elevated(Off)", "Elevated: off"),
        ("/permissions guarded", "Permissions(Some(Guarded))", "| permissions guarded"),
        ("/permissions default", "Permissions(None)", "Permissions: as configured"),
        ("/activation always", "Activation(Always)", "| activation always"),
        ("/activation mention", "Activation(Mention)", "Activation: mention"),
        ("/queue default", "Queue(None)", "Queue: as configured"),
        ("/model local/m2", "Model(Some(\"local/m2\"))", "Model: local/m2"),
        ("/model default", "Model(None)", "Model: as configured"),
    ] {
        chat.say(typed);
        assert_eq!(chat.backend.calls.lock().unwrap().pop(), Some(format!("{MAIN} {patch}")), "{typed}");
        chat.shows(shown);
    }
    chat.say("/model nope");
    chat.shows("Error: no such model");
    assert_eq!(chat.sent(), []);
}

#[test]
fn messages_follow_the_queue_mode_of_the_session() {
    let mut chat = TestChat::new();
    chat.say("/queue interrupt");
    chat.say("hello");
    assert_eq!(chat.sent()[0].queue, Some(QueueMode::Interrupt));
    chat.say("/elevated full");
    chat.shows("| elevated full");
    chat.say("three");
    let modes: Vec<_> = chat.sent().iter().map(|message| message.elevated).collect();
    assert_eq!((modes.first(), modes.last()), (Some(&None), Some(&Some(ElevatedMode::Full))));
}

#[test]
fn commands_that_cannot_be_run_are_answered_and_not_sent() {
    let mut chat = TestChat::new();
    for (typed, shown) in [
        ("/think xhigh", "Valid values: off, low, high, default"),
        ("/verbose", "Usage: /verbose <level>. Valid values: on, full, off"),
        ("/activation", "Usage: /activation <mode>. Valid values: mention, always"),
        ("/activation never", "Invalid mode \"never\". Valid values: mention, always"),
        ("/deliver maybe", "Invalid value \"maybe\". Valid values: on, off"),
        ("/agent nobody", "There is no agent \"nobody\". Agents: main, ops"),
        ("/abort", "There is no active run"),
        ("/modle", "Unknown command /modle, did you mean /model?"),
    ] {
        chat.say(typed);
        chat.shows(shown);
    }
    assert_eq!(chat.sent(), []);
    // Submitting it again sends it as a message.
    chat.press("enter");
    assert_eq!(chat.sent()[0].text, "/modle");
}

#[test]
fn other_commands_have_their_effects() {
    let mut chat = TestChat::new();
    chat.say("/help");
    let help = chat.shown();
    assert!(help.contains("/reasoning <on|off|stream>") && help.contains("ctrl+g: Choose an agent"), "{help}");
    assert!(!help.contains("session tree"), "keys that mean nothing here are not listed");
    assert!(!help.contains("none:"), "keys that nothing is bound to are not listed: {help}");
    chat.say("/status");
    chat.shows("Session: agent:main:main");
    chat.say("/reset");
    chat.shows("The session was reset");
    chat.say("/context");
    chat.shows("Context");
    chat.say("/auth local");
    chat.shows("Auth profiles");
    chat.say("/compact keep names");
    chat.shows("Compacted from 900 to 90 tokens");
    let calls = [
        format!("reset {MAIN}"),
        format!("context {MAIN}"),
        "credentials main Some(\"local\")".to_owned(),
        format!("compact {MAIN} Some(\"keep names\")"),
    ];
    assert_eq!(*chat.backend.calls.lock().unwrap(), calls);
    chat.say("/new and now?");
    let [sent] = &chat.sent()[..] else { panic!("one message") };
    assert!(sent.session_key.starts_with("agent:main:chat-") && sent.text == "and now?", "{sent:?}");
    chat.say("/reset");
    chat.shows("Stop the active run before the session is reset");
    chat.say("/agent ops");
    chat.shows("agent ops | session main");
    let new = format!("main {}", sent.session_key);
    assert_eq!(chat.remembered, [format!("main {MAIN}"), new, "ops agent:ops:main".to_owned()]);
    chat.say("/quit");
    assert_eq!(chat.effects.last(), Some(&ChatEffect::Exit));
}

#[test]
fn settings_change_what_is_shown() {
    let mut chat = TestChat::new();
    chat.say("/settings");
    chat.shows("collapsed");
    chat.press("enter");
    chat.shows("expanded");
    chat.press("down");
    chat.press("enter");
    chat.shows("shown");
    chat.press("escape");
    assert!(!chat.shown().contains("Tool output"));
}

#[test]
fn lists_are_searched_and_chosen_from() {
    let mut chat = TestChat::new();
    chat.press("ctrl+l");
    "m2".chars().for_each(|c| chat.input(&TerminalInput::Key(KeyPress::typed(c))));
    chat.press("enter");
    chat.shows("| local/m2");
    chat.press("ctrl+p");
    chat.press("down");
    chat.press("enter");
    chat.shows("agent main | session taxes");
    chat.press("ctrl+g");
    "ops".chars().for_each(|c| chat.input(&TerminalInput::Key(KeyPress::typed(c))));
    chat.press("enter");
    chat.shows("agent ops | session main");
    chat.press("ctrl+g");
    chat.press("escape");
    chat.shows("Type a message");
}

#[test]
fn keys_of_the_chat_can_be_changed_without_those_of_the_interactive_mode() {
    let keys = r#"{"chat.agents": "f5", "app.session.new": "ctrl+n"}"#;
    let mut chat = TestChat::with(FakeBackend::default(), |_| {}, keys);
    chat.shows("f5 agents");
    chat.press("f5");
    chat.shows("ops");
    chat.press("escape");
    // These keys of the interactive mode have no meaning here.
    chat.press("ctrl+n");
    chat.press("ctrl+g");
    assert_eq!(chat.effects, []);
}

#[test]
fn ctrl_c_clears_then_stops_then_exits() {
    let mut chat = TestChat::new();
    chat.input(&TerminalInput::Paste("a draft".to_owned()));
    chat.press("ctrl+c");
    assert_eq!(chat.effects, []);
    chat.say("hello");
    chat.read("r1");
    chat.press("ctrl+c");
    assert_eq!(*chat.backend.calls.lock().unwrap(), [format!("abort {MAIN}")]);
    chat.shows("Press ctrl+c again to exit");
    chat.now_ms = 1_500;
    chat.press("ctrl+c");
    assert!(!chat.effects.contains(&ChatEffect::Exit), "that was too late");
    chat.now_ms = 2_400;
    chat.press("ctrl+c");
    assert_eq!(chat.effects.last(), Some(&ChatEffect::Exit));
    chat.effects.clear();
    chat.press("ctrl+d");
    assert_eq!(chat.effects, [ChatEffect::Exit]);
}

#[test]
fn shell_permission_is_requested_once_and_defaults_to_no() {
    let mut chat = TestChat::new();
    chat.say("!ls -l");
    chat.shows("$ ls -l");
    assert_eq!(chat.effects, []);
    chat.press("down");
    chat.press("enter");
    assert_eq!(chat.effects, [ChatEffect::Shell("ls -l".to_owned())]);
    chat.say("!pwd");
    chat.shows("A command is running");
    chat.press("ctrl+c");
    chat.press("escape");
    assert_eq!(chat.effects.pop(), Some(ChatEffect::StopShell));
    chat.state.shell_output("files\n");
    chat.state.shell_ended(&Ok(Default::default()));
    chat.say("!pwd");
    assert_eq!(chat.effects.pop(), Some(ChatEffect::Shell("pwd".to_owned())));

    let mut chat = TestChat::new();
    chat.say("!ls");
    chat.press("enter");
    chat.say("!ls");
    chat.shows("Shell commands are off until the chat is restarted");
    // These are messages.
    chat.say("!");
    chat.say(" !ls");
    let texts: Vec<String> = chat.sent().into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["!", "!ls"]);
    assert!(!chat.effects.iter().any(|effect| matches!(effect, ChatEffect::Shell(_))));

    let mut chat = TestChat::with(FakeBackend::default(), |setup| setup.has_shell = false, "");
    chat.say("!ls");
    chat.shows("No shell is available to run commands");
}

#[test]
fn a_compaction_can_be_cancelled() {
    let mut chat = TestChat::new();
    chat.state.input(&TerminalInput::Paste("/compact".to_owned()), Size::new(80, 24), 0);
    let enter = TerminalInput::Key(KeyPress::of("enter".parse().unwrap()));
    let effects = chat.state.input(&enter, Size::new(80, 24), 0);
    assert_eq!(effects, [ChatEffect::Compact { session: MAIN.to_owned(), instructions: None }]);
    chat.shows("compacting • 0s");
    chat.press("escape");
    assert_eq!(chat.effects, [ChatEffect::StopCompaction]);
    chat.shows("Compaction cancelled");
    chat.shows("local | idle");
}

fn question(id: &str, command: &str) -> ChatEvent {
    ChatEvent::Question(CommandQuestion {
        id: id.to_owned(),
        session_key: Some(MAIN.to_owned()),
        command: command.to_owned(),
        cwd: "/home/me".to_owned(),
        reason: "It is not on the allow list".to_owned(),
    })
}

fn decisions(chat: &TestChat) -> Vec<String> {
    chat.backend.calls.lock().unwrap().clone()
}

#[test]
fn command_approvals_are_shown_in_order_and_not_granted_by_typing_ahead() {
    let mut chat = TestChat::new();
    chat.state.event(question("q1", "rm -r x\u{1b}[2J"), 0);
    chat.state.event(question("q2", "make"), 0);
    chat.press("ctrl+g");
    let shown = chat.shown();
    assert!(shown.contains("$ rm -r x") && shown.contains("in /home/me") && !shown.contains("$ make"), "{shown}");
    let typed = |c| TerminalInput::Key(KeyPress::typed(c));
    chat.press("enter");
    chat.input(&typed('y'));
    chat.input(&typed('a'));
    assert_eq!(decisions(&chat), [""; 0], "nobody has read the question yet");
    chat.now_ms = 400;
    chat.input(&typed('y'));
    chat.input(&typed('y'));
    chat.shows("Allowed once: rm -r x");
    chat.shows("$ make");
    chat.now_ms = 800;
    chat.press("down");
    chat.press("enter");
    assert_eq!(decisions(&chat), ["q1: once", "q2: always"]);
    chat.state.event(question("q3", "curl x | sh"), 400);
    chat.press("escape");
    assert_eq!(decisions(&chat).pop().unwrap(), "q3: deny");
    chat.state.event(question("q4", "late"), 400);
    chat.shows("$ late");
    chat.state.event(ChatEvent::QuestionWithdrawn("q4".to_owned()), 400);
    assert!(!chat.shown().contains("$ late"));
}

#[test]
fn a_typed_line_allows_a_command_only_if_it_is_a_decision() {
    let mut chat = TestChat::new();
    let line = |chat: &mut TestChat, line: &str| chat.input(&TerminalInput::Line(line.to_owned()));
    chat.state.event(question("q1", "make"), 0);
    line(&mut chat, "y");
    chat.shown();
    chat.now_ms = 1_000;
    for text in ["you bet", "anything but that", "12 apples", "1 or 2", "4"] {
        line(&mut chat, text);
        assert_eq!(decisions(&chat), [""; 0], "{text:?}");
    }
    chat.shows("Type the number of a choice");
    line(&mut chat, "y");
    for (id, typed) in [("q2", "2"), ("q3", "Deny"), ("q4", " always ")] {
        chat.state.event(question(id, "make"), 0);
        chat.shown();
        chat.now_ms += 1_000;
        line(&mut chat, typed);
    }
    assert_eq!(decisions(&chat), ["q1: once", "q2: always", "q3: deny", "q4: always"]);
}

#[test]
fn replies_are_delivered_only_if_the_session_has_a_channel() {
    let mut chat = TestChat::new();
    chat.say("/deliver on");
    chat.shows("Replies cannot be delivered: this session has no channel");
    chat.say("hello");
    assert!(!chat.sent()[0].deliver);
    chat.backend.facts.lock().unwrap().channel = Some("telegram\u{1b}[2J:42".to_owned());
    chat.say("/verbose off");
    chat.say("/deliver on");
    chat.shows("Replies are also delivered to telegram:42");
    chat.shows("| deliver to telegram:42");
    chat.say("again");
    assert!(chat.sent()[1].deliver);
    chat.say("/deliver off");
    chat.shows("Replies stay in this chat");
    chat.say("and again");
    assert!(!chat.sent()[2].deliver);
}

#[test]
fn a_login_gets_the_terminal_and_its_outcome_is_shown() {
    let mut chat = TestChat::new();
    for (typed, provider) in [("/login", None), ("/login anthropic", Some("anthropic".to_owned()))] {
        chat.say(typed);
        assert_eq!(chat.effects.pop(), Some(ChatEffect::Login { agent: "main".to_owned(), provider }));
    }
    for (outcome, shown) in [
        (Ok(()), "Logged in"),
        (Err(ChatError::new("the login was not completed")), "Error: the login was not completed"),
    ] {
        chat.state.news(ChatNews::LoggedIn(outcome), 0);
        chat.shows(shown);
    }
}
