//! The decoder of Anthropic's format: on its own, and through a whole session up to the reader of its events.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt;
use pinch_coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_coding_agent::recovery::RecoveryPlan;
use pinch_coding_agent::session::{AgentSession, Prompt, SessionParts};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::event::{Emit, EventStream};
use pinch_llm::frame::sse::SseDecoder;
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_llm::wire::{WireCall, WireFormat};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::pull::pulled;

use super::decoding::{self, CHUNK, format_of, model_of};
use super::{Figure, median};
use crate::transcript::anthropic;

const N_DELTAS: usize = 200_000;
const API: &str = "anthropic-messages";
const TIMES: usize = 7;

/// Chunks and bytes per second.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let body = Bytes::from(anthropic(N_DELTAS));
    let alone = median((0..TIMES).map(|_| decode(&body)).collect::<anyhow::Result<_>>()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let through = (0..TIMES).map(|_| runtime.block_on(through_session(&body)));
    let through = median(through.collect::<anyhow::Result<_>>()?);
    let (n, megabytes) = (N_DELTAS as f64 / 1e6, body.len() as f64 / 1e6);
    Ok(vec![
        Figure::at_least("decode anthropic text", n / alone, 2.5, "M delta/s"),
        Figure::at_least("decode anthropic text", megabytes / alone, 350.0, "MB/s"),
        Figure::at_least("decode through a session to its reader", n / through, 1.0, "M delta/s"),
    ])
}

/// Seconds for decoding everything.
fn decode(body: &[u8]) -> anyhow::Result<f64> {
    let wire = format_of(API)?;
    let began = Instant::now();
    let n_deltas = decoding::decode(&*wire, body)?;
    anyhow::ensure!(n_deltas == N_DELTAS, "{n_deltas} deltas came out");
    Ok(began.elapsed().as_secs_f64())
}

/// Plays answers from memory through the decoder.
struct PreparedAnswer {
    body: Bytes,
    wire: Arc<dyn WireFormat>,
}

impl Provider for PreparedAnswer {
    fn stream(&self, request: Request, _: Cancel) -> EventStream {
        let (body, wire, model) = (self.body.clone(), Arc::clone(&self.wire), Arc::clone(&request.model));
        EventStream::new(
            &model,
            0,
            pulled(move |emitter| async move {
                let mut decoder = wire.decoder(&WireCall::new(&request, 0));
                let (mut frames, mut emit) = (SseDecoder::default(), Emit::default());
                for chunk in body.chunks(CHUNK) {
                    frames.push(chunk);
                    while let Ok(Some(frame)) = frames.next_frame() {
                        decoder.push(frame, &mut emit);
                        while let Some(event) = emit.pop() {
                            emitter.emit(event).await;
                        }
                    }
                }
                decoder.finish(&mut emit);
                while let Some(event) = emit.pop() {
                    emitter.emit(event).await;
                }
            }),
        )
    }
}

/// Seconds for one prompt whose answer is decoded, folded, logged in memory and read.
async fn through_session(body: &Bytes) -> anyhow::Result<f64> {
    let host = Host::system();
    let provider = PreparedAnswer { body: body.clone(), wire: Arc::from(format_of(API)?) };
    let log = SessionLog::in_memory(&host, NewSession::in_directory("/"));
    let mut parts = SessionParts::new(host, log, model_of(API)?, Arc::new(provider));
    parts.system = SystemPrompt::text("Be brief.");
    parts.plan = RecoveryPlan::report();
    let mut session = AgentSession::start(parts).await?;
    let began = Instant::now();
    let mut run = session.prompt(Prompt::text("hello"));
    let mut n_events = 0;
    while let Some(event) = run.next().await {
        event?;
        n_events += 1;
    }
    anyhow::ensure!(n_events > N_DELTAS, "{n_events} events came out");
    Ok(began.elapsed().as_secs_f64())
}
