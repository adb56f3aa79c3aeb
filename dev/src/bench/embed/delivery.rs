//! The cost of passing a delta from the session to a sink that does nothing.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_embed::Engine;
use pinch_embed::agent_core::event::AgentEvent;
use pinch_embed::agent_core::queue::QueueKind;
use pinch_embed::coding_agent::auth::RequestAuth;
use pinch_embed::coding_agent::event::SessionEvent;
use pinch_embed::config::Config;
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure};
use pinch_embed::llm::event::{BlockKind, StreamEvent};
use pinch_embed::llm::message::{AssistantMessage, Block, Image, Message, StopReason};
use pinch_embed::llm::model::Model;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::run::request::BlockReplies;
use pinch_embed::run::scope::RunScope;
use pinch_embed::run::{AttemptEnd, AttemptOutcome, AttemptPlan, RunError};
use pinch_embed::runtime::{AttemptEvent, AttemptRuntime, Attempts, QueueRefusal, RunControl};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::json;

use crate::bench::Figure;

const PIECE: &str = "eighteen letters, ";

/// Numbers of deltas. The cost per delta must not depend on it.
const SIZES: [usize; 2] = [10_000, 1_000_000];

/// Maximum cost of a delta in microseconds.
const MAX_MICROS: f64 = 2.0;

pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    SIZES.iter().map(|n| delivery(*n)).collect()
}

fn delivery(n_deltas: usize) -> anyhow::Result<Figure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let dir = tempfile::tempdir()?;
    let models = json!([{"id": "m", "contextWindow": 200_000, "maxTokens": 4_096}]);
    let config = json!({
        "agents": {"defaults": {"model": {"primary": "p/m"}, "workspace": dir.path()}},
        "models": {"providers": {"p": {
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k", "models": models,
        }}},
    });
    let (config, _) = Config::from_document(config.as_object().cloned().unwrap_or_default(), dir.path());
    let host = Host::builder().home(dir.path()).temp(dir.path()).build();
    let engine = Engine::builder(dir.path().join("state")).host(host).config(config);
    let engine = engine.runtime("native", Arc::new(Played { n_deltas })).build();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let request = engine.request("s", None, None, "go");
        let blocks = BlockReplies {
            chunking: Some(pinch_embed::replies::chunk::Chunking::default()),
            ..BlockReplies::default()
        };
        let began = Instant::now();
        let run = runtime.block_on(engine.run(request.block_replies(blocks)).deliver(Arc::new(NoSink)));
        run.result?;
        best = best.min(began.elapsed().as_secs_f64() * 1e6 / n_deltas as f64);
    }
    Ok(Figure::at_most(format!("a delta from session to sink, of {n_deltas}"), best, MAX_MICROS, "µs"))
}

/// A sink that does nothing.
struct NoSink;

impl ReplySink for NoSink {
    fn send<'a>(&'a self, _: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }
}

/// A runtime whose attempts yield an answer of many chunks.
struct Played {
    n_deltas: usize,
}

impl AttemptRuntime for Played {
    fn id(&self) -> &str {
        "played"
    }

    fn open<'a>(
        &'a self,
        _: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        let attempts: Box<dyn Attempts + 'a> = Box::new(PlayedAttempts { n_deltas: self.n_deltas, model });
        Box::pin(std::future::ready(Ok(attempts)))
    }
}

struct PlayedAttempts {
    n_deltas: usize,
    model: Arc<Model>,
}

impl Attempts for PlayedAttempts {
    fn attempt<'a>(
        &'a mut self,
        _: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        _: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        let agent = |event| AttemptEvent::Session(SessionEvent::Agent(event));
        let (api, provider, id) = (self.model.api.clone(), self.model.provider.clone(), self.model.id.clone());
        let mut answer = AssistantMessage::pending(api, provider, id, 0);
        let start = Arc::new(Message::Assistant(Arc::new(answer.clone())));
        let block = Arc::new(Block::text(PIECE.repeat(self.n_deltas)));
        answer.content = vec![Arc::clone(&block)];
        answer.stop_reason = StopReason::Stop;
        let answer = Arc::new(answer);
        let message = Arc::new(Message::Assistant(Arc::clone(&answer)));
        let mut outcome = AttemptOutcome::new(AttemptEnd::Good);
        (outcome.last_assistant, outcome.has_payload) = (Some(answer), true);
        let before = [
            agent(AgentEvent::MessageStart(start)),
            agent(AgentEvent::MessageUpdate(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text })),
        ];
        let deltas = (0..self.n_deltas)
            .map(move |_| agent(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text: PIECE.into() })));
        let after = [
            agent(AgentEvent::MessageUpdate(StreamEvent::BlockEnd { index: 0, block })),
            agent(AgentEvent::MessageEnd { message, error: None, queued: None }),
            AttemptEvent::End(Box::new(outcome)),
        ];
        Box::pin(futures::stream::iter(before.into_iter().chain(deltas).chain(after)))
    }

    fn repair<'a>(&'a mut self, _: &'a Repair, _: Arc<dyn RequestAuth>, _: Cancel) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(std::future::ready(RepairOutcome::NotTruncated))
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(NoControl)
    }
}

/// Nothing is queued in these attempts.
struct NoControl;

impl RunControl for NoControl {
    fn queue(&self, _: QueueKind, _: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        Err(QueueRefusal::Unsupported)
    }

    fn is_streaming(&self) -> bool {
        true
    }
}
