//! Questions of agents.

use super::*;

fn question(id: &str, text: &str) -> AgentQuestion {
    let option =
        |label: &str, about: &str| AnswerOption { label: label.to_owned(), description: Some(about.to_owned()) };
    AgentQuestion {
        id: id.to_owned(),
        header: "Deploy".to_owned(),
        text: text.to_owned(),
        options: vec![
            option(
                "Staging (Recommended)",
                "Nobody but us sees it, and it can be taken back at any time without a trace",
            ),
            option("Production", "Customers see it \u{1b}[31mat once"),
        ],
        is_multiple: false,
    }
}

fn asked(id: &str, questions: Vec<AgentQuestion>) -> AgentQuestions {
    AgentQuestions { id: id.to_owned(), session_key: Some(MAIN.to_owned()), questions, expires_ms: 900_000 }
}

impl TestChat {
    /// Shows questions of an agent, past the typing-ahead guard.
    fn asks(&mut self, asked: AgentQuestions) {
        self.state.event(ChatEvent::Asked(asked), self.now_ms);
        self.see();
    }

    fn see(&mut self) {
        self.shown();
        self.now_ms += 1_000;
    }

    fn types(&mut self, text: &str) {
        for c in text.chars() {
            self.input(&TerminalInput::Key(KeyPress::typed(c)));
        }
    }

    fn answers(&self) -> String {
        self.backend.calls.lock().unwrap().join("; ")
    }
}

#[test]
fn a_question_is_shown_with_its_options_and_its_deadline() {
    let screens = [(80, 24), (40, 10)].map(|(columns, rows)| {
        let mut chat = TestChat::new();
        chat.asks(AgentQuestions {
            session_key: Some("agent:ops:main".to_owned()),
            ..asked("q", vec![question("place", "Where to?\u{1b}[2J")])
        });
        let first = chat.screen(columns, rows);
        chat.types("3");
        chat.types("a canary");
        format!("{columns}x{rows}\n{first}\n{}", chat.screen(columns, rows))
    });
    insta::assert_snapshot!(screens.join("\n"));
}

#[test]
fn an_answer_is_an_option_or_free_text_or_declined() {
    let answer = |keys: &dyn Fn(&mut TestChat)| {
        let mut chat = TestChat::new();
        chat.asks(asked("q", vec![question("place", "Where to?")]));
        keys(&mut chat);
        chat.answers()
    };
    assert_eq!(answer(&|chat| chat.press("enter")), "q: place=Staging (Recommended)");
    assert_eq!(answer(&|chat| chat.types("2")), "q: place=Production");
    assert_eq!(answer(&|chat| chat.press("escape")), "q: no answer");
    let own = answer(&|chat| {
        chat.types("3");
        chat.press("enter");
        chat.input(&TerminalInput::Paste("a canary".to_owned()));
        chat.press("enter");
    });
    assert_eq!(own, "q: place=a canary", "an empty answer is none");
    let back = answer(&|chat| {
        chat.types("3x");
        chat.press("escape");
        chat.types("1");
    });
    assert_eq!(back, "q: place=Staging (Recommended)");
}

#[test]
fn multiple_choice_answers_include_free_text() {
    let many = || asked("q", vec![AgentQuestion { is_multiple: true, ..question("places", "Where to?") }]);
    let mut chat = TestChat::new();
    chat.asks(many());
    chat.types("4");
    assert_eq!(chat.answers(), "", "nothing is chosen yet");
    chat.types("2 1");
    chat.types("4");
    assert_eq!(chat.answers(), "q: places=Staging (Recommended)");
    let mut chat = TestChat::new();
    chat.asks(many());
    chat.types("2");
    chat.types("3a canary");
    chat.press("enter");
    assert_eq!(chat.answers(), "q: places=Production+a canary");
}

#[test]
fn questions_are_shown_in_order_and_not_answered_by_typing_ahead() {
    let mut chat = TestChat::new();
    chat.asks(asked("a", vec![question("one", "First?"), question("two", "Second?")]));
    chat.asks(asked("b", vec![question("three", "Third?")]));
    chat.shows("(1 of 2)");
    chat.press("enter");
    chat.shows("(2 of 2)");
    chat.press("enter");
    chat.press("escape");
    assert_eq!(chat.answers(), "");
    chat.see();
    chat.types("2");
    assert_eq!(chat.answers(), "a: one=Staging (Recommended) two=Production");
    chat.shows("Answered: First? Staging (Recommended)");
    chat.shows("Third?");
    chat.press("enter");
    chat.see();
    chat.press("escape");
    assert!(chat.answers().ends_with("; b: no answer"), "{}", chat.answers());
    chat.shows("Not answered: Third?");
}

#[test]
fn withdrawn_questions_are_closed_with_a_notice() {
    let mut chat = TestChat::new();
    chat.asks(asked("a", vec![question("one", "First?")]));
    chat.asks(asked("b", vec![question("two", "Second?")]));
    chat.state.event(ChatEvent::QuestionWithdrawn("b".to_owned()), chat.now_ms);
    chat.shows("The question was withdrawn: Second?");
    chat.now_ms = 899_900;
    chat.shows("1s left");
    chat.state.event(ChatEvent::QuestionWithdrawn("a".to_owned()), chat.now_ms);
    chat.shows("Not answered in time: First?");
    assert!(!chat.shown().contains("left"));
}
