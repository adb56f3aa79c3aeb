//! What extensions see and change at each point.

use std::sync::Arc;

use futures::StreamExt;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::entry::CustomMessage;
use pinch_coding_agent::event::{ExtensionFailure, SessionEvent};
use pinch_coding_agent::extension::{Extension, Extensions, Point, Points};
use pinch_coding_agent::session::{Prompt, SessionRun};
use pinch_coding_agent::session_log::SessionLog;
use pinch_llm::message::Content;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use self::probe::{Mood, Probe, ProbeLog};
use crate::session::{SessionScene, scene_with};
use pinch_testing::logs::{host, text_of};

mod probe;
mod notifications;
mod changes;
mod calls;
mod people;
mod sessions;

pub(crate) fn custom(text: &str) -> CustomMessage {
    CustomMessage { custom_type: "c".into(), content: Content::Text(text.into()), display: true, details: None }
}

/// Returns its text.
struct Echo(ToolSpec);

impl Echo {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolSpec::new("echo", "", Schema::new(json!({"type": "object"})))))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> Answer2<'a> {
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        Box::pin(async move { Ok(ToolOutput::text(text)) })
    }
}

type Answer2<'a> = futures::future::BoxFuture<'a, Result<ToolOutput, ToolError>>;

fn echo(text: &str) -> Reply {
    Reply::call("c1", "echo", JsonObject::from_iter([("text".to_owned(), Value::from(text))]))
}

struct HookFixture {
    scene: SessionScene,
    extensions: Extensions,
    notes: ProbeLog,
}

impl HookFixture {
    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    async fn ask(&mut self, text: &str) -> Vec<SessionEvent> {
        pull(self.scene.session.prompt(Prompt::text(text))).await
    }

    fn texts(&self) -> Vec<String> {
        self.scene.session.messages().iter().map(|message| text_of(message)).collect()
    }
}

pub(crate) async fn pull(run: SessionRun<'_>) -> Vec<SessionEvent> {
    run.map(|event| event.unwrap()).collect().await
}

pub(crate) fn failures(events: &[SessionEvent]) -> Vec<ExtensionFailure> {
    let failure = |event: &SessionEvent| match event {
        SessionEvent::ExtensionError(failure) => Some(failure.clone()),
        _ => None,
    };
    events.iter().filter_map(failure).collect()
}

/// Creates a session with extensions of these names and moods at some points.
async fn stage(
    log: SessionLog,
    replies: impl IntoIterator<Item = Reply>,
    points: &[Point],
    moods: &[(&'static str, Mood)],
) -> HookFixture {
    let notes = ProbeLog::default();
    let probes = moods.iter().map(|(name, mood)| {
        let (points, notes) = (Points::of(points.iter().copied()), Arc::clone(&notes));
        Arc::new(Probe { name, points, notes, mood: *mood }) as Arc<dyn Extension>
    });
    let extensions = Extensions::load(&host(), probes);
    let theirs = extensions.clone();
    let scene = scene_with(log, replies, |mut parts| {
        parts.extensions = theirs;
        parts.tools = [Echo::tool()].into_iter().collect();
        parts
    });
    HookFixture { scene: scene.await, extensions, notes }
}

const TWO: [(&str, Mood); 2] = [("a", Mood::Works), ("b", Mood::Works)];

/// Surrounds an extension of this mood with working ones.
fn around(mood: Mood) -> [(&'static str, Mood); 3] {
    [("a", Mood::Works), ("bad", mood), ("z", Mood::Works)]
}
