//! Streaming a reply.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::Emitter;
use serde_json::Value;

use super::pieces::DeltaSizes;
use super::usage::PromptCost;
use super::{ScriptedReply, ScriptedStep};
use crate::error::{Emitted, LlmError, LlmErrorKind, classify};
use crate::event::stream::failure;
use crate::event::{BlockKind, Finished, StreamEvent};
use crate::ids::{ProviderId, ToolCallId};
use crate::message::block::{Text, Thinking};
use crate::message::{AssistantMessage, Block, StopReason, ToolCall};
use crate::request::Request;

/// A reply, or a function that makes it.
pub(super) enum Making {
    Ready(ScriptedReply),
    Now(BoxFuture<'static, Result<ScriptedReply, LlmError>>),
}

/// Context for streaming one answer.
pub(super) struct Playback {
    pub(super) pieces: DeltaSizes,
    pub(super) tokens_per_second: Option<f64>,
    pub(super) prompt: Option<PromptCost>,
    pub(super) message: AssistantMessage,
    pub(super) cancel: Cancel,
}

/// Streams a reply. The token is checked before every block and delta, but not inside a tool call of one delta.
pub(super) async fn play(making: Making, request: Request, mut show: Playback, emitter: Emitter<StreamEvent>) {
    let end = match perform(making, &request, &mut show, &emitter).await {
        Ok(finished) => finished,
        Err(error) => {
            let mut message = show.message;
            if let Some(prompt) = show.prompt.filter(|_| message.usage.is_zero()) {
                message.usage = prompt.usage(&message.content);
            }
            failure(message, error)
        }
    };
    emitter.emit(StreamEvent::End(end)).await;
}

async fn perform(
    making: Making,
    request: &Request,
    show: &mut Playback,
    emitter: &Emitter<StreamEvent>,
) -> Result<Finished, LlmError> {
    let provider = show.message.provider.clone();
    let reply = match making {
        Making::Ready(reply) => reply,
        Making::Now(making) => show.cancel.run(making).await.map_err(|_| aborted(&provider, Emitted::Nothing))??,
    };
    show.message.usage = reply.usage;
    show.message.response_id.clone_from(&reply.response_id);
    if let Some(observer) = &request.options.observer {
        let status = reply.status.unwrap_or(StatusCode::OK);
        observer.on_response(status, &HeaderMap::new(), &request.model).await?;
    }
    if let Some(text) = reply.fail_before_start {
        let kind = classify::classify(reply.status, None, &text);
        return Err(LlmError { status: reply.status, ..LlmError::new(provider, kind, text) });
    }
    if show.cancel.is_cancelled() {
        return Err(aborted(&provider, Emitted::Nothing));
    }
    emitter.emit(StreamEvent::Start(Arc::new(show.message.clone()))).await;
    let mut n_left = reply.break_after.as_ref().map_or(usize::MAX, |(n, _)| *n);
    let calls = reply
        .steps
        .iter()
        .any(|s| matches!(s, ScriptedStep::ToolCall { .. } | ScriptedStep::Block(Block::ToolCall(_))));
    let broken = |message: &AssistantMessage, text: &str| {
        let kind = classify::classify(None, None, text);
        LlmError { emitted: emitted(message), ..LlmError::new(message.provider.clone(), kind, text) }
    };
    for step in reply.steps {
        if matches!(step, ScriptedStep::Block(Block::Image(_) | Block::Other(_))) {
            continue;
        }
        let Some(block) = prepare(step, &mut show.pieces) else {
            show.cancel.cancelled().await;
            return Err(aborted(&provider, emitted(&show.message)));
        };
        if show.cancel.is_cancelled() {
            return Err(aborted(&provider, emitted(&show.message)));
        }
        stream_block(block, show, emitter, &mut n_left).await.map_err(|stop| match (stop, &reply.break_after) {
            (Interruption::Broken, Some((_, text))) => broken(&show.message, text),
            _ => aborted(&provider, emitted(&show.message)),
        })?;
    }
    if let (0, Some((_, text))) = (n_left, &reply.break_after) {
        return Err(broken(&show.message, text));
    }
    let message = &mut show.message;
    if let Some(prompt) = show.prompt.filter(|_| message.usage.is_zero()) {
        message.usage = prompt.usage(&message.content);
    }
    message.stop_reason = reply.stop.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::Stop });
    message.error_message = reply.error_message;
    let error = message.stop_reason.is_failure().then(|| {
        let text = message.error_message.clone().unwrap_or_default();
        let kind = match message.stop_reason {
            StopReason::Aborted => LlmErrorKind::Aborted,
            _ => classify::classify(None, None, &text),
        };
        Arc::new(LlmError { emitted: emitted(message), ..LlmError::new(provider, kind, text) })
    });
    Ok(Finished { message: Arc::new(message.clone()), error })
}

/// A block and its deltas.
struct PreparedBlock {
    kind: BlockKind,
    deltas: Vec<String>,
    /// The block at its start; calls are complete from the start.
    block: Block,
    /// The final block, if the deltas do not add up to it.
    whole: Option<Block>,
}

/// Prepares a step; returns `None` for one that hangs.
fn prepare(step: ScriptedStep, pieces: &mut DeltaSizes) -> Option<PreparedBlock> {
    Some(match step {
        ScriptedStep::Hang => return None,
        ScriptedStep::Text(deltas) => {
            PreparedBlock { kind: BlockKind::Text, deltas, block: Block::Text(Text::default()), whole: None }
        }
        ScriptedStep::Thinking(deltas) => PreparedBlock {
            kind: BlockKind::Thinking { redacted: false },
            deltas,
            block: Block::Thinking(Thinking::default()),
            whole: None,
        },
        ScriptedStep::ToolCall { id, name, arguments } => {
            let call = ToolCall::new(ToolCallId::from(id), name, arguments);
            let deltas = vec![Value::Object(call.arguments.clone()).to_string()];
            PreparedBlock { kind: kind_of(&call), deltas, block: Block::ToolCall(call), whole: None }
        }
        ScriptedStep::Block(whole) => match &whole {
            Block::Thinking(thinking) => PreparedBlock {
                kind: BlockKind::Thinking { redacted: thinking.redacted },
                deltas: pieces.cut(&thinking.thinking),
                block: Block::Thinking(Thinking::default()),
                whole: Some(whole),
            },
            Block::ToolCall(call) => {
                let empty = ToolCall { arguments: serde_json::Map::new(), ..call.clone() };
                let deltas = pieces.cut(&Value::Object(call.arguments.clone()).to_string());
                PreparedBlock { kind: kind_of(call), deltas, block: Block::ToolCall(empty), whole: Some(whole) }
            }
            other => PreparedBlock {
                kind: BlockKind::Text,
                deltas: pieces.cut(other.as_text().unwrap_or_default()),
                block: Block::Text(Text::default()),
                whole: Some(whole),
            },
        },
    })
}

fn kind_of(call: &ToolCall) -> BlockKind {
    BlockKind::ToolCall { id: call.id.clone(), name: call.name.clone() }
}

/// Reasons why a block is not streamed to its end.
enum Interruption {
    Aborted,
    Broken,
}

async fn stream_block(
    prepared: PreparedBlock,
    show: &mut Playback,
    emitter: &Emitter<StreamEvent>,
    n_left: &mut usize,
) -> Result<(), Interruption> {
    let index = show.message.content.len();
    let PreparedBlock { kind, deltas, block, whole } = prepared;
    let checks = whole.is_some() || !matches!(block, Block::ToolCall(_));
    emitter.emit(StreamEvent::BlockStart { index, kind }).await;
    show.message.content.push(Arc::new(block));
    for delta in deltas {
        if *n_left == 0 {
            return Err(Interruption::Broken);
        }
        *n_left -= 1;
        if let Some(pace) = show.tokens_per_second {
            let seconds = delta.len().div_ceil(4) as f64 / pace;
            let _cancelled = show.cancel.run(tokio::time::sleep(Duration::from_secs_f64(seconds))).await;
        }
        if checks && show.cancel.is_cancelled() {
            return Err(Interruption::Aborted);
        }
        match Arc::make_mut(&mut show.message.content[index]) {
            Block::Text(text) => text.text.push_str(&delta),
            Block::Thinking(thinking) => thinking.thinking.push_str(&delta),
            _ => {}
        }
        emitter.emit(StreamEvent::Delta { index, text: delta.into() }).await;
    }
    if let Some(whole) = whole {
        show.message.content[index] = Arc::new(whole);
    }
    emitter.emit(StreamEvent::BlockEnd { index, block: Arc::clone(&show.message.content[index]) }).await;
    Ok(())
}

fn emitted(message: &AssistantMessage) -> Emitted {
    if message.content.is_empty() { Emitted::Started } else { Emitted::Content }
}

fn aborted(provider: &ProviderId, emitted: Emitted) -> LlmError {
    LlmError { emitted, ..LlmError::new(provider.clone(), LlmErrorKind::Aborted, "Request was aborted") }
}
