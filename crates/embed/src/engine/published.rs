//! Publishes a run's events to the engine's listeners.

use std::sync::Arc;

use serde_json::json;

use crate::delivery::{ReplyEvent, RunPublisher};
use crate::replies::piece::{AgentStream, Growth};
use crate::run::decide::{Repair, RepairOutcome, Wait, WaitFor};
use crate::runner::{RunEvent, millis};

/// Publishes an event of a run if listeners receive its kind.
pub(super) fn publish(run: &mut RunPublisher, event: &RunEvent) {
    match event {
        RunEvent::Reply(event) => publish_reply(run, event),
        RunEvent::Repair(Repair::Compact { trigger, observed_tokens }) => run.publish(AgentStream::Compaction, || {
            let mut data = json!({"phase": "start", "trigger": trigger.as_str()});
            if let Some(tokens) = observed_tokens {
                data["observedTokens"] = (*tokens).into();
            }
            Arc::new(data)
        }),
        RunEvent::Repaired(done @ (RepairOutcome::Compacted | RepairOutcome::NotCompacted { .. })) => {
            let will_retry = *done == RepairOutcome::Compacted;
            run.publish(AgentStream::Compaction, || Arc::new(json!({"phase": "end", "willRetry": will_retry})));
        }
        RunEvent::Wait(Wait { delay, reason, before, .. }) => run.publish(AgentStream::Retry, || {
            let mut data = json!({"phase": "wait", "reason": reason.as_str(), "delayMs": millis(*delay)});
            if let WaitFor::SameProfile { attempt, max } = before {
                (data["attempt"], data["max"]) = ((*attempt).into(), (*max).into());
            }
            Arc::new(data)
        }),
        _ => {}
    }
}

fn publish_reply(run: &mut RunPublisher, event: &ReplyEvent) {
    match event {
        ReplyEvent::Lifecycle(event) => run.lifecycle(event),
        ReplyEvent::PartialReply(Growth { at, restored, delta, media_urls, .. }) => {
            run.publish(AgentStream::Assistant, || {
                let mut data = json!({"delta": format!("{restored}{delta}"), "at": at});
                if !media_urls.is_empty() {
                    data["mediaUrls"] = json!(media_urls);
                }
                Arc::new(data)
            });
        }
        ReplyEvent::ReasoningStream(growth) => run.publish(AgentStream::Thinking, || {
            Arc::new(json!({"delta": growth.formatted.text, "at": growth.formatted.at}))
        }),
        ReplyEvent::Agent(note) => run.publish(note.stream, || Arc::clone(&note.data)),
        ReplyEvent::BlockReply(_)
        | ReplyEvent::BlockReplyFlush
        | ReplyEvent::AssistantMessageStart
        | ReplyEvent::Draft(_)
        | ReplyEvent::Notice(_)
        | ReplyEvent::ReasoningEnd
        | ReplyEvent::ToolResult(_) => {}
    }
}
