//! Tests of where the parts of a conversation go.

mod images;

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

/// Returns the numbers of the messages in a text, in order.
fn numbers(text: &str) -> Vec<usize> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(3).filter(|words| words[2] == "end").filter_map(|words| words[1].parse().ok()).collect()
}

fn finished(view: &mut TranscriptView) -> String {
    text(&view.take_finished(COLUMNS, &Palette::builtin("dark", ColorDepth::None), &Keymap::default()))
}

fn window_of(view: &mut TranscriptView, columns: usize, height: usize) -> TranscriptWindow {
    view.window(columns, height, &Palette::builtin("dark", ColorDepth::None), &Keymap::default())
}

fn window(view: &mut TranscriptView) -> String {
    text(&window_of(view, COLUMNS, 20).rows)
}

fn n_folded(view: &TranscriptView) -> usize {
    view.folded.iter().map(|at| view.messages_behind(*at).unwrap().len()).sum()
}

#[test]
fn only_the_end_of_a_long_session_is_shown_until_the_rest_is_needed() {
    let mut view = TranscriptView::default();
    view.load(&conversation(1_001));
    let shown = finished(&mut view);
    assert!(shown.contains("… 900 earlier messages (ctrl+r to show the whole conversation)"), "{shown}");
    assert_eq!(numbers(&shown), (900..1_001).collect::<Vec<_>>());
    let end = window(&mut view);
    assert!(end.contains("question 1000 end") && n_folded(&view) == 900, "{end}");
    let mut all = numbers(&end);
    while view.viewport.shown.first() != Some(&place::RowPlace::default()) {
        view.scroll(Scroll::Rows(-20));
        all.splice(0..0, numbers(&window(&mut view)));
    }
    all.dedup();
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 1_001);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1] || pair[0] < 10), "{all:?}");
    assert_eq!(finished(&mut view), "", "what was scrolled to does not go below the end of the scrollback");
}

#[test]
fn only_the_last_messages_of_a_session_of_long_messages_are_shown() {
    let long = |at: usize| Arc::new(Message::user(format!("question {at} end {}", "words ".repeat(1_000)), at as i64));
    let mut view = TranscriptView::default();
    view.load(&(0..50).map(long).collect::<Vec<_>>());
    let shown = finished(&mut view);
    assert_eq!(numbers(&shown), (42..50).collect::<Vec<_>>(), "48 KB");
    let mut view = TranscriptView::default();
    let huge = Message::user(format!("question 1 end {}", "words ".repeat(100_000)), 1);
    view.load(&[long(0), Arc::new(huge)]);
    assert_eq!(numbers(&finished(&mut view)), [1], "the last one is shown however long it is");
}

#[test]
fn new_messages_appear_at_the_end_of_a_long_session() {
    let mut view = TranscriptView::default();
    view.load(&conversation(300));
    window(&mut view);
    while n_folded(&view) > 0 {
        view.scroll(Scroll::Rows(-100));
        window(&mut view);
    }
    view.message_ended(&Arc::new(Message::user("question 300 end", 1)));
    let shown = finished(&mut view);
    // Nothing was in the scrollback before.
    assert_eq!(numbers(&shown), (0..301).collect::<Vec<_>>());
}

#[test]
fn jumping_to_the_ends_of_a_long_session_does_not_lay_out_its_middle() {
    let mut view = TranscriptView::default();
    view.load(&conversation(20_001));
    let laid_out = |view: &TranscriptView| view.entries.iter().filter(|cached| cached.rows.is_some()).count();
    window(&mut view);
    assert!(laid_out(&view) <= 20 && view.entries.len() <= 200, "{}", laid_out(&view));
    view.scroll(Scroll::Top);
    let top = window_of(&mut view, COLUMNS, 20);
    assert!(numbers(&text(&top.rows)).starts_with(&[0, 1, 2]), "{}", text(&top.rows));
    assert_eq!(top.thumb, Some(0..1));
    assert!(matches!(top.below, Remaining::Messages(19_990..20_000)), "{:?}", top.below);
    assert!(laid_out(&view) <= 40 && view.entries.len() <= 350, "{} {}", laid_out(&view), view.entries.len());
    // Scrolling on from there passes through everything.
    view.scroll(Scroll::Rows(500));
    assert!(numbers(&window(&mut view)).first().is_some_and(|first| (200..300).contains(first)));
    for _ in 0..30 {
        view.scroll(Scroll::Rows(40));
        window(&mut view);
    }
    assert!(laid_out(&view) <= 220, "{}", laid_out(&view));
    view.scroll(Scroll::End);
    let end = window_of(&mut view, COLUMNS, 20);
    assert_eq!((end.below, end.thumb), (Remaining::Nothing, Some(19..20)));
    assert!(!view.is_scrolled() && numbers(&text(&end.rows)).last() == Some(&20_000));
}

#[test]
fn visible_text_does_not_move_when_new_text_arrives() {
    let mut view = TranscriptView::default();
    view.load(&conversation(50));
    window(&mut view);
    view.scroll(Scroll::Rows(-10));
    let before = window(&mut view);
    view.message_ended(&Arc::new(Message::user("question 50 end", 1)));
    view.agent_event(&AgentEvent::MessageStart(conversation(2).remove(1)), 0);
    assert_eq!(window(&mut view), before);
    view.scroll(Scroll::Rows(isize::MAX));
    window(&mut view);
    assert!(!view.is_scrolled(), "scrolling past the end follows it again");
    view.message_ended(&Arc::new(Message::user("question 51 end", 1)));
    assert!(window(&mut view).contains("question 51 end"));
}

#[test]
fn changing_the_width_keeps_the_same_part_at_the_top() {
    let mut view = TranscriptView::default();
    let words: String = (0..2_000).map(|n| format!("word{n} ")).collect();
    view.message_ended(&Arc::new(Message::user(words, 1)));
    window(&mut view);
    view.scroll(Scroll::Top);
    view.scroll(Scroll::Rows(100));
    let first = |window: &TranscriptWindow| -> usize {
        let text = text(&window.rows);
        text.split("word").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = first(&window_of(&mut view, COLUMNS, 20));
    let narrow = first(&window_of(&mut view, 30, 20));
    assert!(before.abs_diff(narrow) < 60, "{before} {narrow}");
    assert!(before > 500);
}

#[test]
fn calls_are_not_separated_from_their_results() {
    use pinch_llm::message::{Block, ToolCall, ToolResult};
    let mut messages = conversation(1);
    for n in 0..400 {
        let mut answer = AssistantMessage::pending("a".into(), "p".into(), "m".into(), n);
        let call = ToolCall::new(format!("call{n}"), "read", pinch_agent_core::tool::JsonObject::new());
        answer.content.push(Arc::new(Block::ToolCall(call.clone())));
        messages.push(Arc::new(Message::Assistant(Arc::new(answer))));
        messages.push(Arc::new(Message::ToolResult(ToolResult::text(&call, format!("result {n} end"), false, n))));
    }
    let mut view = TranscriptView::default();
    view.load(&messages);
    window(&mut view);
    view.unfold(0, fold::Unfold::Around(301)).unwrap();
    view.unfold(0, fold::Unfold::First).unwrap();
    for at in (0..view.entries.len()).rev() {
        view.unfold(at, fold::Unfold::Last);
    }
    while let Some(at) = view.folded.first().copied() {
        view.unfold(at, fold::Unfold::Last);
    }
    // The question, and all results.
    assert_eq!(numbers(&finished(&mut view))[1..], (0..400).collect::<Vec<_>>());
}

#[test]
fn a_short_session_is_shown_entirely() {
    for n in [0, 1, 2, fold::MAX_SHOWN] {
        let mut view = TranscriptView::default();
        view.load(&conversation(n));
        assert_eq!(numbers(&finished(&mut view)), (0..n).collect::<Vec<_>>());
    }
}

/// Continues the search until it has a result.
fn search(view: &mut TranscriptView, columns: usize) -> SearchStatus {
    let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
    while view.search_status() == Some(SearchStatus::Searching) {
        view.search_step(columns, &theme, &keymap);
    }
    window_of(view, columns, 20);
    view.search_status().unwrap()
}

#[test]
fn folded_messages_are_found_and_few_others_laid_out() {
    let mut view = TranscriptView::default();
    view.load(&conversation(20_000));
    window(&mut view);
    view.search_begin();
    view.search_for("question 5000 end");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: None, hidden: false });
    assert!(numbers(&window(&mut view)).contains(&5_000));
    assert!(view.entries.len() < 400, "{}", view.entries.len());
    view.search_for("there is no such text");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::NotFound);
    assert!(numbers(&window(&mut view)).contains(&5_000), "the window stays");
    // Matches in both directions, one after another, across folded messages.
    view.search_for("QUESTION");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::NotFound);
    view.search_for("question 7");
    for n in (7_000..8_000).rev().step_by(2).map(|n| n - 1).take(20) {
        assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: None, hidden: false });
        assert!(numbers(&window(&mut view)).contains(&n), "{n}: {}", window(&mut view));
        view.search_next(SearchDirection::Up);
    }
    search(&mut view, COLUMNS);
    view.scroll(Scroll::Top);
    window(&mut view);
    view.search_begin();
    view.search_for("question 0 end");
    search(&mut view, COLUMNS);
    for n in [100, 1_000, 1_002, 10_000, 10_002] {
        view.search_for(&format!("question {n} end"));
        assert_eq!(
            search(&mut view, COLUMNS),
            SearchStatus::Found { wrapped: Some(SearchDirection::Up), hidden: false }
        );
    }
    view.search_for("question 10");
    search(&mut view, COLUMNS);
    view.search_next(SearchDirection::Down);
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: Some(SearchDirection::Down), hidden: false });
    let mut found = Vec::new();
    for _ in 0..30 {
        found.extend(numbers(&window(&mut view)).into_iter().find(|n| n % 2 == 0 && n.to_string().starts_with("10")));
        view.search_next(SearchDirection::Down);
        search(&mut view, COLUMNS);
    }
    assert!(found.contains(&10) && found.contains(&100) && found.contains(&1_000), "{found:?}");
}

#[test]
fn hidden_text_is_found_and_reported_as_hidden() {
    let mut view = TranscriptView::default();
    view.load(&conversation(30));
    view.bash_started("seq 100", false);
    let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
    view.bash_output(&lines);
    view.run_ended();
    window(&mut view);
    view.search_begin();
    view.search_for("line 99");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: None, hidden: false });
    view.search_for("line 7\n");
    assert!(matches!(search(&mut view, COLUMNS), SearchStatus::NotFound));
    view.search_for("line 17");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: None, hidden: true });
    view.options.expanded = true;
    view.invalidate();
    view.search_for("line 17");
    assert_eq!(search(&mut view, COLUMNS), SearchStatus::Found { wrapped: None, hidden: false });
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    /// However the window was moved, it shows a part of the whole conversation, and is full.
    #[test]
    fn the_window_is_a_part_of_the_whole(
        lengths in proptest::collection::vec(0_usize..60, 1..400),
        steps in proptest::collection::vec((0_u8..12, -120_isize..120), 1..30),
        (columns, height) in (8_usize..60, 1_usize..30),
    ) {
        let message = |(at, n): (usize, &usize)| Arc::new(Message::user(format!("{at} {}", "word ".repeat(*n)), 0));
        let messages: Vec<_> = lengths.iter().enumerate().map(message).collect();
        let mut whole = TranscriptView::default();
        whole.load(&messages);
        while let Some(at) = whole.folded.last().copied() {
            whole.unfold(at, fold::Unfold::Last);
        }
        let whole = window_of(&mut whole, columns, 1_000_000).rows;
        let last = whole.len().saturating_sub(height);
        let mut view = TranscriptView::default();
        view.load(&messages);
        window_of(&mut view, columns, height);
        let mut top = last;
        for (kind, n) in steps {
            let to = match kind {
                0 => Scroll::Top,
                1 => Scroll::End,
                _ => Scroll::Rows(n),
            };
            top = match to {
                Scroll::Top => 0,
                Scroll::End => last,
                Scroll::Rows(n) => top.saturating_add_signed(n).min(last),
            };
            view.scroll(to);
            let shown = window_of(&mut view, columns, height);
            proptest::prop_assert_eq!(&shown.rows, &whole[top..whole.len().min(top + height)]);
            proptest::prop_assert_eq!(shown.below == Remaining::Nothing, top == last);
            proptest::prop_assert_eq!(view.is_scrolled(), top != last);
            let thumb = shown.thumb.unwrap_or(0..height);
            proptest::prop_assert!(thumb.start < thumb.end && thumb.end <= height);
            proptest::prop_assert!(top > 0 || thumb.start == 0);
            proptest::prop_assert!(top < last || thumb.end == height || top == 0);
        }
    }

    /// Searching upwards visits all messages that contain the text, from last to first, and then starts over.
    #[test]
    fn every_match_is_visited_once(
        has in proptest::collection::vec(proptest::bool::weighted(0.02), 1..600),
        columns in 12_usize..80,
    ) {
        let message = |(at, has): (usize, &bool)| {
            let text = if *has { format!("some **{at}needle** and words behind it end") } else { format!("number {at} end") };
            Arc::new(Message::user(text, 0))
        };
        let messages: Vec<_> = has.iter().enumerate().map(message).collect();
        let expected: Vec<usize> = (0..has.len()).rev().filter(|at| has[*at]).collect();
        let mut view = TranscriptView::default();
        view.load(&messages);
        window_of(&mut view, columns, 20);
        view.search_begin();
        view.search_for("needle and");
        for (nth, at) in expected.iter().chain(expected.first()).enumerate() {
            let wrapped = (nth == expected.len()).then_some(SearchDirection::Up);
            proptest::prop_assert_eq!(search(&mut view, columns), SearchStatus::Found { wrapped, hidden: false });
            let current = text(&window_of(&mut view, columns, 20).rows);
            proptest::prop_assert!(current.contains(&format!("{at}needle")), "{} {}", at, current);
            view.search_next(SearchDirection::Up);
        }
        if expected.is_empty() {
            proptest::prop_assert_eq!(search(&mut view, columns), SearchStatus::NotFound);
        }
    }
}

#[test]
fn a_streaming_answer_can_be_read_from_its_start_or_followed_at_its_end() {
    use pinch_llm::event::BlockKind;
    let mut view = TranscriptView::default();
    view.agent_event(&AgentEvent::MessageStart(conversation(2).remove(1)), 0);
    view.answer_update(&StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }, 0);
    let delta = |view: &mut TranscriptView, n: usize| {
        let text = format!("paragraph {n} end\n\n");
        view.answer_update(&StreamEvent::Delta { index: 0, text: text.into() }, 0);
    };
    (0..100).for_each(|n| delta(&mut view, n));
    assert_eq!(numbers(&window(&mut view)).last(), Some(&99));
    view.scroll(Scroll::Rows(-100));
    let shown = window(&mut view);
    let first = numbers(&shown)[0];
    assert!((30..60).contains(&first), "{shown}");
    for n in 100..110 {
        delta(&mut view, n);
        assert_eq!(window(&mut view), shown);
    }
    let Remaining::Lines(below) = window_of(&mut view, COLUMNS, 20).below else { panic!("messages below") };
    view.scroll(Scroll::Rows(below.cast_signed()));
    assert_eq!(numbers(&window(&mut view)).last(), Some(&109));
    assert!(!view.is_scrolled());
    delta(&mut view, 110);
    assert_eq!(numbers(&window(&mut view)).last(), Some(&110));
    // From the first row on, everything is there once.
    view.scroll(Scroll::Top);
    let mut all = numbers(&window(&mut view));
    while view.is_scrolled() {
        view.scroll(Scroll::Rows(19));
        all.extend(numbers(&window(&mut view)));
    }
    all.dedup();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, (0..=110).collect::<Vec<_>>());
}

/// Returns the numbered words of a text, however they are wrapped.
fn marked_words(text: &str) -> String {
    text.chars().filter(|c| *c == 'w' || c.is_ascii_digit()).collect()
}

#[test]
fn a_new_width_or_theme_neither_repeats_nor_loses_a_word_of_an_answer_that_arrives() {
    use pinch_llm::event::BlockKind;
    let keymap = Keymap::default();
    let blocks: [fn(usize) -> String; 4] = [
        |n| format!("{}\n\n", (n..n + 40).map(|n| format!("w{n} ")).collect::<String>()),
        |n| (n..n + 40).map(|n| format!("w{n} ")).collect::<String>(),
        |n| {
            format!(
                "- {}\n  > {}\n",
                (n..n + 20).map(|n| format!("w{n} ")).collect::<String>(),
                (n + 20..n + 40).map(|n| format!("w{n} ")).collect::<String>()
            )
        },
        |n| format!("```\n{}\n```\n", (n..n + 40).map(|n| format!("w{n} ")).collect::<String>()),
    ];
    for block in blocks {
        let mut view = TranscriptView::default();
        view.agent_event(&AgentEvent::MessageStart(conversation(2).remove(1)), 0);
        view.answer_update(&StreamEvent::BlockStart { index: 0, kind: BlockKind::Text }, 0);
        let mut shown = String::new();
        for (n, columns) in [100, 100, 40, 120, 25, 80, 30, 200, 200, 60].into_iter().enumerate() {
            let theme = Palette::builtin(if n % 3 == 0 { "light" } else { "dark" }, ColorDepth::None);
            view.answer_update(&StreamEvent::Delta { index: 0, text: block(n * 40).into() }, 0);
            let rows = view.take_finished(columns, &theme, &keymap);
            let live = view.live(columns, &theme, &keymap, 0);
            assert!(rows.iter().chain(&live).all(|row| crate::text::row_width(row) <= columns));
            shown.push_str(&text(&rows));
            let expected: String = (0..(n + 1) * 40).map(|n| format!("w{n}")).collect();
            assert_eq!(marked_words(&format!("{shown}{}", text(&live))), expected);
        }
    }
}
