use pinch_llm::message::{AssistantMessage, Message};

use super::*;
use crate::theme::ColorDepth;

const COLUMNS: usize = 80;

fn conversation(n: usize) -> Vec<Arc<Message>> {
    let message = |at: usize| match at % 2 {
        0 => Message::user(format!("question {at} end"), at as i64),
        _ => {
            let mut answer = AssistantMessage::pending("a".into(), "p".into(), "m".into(), at as i64);
            answer.content.push(Arc::new(pinch_llm::message::Block::text(format!("answer {at} end"))));
            Message::Assistant(Arc::new(answer))
        }
    };
    (0..n).map(|at| Arc::new(message(at))).collect()
}

fn text(rows: &[Row]) -> String {
    let line = |row: &Row| row.spans.iter().map(|span| span.content.as_ref()).collect::<String>();
    rows.iter().map(|row| line(row) + "\n").collect()
}

/// The numbers of the messages in a text, in their order.
fn numbers(text: &str) -> Vec<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(3).filter(|words| words[2] == "end").filter_map(|words| words[1].parse().ok()).collect()
}

fn finished(view: &mut TranscriptView) -> String {
    text(&view.take_finished(COLUMNS, &Palette::builtin("dark", ColorDepth::None), &Keymap::default()))
}

fn window(view: &mut TranscriptView, scrolled: usize) -> (String, usize) {
    let theme = Palette::builtin("dark", ColorDepth::None);
    let (rows, scrolled) = view.window(COLUMNS, 20, scrolled, &theme, &Keymap::default());
    (text(&rows), scrolled)
}

#[test]
fn of_a_long_session_the_end_is_shown_and_the_rest_on_demand() {
    let mut view = TranscriptView::default();
    view.load(&conversation(1_001));
    let shown = finished(&mut view);
    assert!(shown.contains("… 900 earlier messages (ctrl+r to show the whole conversation)"), "{shown}");
    assert_eq!(numbers(&shown), (900..1_001).collect::<Vec<_>>());
    let (end, _) = window(&mut view, 0);
    assert!(end.contains("question 1000 end") && view.earlier.len() == 900, "{end}");
    let (top, scrolled) = window(&mut view, usize::MAX);
    assert!(numbers(&top).starts_with(&[0, 1]), "{top}");
    let mut all = Vec::new();
    for up in (0..=scrolled).rev().step_by(20) {
        all.extend(numbers(&window(&mut view, up).0));
    }
    all.extend(numbers(&window(&mut view, 0).0));
    all.dedup();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1] || pair[0] > 990), "{all:?}");
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 1_001);
    assert_eq!(finished(&mut view), "", "what was scrolled to does not go below the end of the scrollback");
}

#[test]
fn what_comes_after_a_long_session_is_shown_at_its_end() {
    let mut view = TranscriptView::default();
    view.load(&conversation(300));
    let (_, scrolled) = window(&mut view, usize::MAX);
    assert!(view.earlier.is_empty() && scrolled > 300);
    view.message_ended(&Arc::new(Message::user("question 300 end", 1)));
    let shown = finished(&mut view);
    // Nothing was in the scrollback before.
    assert_eq!(numbers(&shown), (0..301).collect::<Vec<_>>());
}

#[test]
fn a_session_that_is_not_long_is_shown_whole() {
    for n in [0, 1, 2, MAX_SHOWN] {
        let mut view = TranscriptView::default();
        view.load(&conversation(n));
        assert_eq!(numbers(&finished(&mut view)), (0..n).collect::<Vec<_>>());
    }
}
