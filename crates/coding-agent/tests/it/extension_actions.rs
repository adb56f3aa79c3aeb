//! What extensions register, and the actions they perform.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionHandle, Extensions, HandlerFuture,
    Notification, Point, Points, Registrations,
};
use pinch_coding_agent::session_log::SessionLog;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_llm::schema::Schema;
use serde_json::json;

use crate::session::{SessionScene, model, scene_with};
use pinch_testing::logs::{host, text_of};

mod commands;
mod tools;
mod registered;
mod requests;

type Runs = Box<dyn for<'a> Fn(&'a str, &'a CommandCx) -> ActionFuture<'a> + Send + Sync>;

type Bring = Box<dyn Fn(&mut Registrations, &ExtensionHandle) + Send + Sync>;

type ActionFuture<'a> = BoxFuture<'a, Result<(), ExtensionError>>;

/// A command that performs a given action.
struct ActionCommand {
    name: &'static str,
    work: Runs,
}

impl Command for ActionCommand {
    fn name(&self) -> &str {
        self.name
    }

    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> ActionFuture<'a> {
        (self.work)(args, cx)
    }
}

fn does(
    name: &'static str,
    work: impl for<'a> Fn(&'a str, &'a CommandCx) -> ActionFuture<'a> + Send + Sync + 'static,
) -> Arc<dyn Command> {
    Arc::new(ActionCommand { name, work: Box::new(work) })
}

/// An extension with given registrations.
struct Brings {
    name: &'static str,
    points: Points,
    bring: Bring,
    on_notification: Box<dyn for<'a> Fn(&'a ExtensionCx) -> ActionFuture<'a> + Send + Sync>,
}

impl Brings {
    fn of(name: &'static str, bring: impl Fn(&mut Registrations, &ExtensionHandle) + Send + Sync + 'static) -> Self {
        Self { name, points: Points::NONE, bring: Box::new(bring), on_notification: Box::new(nothing) }
    }

    fn at(
        self,
        point: Point,
        on_notification: impl for<'a> Fn(&'a ExtensionCx) -> ActionFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        Self { points: self.points.with(point), on_notification: Box::new(on_notification), ..self }
    }
}

impl Extension for Brings {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> Points {
        self.points
    }

    fn register(&self, to: &mut Registrations, handle: &ExtensionHandle) -> Result<(), ExtensionError> {
        (self.bring)(to, handle);
        Ok(())
    }

    fn notified<'a>(&'a self, _: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        (self.on_notification)(cx)
    }
}

fn nothing(_: &ExtensionCx) -> ActionFuture<'_> {
    Box::pin(async { Ok(()) })
}

struct NamedTool(ToolSpec);

impl Tool for NamedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(self.0.description.clone())) })
    }
}

pub(crate) fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    Arc::new(NamedTool(ToolSpec::new(name, description, Schema::new(json!({"type": "object"})))))
}

fn load(extensions: Vec<Brings>) -> Extensions {
    Extensions::load(&host(), extensions.into_iter().map(|one| Arc::new(one) as Arc<dyn Extension>))
}

async fn with(log: SessionLog, replies: impl IntoIterator<Item = Reply>, extensions: &Extensions) -> SessionScene {
    let extensions = extensions.clone();
    let find: pinch_coding_agent::session::FindModel =
        Arc::new(|_, id| (id.as_str() != "none").then(|| model(id.as_str(), true)));
    scene_with(log, replies, |mut parts| {
        parts.extensions = extensions;
        parts.find_model = Some(find);
        parts
    })
    .await
}

fn texts(scene: &SessionScene) -> Vec<String> {
    scene.session.messages().iter().map(|message| text_of(message)).collect()
}

fn names(scene: &SessionScene) -> Vec<String> {
    let requests = scene.provider.requests();
    let last = requests.last().unwrap();
    let mut names: Vec<String> = Vec::new();
    for message in &last.messages {
        if let Message::System(system) = &**message {
            names.retain(|name| !system.tools_removed.contains(name));
            names.extend(system.tools_added.iter().map(|tool| tool.name.clone()));
        }
    }
    names
}
