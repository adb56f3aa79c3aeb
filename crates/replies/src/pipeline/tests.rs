use pinch_llm::ids::{ApiId, ModelId, ProviderId};
use pinch_llm::message::Text;
use proptest::prelude::*;

use super::super::blocks::BlockBreak;
use super::super::preview::PreviewMode;
use super::*;

mod scenarios;

fn agent(event: AgentEvent) -> SessionEvent {
    SessionEvent::Agent(event)
}

fn message(text: &str) -> Arc<Message> {
    let mut message = AssistantMessage::pending(ApiId::new("a"), ProviderId::new("p"), ModelId::new("m"), 0);
    message.stop_reason = StopReason::Stop;
    if !text.is_empty() {
        message.content.push(Arc::new(Block::Text(Text { text: text.into(), signature: None })));
    }
    Arc::new(Message::Assistant(Arc::new(message)))
}

fn start() -> [SessionEvent; 2] {
    let block = StreamEvent::BlockStart { index: 0, kind: BlockKind::Text };
    [agent(AgentEvent::MessageStart(message(""))), agent(AgentEvent::MessageUpdate(block))]
}

fn delta(text: &str) -> SessionEvent {
    agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text: text.into() }))
}

fn end(text: &str) -> SessionEvent {
    agent(AgentEvent::MessageEnd { message: message(text), error: None, queued: None })
}

fn blocks(replies: &mut Replies, events: impl IntoIterator<Item = SessionEvent>) -> Vec<String> {
    let mut out = Pieces::new();
    events.into_iter().for_each(|event| replies.push(&event, &mut out));
    let texts = out.into_iter().filter_map(|piece| match piece {
        Piece::Block(block) => Some(block.text),
        _ => None,
    });
    texts.collect()
}

fn by_paragraph() -> Replies {
    let block_reply_break = BlockBreak::Paragraph;
    Replies::new(ReplyOptions { block_streaming: true, block_reply_break, ..ReplyOptions::default() })
}

#[test]
fn a_restart_repeats_no_delivered_text() {
    let mut replies = by_paragraph();
    let first = blocks(&mut replies, start().into_iter().chain([delta("One.\n\nTwo.\n\nThr")]));
    assert_eq!(first, ["One.", "Two."]);
    replies.restart();
    assert_eq!(replies.assistant_texts(), ["One.", "Two."]);
    let again = blocks(&mut replies, start().into_iter().chain([delta("One.\n\nTw")]));
    assert_eq!(again, [""; 0]);
    replies.restart();
    assert_eq!(replies.assistant_texts(), ["One.", "Two."]);
    let text = "One.\n\nTwo.\n\nThree.\n\nOne.";
    let second = blocks(&mut replies, start().into_iter().chain([delta(text), end(text)]));
    assert_eq!(second, ["Three.", "One."]);
    assert_eq!(replies.assistant_texts(), ["One.", "Two.", "Three.", "One."]);
}

#[test]
fn equal_paragraphs_are_all_delivered() {
    let text = "Again.\n\nAgain.\n\nAgain.";
    assert_eq!(blocks(&mut by_paragraph(), start().into_iter().chain([delta(text), end(text)])), ["Again."; 3]);
}

#[test]
fn text_that_is_not_shown_yet_is_no_draft() {
    for (reasoning, is_draft) in [(ReasoningLevel::Off, true), (ReasoningLevel::On, false)] {
        let preview = Preview { mode: PreviewMode::Partial, ..Preview::default() };
        let mut replies = Replies::new(ReplyOptions { reasoning, preview, ..ReplyOptions::default() });
        let mut out = Pieces::new();
        start().into_iter().chain([delta("One. ")]).for_each(|event| replies.push(&event, &mut out));
        assert_eq!(out.iter().any(|piece| matches!(piece, Piece::Draft(_))), is_draft, "{reasoning:?}");
    }
}

#[test]
fn partial_tags_are_never_shown() {
    let mut replies = by_paragraph();
    let mut out = Pieces::new();
    let pieces = ["Hi <thi", "nk>secret</th", "ink> there"].map(delta);
    start().into_iter().chain(pieces).for_each(|event| replies.push(&event, &mut out));
    let deltas: Vec<String> = out
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Partial(growth) => Some(growth.delta),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["Hi", "  there"]);
}

/// Returns the blocks of an answer that arrives in these pieces, and the accumulated partial text.
fn blocks_and_partial(when: BlockBreak, pieces: &[&str]) -> (Vec<String>, String) {
    let options = ReplyOptions { block_streaming: true, block_reply_break: when, ..ReplyOptions::default() };
    let (mut replies, mut out) = (Replies::new(options), Pieces::new());
    start().into_iter().chain(pieces.iter().map(|piece| delta(piece))).for_each(|event| replies.push(&event, &mut out));
    let block = Arc::new(Block::text(pieces.concat()));
    replies.push(&agent(AgentEvent::MessageUpdate(StreamEvent::BlockEnd { index: 0, block })), &mut out);
    replies.push(&end(&pieces.concat()), &mut out);
    replies.finish(&mut out);
    let (mut blocks, mut partial) = (Vec::new(), String::new());
    for piece in out {
        match piece {
            Piece::Block(block) => blocks.push(block.text),
            Piece::Partial(growth) => {
                partial.truncate(growth.at);
                partial += &growth.restored;
                partial += &growth.delta;
            }
            _ => {}
        }
    }
    (blocks, partial)
}

const FRAGMENTS: [&str; 26] = [
    "word",
    " ",
    "\n",
    "\n\n",
    "```\n",
    "```rs\n",
    "`",
    "- item\n",
    "1. one\n",
    "| a | b |\n",
    "**",
    "[x](",
    ")",
    "[[voice]]",
    "[[reply_to:7]]",
    "MEDIA:https://e.com/a.png\n",
    "<think>",
    "</think>",
    "<final>",
    "</final>",
    "NO_REPLY",
    "HEARTBEAT_OK",
    "é👩‍👧",
    "don't. ",
    "<thi",
    "3.14",
];

proptest! {
    /// The provider's chunking of the answer does not matter.
    #[test]
    fn the_reply_does_not_depend_on_how_deltas_are_split(words in prop::collection::vec(prop::sample::select(FRAGMENTS.to_vec()), 1..30)) {
        let text = words.concat();
        let chars: Vec<String> = text.chars().map(String::from).collect();
        let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
        for when in [BlockBreak::Paragraph, BlockBreak::MessageEnd, BlockBreak::TextEnd] {
            let whole = blocks_and_partial(when, &[&text]);
            prop_assert_eq!(&blocks_and_partial(when, &words).0, &whole.0, "{:?}", text);
            prop_assert_eq!(&blocks_and_partial(when, &chars).0, &whole.0, "{:?}", text);
        }
        let trimmed = |(_, partial): (Vec<String>, String)| partial.split_whitespace().collect::<String>();
        prop_assert_eq!(trimmed(blocks_and_partial(BlockBreak::TextEnd, &chars)), trimmed(blocks_and_partial(BlockBreak::TextEnd, &[&text])), "{:?}", text);
    }

    /// A token is never shown as a separate message, in a block or in partial text.
    #[test]
    fn tokens_alone_are_never_shown(words in prop::collection::vec(prop::sample::select(vec!["NO_REPLY", "HEARTBEAT_OK", " ", "\n"]), 1..4)) {
        let (blocks, partial) = blocks_and_partial(BlockBreak::TextEnd, &words);
        if words.iter().filter(|word| !word.trim().is_empty()).count() <= 1 {
            prop_assert!(blocks.is_empty() && partial.trim().is_empty(), "{:?} {:?}", blocks, partial);
        }
    }
}

#[test]
fn several_thinking_blocks_are_streamed_as_lines_and_each_ends_once() {
    let mut replies = Replies::new(ReplyOptions { reasoning: ReasoningLevel::Stream, ..ReplyOptions::default() });
    let thinking = |text: &str| {
        Arc::new(Block::Thinking(pinch_llm::message::Thinking { thinking: text.into(), ..Default::default() }))
    };
    let update = |event: StreamEvent| agent(AgentEvent::MessageUpdate(event));
    let mut events = vec![agent(AgentEvent::MessageStart(message("")))];
    for (index, text) in [(0, "One."), (1, "Two.")] {
        events.push(update(StreamEvent::BlockStart { index, kind: BlockKind::Thinking { redacted: false } }));
        events.push(update(StreamEvent::Delta { index, text: text.into() }));
        events.push(update(StreamEvent::BlockEnd { index, block: thinking(text) }));
    }
    let Message::Assistant(ended) = &*message("Hi.") else { unreachable!() };
    let mut ended = AssistantMessage::clone(ended);
    ended.content.splice(0..0, [thinking("One."), thinking("Two.")]);
    let ended = Arc::new(Message::Assistant(Arc::new(ended)));
    events.push(agent(AgentEvent::MessageEnd { message: ended, error: None, queued: None }));
    let mut out = Pieces::new();
    events.iter().for_each(|event| replies.push(event, &mut out));
    let (mut raw, mut seen) = (String::new(), Vec::new());
    for piece in out {
        match piece {
            Piece::Reasoning(grown) => {
                grown.raw.apply(&mut raw);
                seen.push(raw.clone());
            }
            Piece::ReasoningEnd => seen.push("end".into()),
            _ => {}
        }
    }
    assert_eq!(seen, ["One.", "end", "One.\nTwo.", "end"]);
}

#[test]
fn all_visible_parts_of_a_delta_are_shown_at_once() {
    let text = "One <think>a</think>two <think>b</think>three";
    assert_eq!(
        blocks_and_partial(BlockBreak::TextEnd, &[text]),
        (vec!["One two three".to_owned()], "One two three".to_owned())
    );
    assert_eq!(blocks_and_partial(BlockBreak::TextEnd, &["I said NO"]).1, "I said NO");
}

#[test]
fn text_that_the_deltas_lack_is_shown_when_its_block_ends() {
    let mut replies = by_paragraph();
    let block = Arc::new(Block::text("Hello there."));
    let ended = agent(AgentEvent::MessageUpdate(StreamEvent::BlockEnd { index: 0, block }));
    assert_eq!(blocks(&mut replies, start().into_iter().chain([delta("Hello"), ended])), ["Hello there."]);
}
