//! Reports of failing extensions in print and JSON mode.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionFailure, ExtensionHandle, Extensions,
    HandlerFuture, Notification, Point, Points, Registrations,
};
use pinch_coding_agent::modes::{json, print};
use pinch_coding_agent::session::Prompt;
use pinch_llm::provider::scripted::ScriptedReply;

use crate::session::{SessionScene, in_memory, scene_with};
use pinch_testing::logs::host;

struct Fails;

impl Extension for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    fn points(&self) -> Points {
        Points::of([Point::TurnStart])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.command(Arc::new(Self));
        Ok(())
    }

    fn notified<'a>(&'a self, _: Notification<'a>, _: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        Box::pin(async { Err(ExtensionError::new("broken")) })
    }
}

impl Command for Fails {
    fn name(&self) -> &str {
        "nothing"
    }

    fn run<'a>(&'a self, _: &'a str, _: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async { Ok(()) })
    }
}

async fn failing() -> SessionScene {
    let extensions = Extensions::load(&host(), [Arc::new(Fails) as Arc<dyn Extension>]);
    scene_with(in_memory(), [ScriptedReply::text("ok")], |mut parts| {
        parts.extensions = extensions;
        parts
    })
    .await
}

fn failure() -> ExtensionFailure {
    ExtensionFailure { extension: "fails".into(), event: "turn_start".into(), error: "broken".into() }
}

#[tokio::test]
async fn failures_are_reported_separately_from_the_printed_answer() {
    let mut scene = failing().await;
    let (mut out, mut failed) = (Vec::new(), Vec::new());
    let prompts = vec![Prompt::text("hi")];
    print::print(&mut scene.session, prompts, &mut out, &mut |failure| failed.push(failure.clone())).await.unwrap();
    assert_eq!((String::from_utf8(out).unwrap().as_str(), failed), ("ok\n", vec![failure()]));
}

#[tokio::test]
async fn failures_are_reported_separately_from_event_lines() {
    let mut scene = failing().await;
    let (mut out, mut failed) = (Vec::new(), Vec::new());
    let prompts = vec![Prompt::text("hi")];
    json::json(&mut scene.session, prompts, &mut out, &mut |failure| failed.push(failure.clone())).await.unwrap();
    let lines = String::from_utf8(out).unwrap();
    assert!(lines.contains("agent_settled") && !lines.contains("extension_error"), "{lines}");
    assert_eq!(failed, [failure()]);
}

#[tokio::test]
async fn a_prompt_that_an_extension_handles_needs_no_answer() {
    let mut scene = failing().await;
    let mut out = Vec::new();
    let done = print::print(&mut scene.session, vec![Prompt::text("/nothing x")], &mut out, &mut |_| {}).await.unwrap();
    assert_eq!((out.as_slice(), done), (&b""[..], print::Printed::Answer));
}
