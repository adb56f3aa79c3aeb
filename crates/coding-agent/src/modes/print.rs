//! Print mode: only the text of the answer.

use std::io::{self, Write};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_llm::message::StopReason;

use crate::event::SessionEvent;
use crate::extension::ExtensionFailure;
use crate::session::{AgentSession, Prompt, SessionError};

/// How print mode ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    /// The last answer was printed, or extensions handled all prompts without one.
    Answer,
    /// The last answer was printed, but was truncated at the output limit.
    CutOff,
    /// The last answer failed.
    Failed {
        /// The error message.
        text: String,
    },
    /// The last answer was cancelled.
    Aborted {
        /// The error message.
        text: String,
    },
}

/// Called for each failure of an extension.
pub type Failed<'a> = &'a mut (dyn FnMut(&ExtensionFailure) + Send);

/// Why print mode failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrintError {
    /// The session could not continue.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The output could not be written.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

/// Sends the prompts one after another and prints the text blocks of the last answer, each followed by a line feed. A failed prompt does
/// not stop the others; a cancelled one does. Extension failures are passed to `failed`.
///
/// # Errors
/// [`PrintError`].
pub fn print<'a>(
    session: &'a mut AgentSession,
    prompts: Vec<Prompt>,
    out: &'a mut (dyn Write + Send),
    failed: Failed<'a>,
) -> BoxFuture<'a, Result<Printed, PrintError>> {
    Box::pin(async move {
        let mut last = None;
        // Why the last failure is not retried, if known.
        let mut gave_up = None;
        let mut was_asked = false;
        for prompt in prompts {
            let mut run = session.prompt(prompt);
            while let Some(event) = run.next().await {
                match event? {
                    SessionEvent::Agent(AgentEvent::TurnEnd { message, .. }) => {
                        last = Some(message);
                        gave_up = None;
                    }
                    SessionEvent::Agent(AgentEvent::AgentStart) => was_asked = true,
                    SessionEvent::RetryEnd { success: false, final_error, .. } => gave_up = final_error,
                    SessionEvent::ExtensionError(failure) => failed(&failure),
                    _ => {}
                }
            }
            if last.as_ref().is_some_and(|answer| answer.stop_reason == StopReason::Aborted) {
                break;
            }
        }
        let Some(answer) = last else {
            return Ok(match was_asked {
                true => Printed::Failed { text: "There was no answer".to_owned() },
                false => Printed::Answer,
            });
        };
        let failed =
            || answer.error_message.clone().unwrap_or_else(|| format!("Request {}", answer.stop_reason.as_str()));
        match answer.stop_reason {
            StopReason::Error => return Ok(Printed::Failed { text: gave_up.unwrap_or_else(failed) }),
            StopReason::Aborted => return Ok(Printed::Aborted { text: failed() }),
            _ => {}
        }
        for block in &answer.content {
            if let Some(text) = block.as_text() {
                writeln!(out, "{text}")?;
            }
        }
        out.flush()?;
        Ok(if answer.stop_reason == StopReason::Length { Printed::CutOff } else { Printed::Answer })
    })
}
