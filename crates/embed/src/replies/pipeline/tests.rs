use pinch_llm::ids::{ApiId, ModelId, ProviderId};
use pinch_llm::message::Text;

use super::super::blocks::BlockBreak;
use super::*;

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
    let mut out = Out::new();
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
fn after_a_restart_nothing_is_said_twice() {
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
fn half_a_tag_is_never_shown() {
    let mut replies = by_paragraph();
    let mut out = Out::new();
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
