//! The answer to `initialize`, and the tools and commands it declares.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolMode, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use super::link::Link;
use super::points::{member, needed, object, tool_output};
use super::providers;
use super::renderers;
use crate::extension::rendering::ToolLook;
use crate::extension::{
    Command, CommandCx, Completion, ExtensionCx, ExtensionError, ExtensionHandle, Flag, FlagKind, Point, Points,
    Registrations,
};

/// Returns the facts about a session that accompany every call.
///
/// The process is told what is on the screen before, in case the code that is called looks it up.
pub(super) fn facts(link: &Link, cx: &ExtensionCx) -> Value {
    link.tell_screen(&cx.ui());
    let generation = Some(link.generation(cx).into());
    let Ok(session) = cx.session() else { return object([("generation", generation)]) };
    object([
        ("generation", generation),
        ("cwd", Some(session.cwd.to_string_lossy().into())),
        ("hasUI", Some(cx.has_ui().into())),
        ("isIdle", cx.is_idle().ok().map(Value::from)),
        ("sessionId", Some(session.session_id.as_str().into())),
        ("sessionFile", session.session_file.as_ref().map(|path| path.to_string_lossy().into())),
        ("sessionName", session.session_name.as_deref().map(Value::from)),
        ("provider", Some(session.model.provider.as_str().into())),
        ("model", Some(session.model.id.as_str().into())),
        ("thinkingLevel", Some(session.thinking.as_str().into())),
        ("isProjectTrusted", Some(session.is_project_trusted.into())),
    ])
}

/// Registers the contents of the answer to `initialize`. Returns the subscribed points, and the names of unknown ones.
pub(super) fn register(
    link: &Arc<Link>,
    handle: &ExtensionHandle,
    manifest: &Value,
    to: &mut Registrations,
) -> Result<(), ExtensionError> {
    for tool in list(manifest, "tools")? {
        let look = renderers::tool_look(&tool)?;
        let tool = tool_of(link, handle, &tool)?;
        if look != ToolLook::default() {
            to.tool_renderer(tool.spec().name.clone(), look, renderers::renderer(link));
        }
        to.tool(tool);
    }
    for command in list(manifest, "commands")? {
        to.command(Arc::new(ProcessCommand::of(link, &command, "command/run", "name")?));
    }
    for shortcut in list(manifest, "shortcuts")? {
        let key: String = needed(&shortcut, "key")?;
        to.shortcut(key, Arc::new(ProcessCommand::of(link, &shortcut, "shortcut/run", "key")?));
    }
    for flag in list(manifest, "flags")? {
        let kind = match needed::<String>(&flag, "type")?.as_str() {
            "boolean" => FlagKind::Boolean { default: member(&flag, "default")? },
            "string" => FlagKind::Text { default: member(&flag, "default")? },
            other => return Err(ExtensionError::new(format!("Unknown type of flag: {other}"))),
        };
        to.flag(Flag { name: needed(&flag, "name")?, description: member(&flag, "description")?, kind });
    }
    for custom_type in member::<Vec<String>>(manifest, "messageRenderers")?.unwrap_or_default() {
        to.message_renderer(custom_type, renderers::renderer(link));
    }
    for provider in list(manifest, "providers")? {
        let (name, config) = providers::definition(link, &provider)?;
        to.provider(name, config);
    }
    Ok(())
}

fn list(manifest: &Value, name: &str) -> Result<Vec<Value>, ExtensionError> {
    Ok(member(manifest, name)?.unwrap_or_default())
}

/// Returns the points that a process subscribes to, and the names of unknown ones.
pub(super) fn subscriptions(manifest: &Value) -> Result<(Points, Vec<String>), ExtensionError> {
    let names: Vec<String> = member(manifest, "subscriptions")?.unwrap_or_default();
    let unknown = names.iter().filter(|name| Point::parse(name).is_none()).cloned().collect();
    Ok((Points::of(names.iter().filter_map(|name| Point::parse(name))), unknown))
}

/// Creates a tool from `{name, label?, description, parameters, executionMode?, outputSchema?}`.
pub(super) fn tool_of(
    link: &Arc<Link>,
    handle: &ExtensionHandle,
    said: &Value,
) -> Result<Arc<dyn Tool>, ExtensionError> {
    let parameters = said.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
    if !parameters.is_object() {
        return Err(ExtensionError::new("\"parameters\" of a tool is not an object"));
    }
    let description: String = member(said, "description")?.unwrap_or_default();
    let mut spec = ToolSpec::new(needed::<String>(said, "name")?, description, Schema::new(parameters));
    spec.label = member(said, "label")?.unwrap_or(spec.label);
    spec.output_schema = said.get("outputSchema").filter(|schema| schema.is_object()).cloned().map(Schema::new);
    if member::<String>(said, "executionMode")?.as_deref() == Some("sequential") {
        spec.mode = ToolMode::Sequential;
    }
    Ok(Arc::new(ProcessTool { spec, link: Arc::clone(link), handle: handle.clone() }))
}

/// A tool that a process implements.
struct ProcessTool {
    spec: ToolSpec,
    link: Arc<Link>,
    /// The session that the tool was registered with.
    handle: ExtensionHandle,
}

impl Tool for ProcessTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let failed = |error: ExtensionError| ToolError::new(error.to_string());
            let call = cx.call.as_str();
            let session = self.handle.cx().map_err(failed)?;
            let params = json!({
                "toolCallId": call, "name": self.spec.name, "params": input, "ctx": facts(&self.link, &session),
            });
            self.link.watch_progress(call, Some(cx.progress.clone()));
            let _watched = Watched { link: &self.link, call };
            let answer = cx.cancel.run(self.link.request("tool/execute", params)).await;
            let answer = answer.map_err(|_| ToolError::aborted())?.map_err(failed)?;
            tool_output(&answer).map_err(failed)
        })
    }
}

/// Receives progress of a call until dropped.
struct Watched<'a> {
    link: &'a Link,
    call: &'a str,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.link.watch_progress(self.call, None);
    }
}

/// A command or shortcut that a process implements.
struct ProcessCommand {
    name: String,
    description: Option<String>,
    completes: bool,
    method: &'static str,
    member: &'static str,
    link: Arc<Link>,
}

impl ProcessCommand {
    fn of(link: &Arc<Link>, said: &Value, method: &'static str, name: &'static str) -> Result<Self, ExtensionError> {
        Ok(Self {
            name: needed(said, name)?,
            description: member(said, "description")?,
            completes: member(said, "completes")?.unwrap_or(false),
            method,
            member: name,
            link: Arc::clone(link),
        })
    }
}

/// Marks a command as running until dropped.
struct RunningCommand<'a>(&'a Link);

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        self.0.command_ended();
    }
}

impl Command for ProcessCommand {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    fn complete<'a>(&'a self, typed: &'a str) -> BoxFuture<'a, Vec<Completion>> {
        Box::pin(async move {
            if !self.completes {
                return Vec::new();
            }
            let params = json!({"name": self.name, "prefix": typed});
            let asking = self.link.request("command/complete", params);
            // Do not let a slow process delay typing.
            let answer = tokio::time::timeout(super::COMPLETION_LIMIT, asking).await;
            let Ok(Ok(Value::Array(found))) = answer else { return Vec::new() };
            let completion = |said: &Value| {
                Some(Completion {
                    value: needed(said, "value").ok()?,
                    label: member(said, "label").ok()?,
                    description: member(said, "description").ok()?,
                })
            };
            found.iter().filter_map(completion).collect()
        })
    }

    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async move {
            self.link.n_commands.fetch_add(1, Ordering::AcqRel);
            let _running = RunningCommand(&self.link);
            let params = json!({self.member: self.name, "args": args, "ctx": facts(&self.link, cx)});
            self.link.request(self.method, params).await.map(drop)
        })
    }
}
