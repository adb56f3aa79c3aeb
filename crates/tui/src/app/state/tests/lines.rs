//! Dialogs on a terminal that edits lines itself.

use super::*;

/// Answers a question with one line. Returns the answer, or whether the user is told that the line names no choice.
fn answered(kind: DialogKind, line: &str) -> Result<DialogAnswer, bool> {
    let mut app = app();
    let (reply, mut answer) = oneshot::channel();
    app.ask(&Dialog::new("How many?", kind), reply, 0);
    app.input(&TerminalInput::Line(line.to_owned()), Size::new(80, 24), 1_000);
    answer.try_recv().map_err(|_| screen(&mut app).contains("Type the number of a choice"))
}

fn options(n: usize) -> DialogKind {
    DialogKind::Select { options: (1..=n).map(|n| format!("{n} dozen")).collect() }
}

#[test]
fn only_a_line_that_is_a_number_chooses_by_number() {
    let text = |text: &str| Ok(DialogAnswer::Text(text.to_owned()));
    for (line, expected) in [
        ("1", text("1 dozen")),
        (" 3 ", text("3 dozen")),
        ("2 d", text("2 dozen")),
        ("12 apples", Err(true)),
        ("12", Err(true)),
        ("0", Err(true)),
        ("+1", Err(true)),
        ("1.", Err(true)),
        ("99999999999999999999999", Err(true)),
    ] {
        assert_eq!(answered(options(3), line), expected, "{line:?}");
    }
}

#[test]
fn a_line_that_is_no_number_searches_a_long_list() {
    assert_eq!(answered(options(12), "12"), Ok(DialogAnswer::Text("12 dozen".to_owned())));
    assert_eq!(answered(options(12), "12 dozen"), Ok(DialogAnswer::Text("12 dozen".to_owned())));
    assert!(answered(options(12), "12 apples").is_err());
}

#[test]
fn a_search_that_found_nothing_does_not_affect_the_next_line() {
    let mut app = app();
    let (reply, mut answer) = oneshot::channel();
    app.ask(&Dialog::new("How many?", options(12)), reply, 0);
    for line in ["zebras", "10 dozen"] {
        app.input(&TerminalInput::Line(line.to_owned()), Size::new(80, 24), 1_000);
    }
    // The first line searched in vain, the second one is a search of its own.
    assert_eq!(answer.try_recv(), Ok(DialogAnswer::Text("10 dozen".to_owned())));
}

#[test]
fn a_question_is_not_confirmed_by_the_first_letter_of_a_sentence() {
    let confirm = || DialogKind::Confirm { message: String::new() };
    for (line, expected) in [
        ("yes", Ok(DialogAnswer::Yes(true))),
        ("n", Ok(DialogAnswer::Yes(false))),
        ("2", Ok(DialogAnswer::Yes(false))),
        ("you tell me", Err(true)),
        ("12 apples", Err(true)),
    ] {
        assert_eq!(answered(confirm(), line), expected, "{line:?}");
    }
}
