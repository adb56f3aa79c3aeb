use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::store::SessionRef;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::Image;
use pinch_llm::model::Model;
use pinch_stdx::host::{Env, Host};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::config::Config;
use crate::engine::{Engine, RunTarget};
use crate::run::decide::{Repair, RepairOutcome};
use crate::run::outcome::FailureStage;
use crate::run::scope::RunScope;
use crate::run::{AttemptEnd, AttemptOutcome, AttemptPlan, RunError, RunRequest, RunResult};
use crate::runner::RunEvent;
use crate::runtime::{AttemptEvent, AttemptRuntime, Attempts, QueueRefusal, RunControl};

/// Where a runtime ignores that its run is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ignores {
    Opening,
    Waiting,
    Streaming,
    Repairing,
}

impl AttemptRuntime for Ignores {
    fn id(&self) -> &str {
        "native"
    }

    fn open<'a>(&'a self, _: &'a RunScope, _: Arc<Model>) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        Box::pin(async move {
            if *self == Self::Opening {
                std::future::pending::<()>().await;
            }
            Ok(Box::new(*self) as Box<dyn Attempts>)
        })
    }
}

impl Attempts for Ignores {
    fn attempt<'a>(
        &'a mut self,
        _: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        _: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        match self {
            Self::Streaming => stream::repeat_with(|| {
                AttemptEvent::Session(SessionEvent::QueueUpdate { steering: Vec::new(), follow_up: Vec::new() })
            })
            .boxed(),
            Self::Repairing => {
                let text = "prompt is too long: 208310 tokens > 200000 maximum";
                let error = LlmError::new("anthropic".into(), LlmErrorKind::ContextOverflow, text);
                let end = AttemptEnd::Failed { stage: FailureStage::Answer, error: Arc::new(error) };
                stream::iter([AttemptEvent::End(Box::new(AttemptOutcome::new(end)))]).boxed()
            }
            _ => stream::pending().boxed(),
        }
    }

    fn repair<'a>(&'a mut self, _: &'a Repair, _: Arc<dyn RequestAuth>, _: Cancel) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(std::future::pending())
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(*self)
    }
}

impl RunControl for Ignores {
    fn queue(&self, _: QueueKind, _: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        Err(QueueRefusal::Unsupported)
    }

    fn is_streaming(&self) -> bool {
        false
    }
}

/// Stops a run once its runtime no longer listens, and returns its result and how long it took to end.
async fn stopped(runtime: Ignores) -> (Result<RunResult, RunError>, Duration) {
    let dir = TempDir::new().unwrap();
    let document = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}}});
    let (config, _) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    let host = Host::builder().env(Env::from_iter([("ANTHROPIC_API_KEY", "key")])).build();
    let engine = Engine::builder(dir.path()).host(host).config(config).runtime("native", Arc::new(runtime)).build();
    let request = RunRequest::new("s1", SessionRef::Path(dir.path().join("s1.jsonl")), "hello");
    let mut run = engine.run(request.workspace_dir(dir.path().join("workspace")));
    let began = loop {
        match run.next().await.expect("the run does not end before it is stopped") {
            RunEvent::Model { .. } if runtime == Ignores::Opening => break Instant::now(),
            RunEvent::Attempt(_) if runtime == Ignores::Waiting => break Instant::now(),
            RunEvent::Session(_) | RunEvent::Repair(_) => break Instant::now(),
            _ => {}
        }
    };
    assert_eq!(engine.abort(RunTarget::Run("s1"), CancelReason::User), 1);
    if runtime == Ignores::Streaming {
        // The clock only moves by itself while nothing happens.
        run.next().await;
        tokio::time::advance(HARD_END).await;
    }
    let mut n_events = 0;
    while run.next().await.is_some() {
        n_events += 1;
        assert!(n_events < 10_000, "{runtime:?}: the run does not end");
    }
    (run.result(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_ends_after_ten_seconds_whatever_its_runtime_does() {
    for runtime in [Ignores::Opening, Ignores::Waiting, Ignores::Streaming, Ignores::Repairing] {
        let (result, after) = stopped(runtime).await;
        assert_eq!(after.as_secs(), HARD_END.as_secs(), "{runtime:?}");
        match result {
            Ok(result) => assert!(result.meta.aborted, "{runtime:?}"),
            Err(error) => assert!(matches!(error, RunError::Cancelled(CancelReason::User)), "{runtime:?}: {error}"),
        }
    }
}
