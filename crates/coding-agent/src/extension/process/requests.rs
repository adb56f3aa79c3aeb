//! Requests from a process: one for every action and dialog.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pinch_llm::message::Content;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use serde_json::{Value, json};

use super::components;
use super::link::{Link, ProcessRequest};
use super::manifest::{facts, tool_of};
use super::models;
use super::points::{compacted, custom, member, needed, object, prompt_options, value};
use super::providers;
use super::renderers;
use crate::entry::{Entry, EntryBody, EntryId};
use crate::extension::actions::{DeliverAs, NavigateTree};
use crate::extension::command_cx::{CommandCx, Replaced};
use crate::extension::component::ComponentPlace;
use crate::extension::cx::ExtensionCx;
use crate::extension::rendering::ToolLook;
use crate::extension::snapshot::WorkingIndicator;
use crate::extension::ui::{Dialogs, NoteKind, UiUpdate, WidgetPlace};
use crate::extension::{ExecOptions, ExtensionError, FlagValue};
use crate::session_log::convert_to_llm;

type Done = Result<Value, ExtensionError>;

/// Performs a request.
pub(super) async fn serve(link: Arc<Link>, request: ProcessRequest) -> Done {
    let ProcessRequest { method, params, cancel } = request;
    let dialog = method.strip_prefix("ui/");
    if let Some((dialog, dialogs)) = dialog.zip(link.asker()) {
        return asked(ui(&link, &dialogs, dialog, &params), &cancel).await;
    }
    // A request that names a session applies to that one only, not to a later one.
    let cx = link.cx_of(member(&params, "generation")?, member(&params, "within")?)?;
    if let Some(dialog) = dialog {
        cx.session()?;
        return asked(ui(&link, &cx.ui(), dialog, &params), &cancel).await;
    }
    if let Some(method) = method.strip_prefix("models/") {
        return models::serve(&link, &cx, method, &params, &cancel).await;
    }
    if let Some(command) = method.strip_prefix("session/") {
        if link.n_commands.load(Ordering::Acquire) == 0 {
            return Err(ExtensionError::refused(format!("{command} can be used by commands only")));
        }
        return session(&link, &CommandCx::new(cx), command, &params).await;
    }
    let done = |()| Value::Null;
    match method.as_str() {
        "tool/update" => {
            let call: String = needed(&params, "toolCallId")?;
            if let Some(progress) = link.progress(&call) {
                progress.report(super::points::tool_output(params.get("partialResult").unwrap_or(&Value::Null))?);
            }
            Ok(Value::Null)
        }
        "provider/event" => {
            let stream: String = needed(&params, "stream")?;
            link.streams.feed(&stream, params.get("event").cloned().unwrap_or_default());
            Ok(Value::Null)
        }
        "sendMessage" => {
            let trigger = member(&params, "triggerTurn")?.unwrap_or(false);
            let message = custom(params.get("message").unwrap_or(&Value::Null))?;
            cx.send_message(message, delivery(&params)?, trigger).await.map(done)
        }
        "sendUserMessage" => {
            let content: Content = needed(&params, "content")?;
            cx.send_user_message(content, delivery(&params)?).await.map(done)
        }
        "report" => {
            let (event, error) = (needed::<String>(&params, "event")?, needed::<String>(&params, "error")?);
            cx.handle().report(&event, &ExtensionError::new(error));
            Ok(Value::Null)
        }
        "appendEntry" => {
            let kind: String = needed(&params, "customType")?;
            cx.append_entry(&kind, params.get("data").cloned()).await.map(done)
        }
        "setSessionName" => cx.set_session_name(&needed::<String>(&params, "name")?).await.map(done),
        "getSessionName" => Ok(value(&cx.session()?.session_name)),
        "setLabel" => {
            let target: String = needed(&params, "entryId")?;
            cx.set_label(EntryId::new(&target), member(&params, "label")?).await.map(done)
        }
        "exec" => exec(&cx, &params, cancel).await,
        "getActiveTools" => Ok(cx.active_tools()?.iter().map(|tool| Value::from(tool.spec().name.as_str())).collect()),
        "getAllTools" => Ok(cx.all_tools()?.iter().map(|tool| value(&tool.spec().declaration())).collect()),
        "setActiveTools" => cx.set_active_tools(needed(&params, "names")?).await.map(done),
        "registerTool" => {
            let said = params.get("tool").unwrap_or(&Value::Null);
            let (tool, look) = (tool_of(&link, &cx.handle(), said)?, renderers::tool_look(said)?);
            let name = tool.spec().name.clone();
            cx.register_tool(tool).await?;
            if look != ToolLook::default() {
                cx.register_tool_renderer(name, look, renderers::renderer(&link));
            }
            Ok(Value::Null)
        }
        "registerProvider" => {
            let (name, config) = providers::definition(&link, &params)?;
            cx.register_provider(&name, config).map(done)
        }
        "unregisterProvider" => cx.unregister_provider(&needed::<String>(&params, "name")?).map(done),
        "getCommands" => {
            let command = |(name, description): (String, Option<String>)| {
                object([("name", Some(name.into())), ("description", description.map(Value::from))])
            };
            Ok(cx.commands().into_iter().map(command).collect())
        }
        "getFlag" => Ok(match cx.flag(&needed::<String>(&params, "name")?) {
            None => Value::Null,
            Some(FlagValue::Boolean(yes)) => yes.into(),
            Some(FlagValue::Text(text)) => text.into(),
        }),
        "setModel" => {
            let (provider, model) = (needed::<String>(&params, "provider")?, needed::<String>(&params, "model")?);
            cx.set_model(provider.into(), model.into()).await.map(Value::from)
        }
        "getThinkingLevel" => Ok(cx.session()?.thinking.as_str().into()),
        "setThinkingLevel" => {
            let word: String = needed(&params, "level")?;
            let level =
                ThinkingLevel::parse(&word).ok_or_else(|| ExtensionError::new(format!("Unknown level: {word}")))?;
            cx.set_thinking(level).await.map(done)
        }
        "getModel" => Ok(cx.session()?.model.to_record()),
        "getSystemPrompt" => {
            let session = cx.session()?;
            let texts: Vec<&str> = session.system.sections().map(|(_, text)| text).collect();
            Ok(texts.join("\n\n").into())
        }
        "getSystemPromptOptions" => Ok(prompt_options(&*cx.session()?)),
        "getEntries" => Ok(cx.entries().await?.iter().map(|entry| entry.to_value()).collect()),
        "getBranch" => Ok(cx.branch().await?.iter().map(|entry| entry.to_value()).collect()),
        "getHeader" => {
            let header = cx.header().await?;
            Ok(serde_json::from_str(&header.to_line()).unwrap_or_default())
        }
        "getContext" => {
            let context = cx.conversation().await?;
            let model = context
                .model
                .map(|model| json!({"provider": model.provider.as_str(), "modelId": model.model_id.as_str()}));
            Ok(json!({
                "messages": context.messages,
                "llmMessages": convert_to_llm(&context.messages),
                "entryIds": context.entry_ids.iter().map(EntryId::as_str).collect::<Vec<_>>(),
                "thinkingLevel": context.thinking_level,
                "model": model,
            }))
        }
        "getContextUsage" => Ok(cx.context_usage().await?.map_or(
            Value::Null,
            |usage| json!({"tokens": usage.tokens, "contextWindow": usage.context_window, "percent": usage.percent()}),
        )),
        "isIdle" => cx.is_idle().map(Value::from),
        "hasPendingMessages" => cx.has_pending_messages().map(Value::from),
        "abort" => cx.abort().await.map(done),
        "shutdown" => cx.shutdown().await.map(done),
        "compact" => {
            let focus: Option<String> = member(&params, "customInstructions")?;
            match member(&params, "wait")?.unwrap_or(false) {
                true => CommandCx::new(cx).compact(focus).await.map(|done| compacted(&done)),
                false => cx.request_compaction(focus).await.map(done),
            }
        }
        "events/emit" => {
            cx.emit(&needed::<String>(&params, "topic")?, params.get("data").unwrap_or(&Value::Null));
            Ok(Value::Null)
        }
        "events/subscribe" => {
            let topic: String = needed(&params, "topic")?;
            let (of, link) = (topic.clone(), Arc::downgrade(&link));
            cx.on(
                &topic,
                Arc::new(move |data| {
                    if let Some(link) = link.upgrade() {
                        link.try_notify("events/heard", &json!({"topic": of, "data": data}));
                    }
                }),
            );
            Ok(Value::Null)
        }
        other => Err(ExtensionError::new(format!("Unknown method: {other}"))),
    }
}

fn delivery(params: &Value) -> Result<DeliverAs, ExtensionError> {
    match member::<String>(params, "deliverAs")? {
        None => Ok(DeliverAs::default()),
        Some(word) => DeliverAs::parse(&word).ok_or_else(|| ExtensionError::new(format!("Unknown delivery: {word}"))),
    }
}

fn millis(params: &Value, name: &str) -> Result<Option<Duration>, ExtensionError> {
    Ok(member::<u64>(params, name)?.filter(|ms| *ms > 0).map(Duration::from_millis))
}

/// Waits for a dialog, until its answer is no longer needed.
async fn asked(dialog: impl Future<Output = Done>, cancel: &Cancel) -> Done {
    cancel.run(dialog).await.unwrap_or(Ok(Value::Null))
}

async fn exec(cx: &ExtensionCx, params: &Value, cancel: Cancel) -> Done {
    let args: Vec<String> = member(params, "args")?.unwrap_or_default();
    let options = ExecOptions { cwd: member(params, "cwd")?, timeout: millis(params, "timeout")?, cancel };
    let ran = cx.exec(&needed::<String>(params, "command")?, &args, options).await?;
    Ok(json!({"stdout": ran.stdout, "stderr": ran.stderr, "code": ran.code, "killed": ran.killed}))
}

async fn ui(link: &Link, ui: &Dialogs, method: &str, params: &Value) -> Done {
    let text = |name| needed::<String>(params, name);
    // A handler waiting for the process also waits for the user's answer.
    let place = if method == "custom" { Some(components::place(params)?) } else { None };
    let asks = matches!(method, "select" | "confirm" | "input" | "editor");
    let _paused = (asks || place.as_ref().is_some_and(ComponentPlace::is_dialog)).then(|| link.pause());
    match method {
        "select" => {
            let options: Vec<String> = needed(params, "options")?;
            Ok(value(&ui.select(&text("title")?, &options, millis(params, "timeout")?).await))
        }
        "confirm" => {
            let message: Option<String> = member(params, "message")?;
            let message = message.unwrap_or_default();
            Ok(ui.confirm(&text("title")?, &message, millis(params, "timeout")?).await.into())
        }
        "input" => {
            let placeholder: Option<String> = member(params, "placeholder")?;
            Ok(value(&ui.input(&text("title")?, placeholder.as_deref(), millis(params, "timeout")?).await))
        }
        "editor" => {
            let prefill: Option<String> = member(params, "prefill")?;
            Ok(value(&ui.editor(&text("title")?, prefill.as_deref()).await))
        }
        "custom" => components::show(link, ui, text("component")?, place.unwrap_or_default()).await,
        "draw" => {
            let lines: Vec<String> = needed(params, "lines")?;
            link.components.draw(&text("component")?, lines, member(params, "text")?);
            Ok(Value::Null)
        }
        "key" | "submit" | "move" | "hide" | "focus" => {
            Ok(link.components.act(&text("component")?, components::action(method, params)?).into())
        }
        "close" => {
            link.components.close(&text("component")?);
            Ok(Value::Null)
        }
        "notify" => {
            let kind: Option<String> = member(params, "type")?;
            ui.show(UiUpdate::Note { message: text("message")?, kind: kind.as_deref().and_then(NoteKind::parse) });
            Ok(Value::Null)
        }
        "setStatus" => {
            ui.set_status(text("key")?, member(params, "text")?);
            Ok(Value::Null)
        }
        "setWidget" => {
            let place: Option<String> = member(params, "placement")?;
            ui.set_widget(text("key")?, member(params, "lines")?, place.as_deref().and_then(WidgetPlace::parse));
            Ok(Value::Null)
        }
        "setTitle" => {
            ui.set_title(text("title")?);
            Ok(Value::Null)
        }
        "setEditorText" => {
            ui.set_editor_text(text("text")?);
            Ok(Value::Null)
        }
        "pasteToEditor" => {
            ui.paste_to_editor(text("text")?);
            Ok(Value::Null)
        }
        "setWorkingMessage" => {
            ui.show(UiUpdate::WorkingMessage(member(params, "message")?));
            Ok(Value::Null)
        }
        "setWorkingVisible" => {
            ui.show(UiUpdate::WorkingVisible(needed(params, "visible")?));
            Ok(Value::Null)
        }
        "setWorkingIndicator" => {
            let frames: Option<Vec<String>> = member(params, "frames")?;
            let interval = millis(params, "intervalMs")?;
            ui.show(UiUpdate::WorkingIndicator(frames.map(|frames| WorkingIndicator { frames, interval })));
            Ok(Value::Null)
        }
        "setHiddenThinkingLabel" => {
            ui.show(UiUpdate::HiddenThinkingLabel(member(params, "label")?));
            Ok(Value::Null)
        }
        "setToolsExpanded" => {
            ui.show(UiUpdate::ToolsExpanded(needed(params, "expanded")?));
            Ok(Value::Null)
        }
        "redraw" => {
            ui.show(UiUpdate::RedrawCall { call_id: text("toolCallId")? });
            Ok(Value::Null)
        }
        "setTheme" => {
            ui.show(UiUpdate::Theme(text("name")?));
            Ok(Value::Null)
        }
        other => Err(ExtensionError::new(format!("Unknown method: ui/{other}"))),
    }
}

/// Parses an entry that a new session begins with, in the format of the log without ids.
fn first_entry(from: Value) -> Result<EntryBody, ExtensionError> {
    let kind: String = needed(&from, "type")?;
    let mut whole =
        object([("id", Some("new".into())), ("parentId", Some(Value::Null)), ("timestamp", Some("".into()))]);
    if let (Value::Object(whole), Value::Object(from)) = (&mut whole, from) {
        whole.extend(from);
    }
    match Entry::from_value(&whole).map(|entry| entry.body) {
        Some(
            body @ (EntryBody::Message(_)
            | EntryBody::Custom { .. }
            | EntryBody::CustomMessage(_)
            | EntryBody::SessionInfo { .. }
            | EntryBody::ModelChange { .. }
            | EntryBody::ThinkingLevelChange { .. }),
        ) => Ok(body),
        _ => Err(ExtensionError::new(format!("A new session cannot begin with this entry of type {kind}"))),
    }
}

async fn session(link: &Link, cx: &CommandCx, method: &str, params: &Value) -> Done {
    let left = |left: Replaced| {
        let generation = link.generation(&left.cx);
        object([
            ("cancelled", Some(left.cancelled.into())),
            ("text", left.text.map(Value::from)),
            ("session", Some(facts(link, &left.cx))),
            ("generation", Some(generation.into())),
        ])
    };
    match method {
        "waitForIdle" => cx.wait_for_idle().await.map(|()| Value::Null),
        "compact" => cx.compact(member(params, "customInstructions")?).await.map(|done| compacted(&done)),
        "new" => {
            let entries: Vec<Value> = member(params, "entries")?.unwrap_or_default();
            let entries = entries.into_iter().map(first_entry).collect::<Result<_, _>>()?;
            cx.new_session_with(member(params, "parentSession")?, entries).await.map(left)
        }
        "fork" => {
            let entry: String = needed(params, "entryId")?;
            let before = member::<String>(params, "position")?.as_deref() != Some("at");
            cx.fork(EntryId::new(&entry), before).await.map(left)
        }
        "navigate" => {
            let target: String = needed(params, "targetId")?;
            let to = NavigateTree {
                target: EntryId::new(&target),
                summarise: member(params, "summarize")?.unwrap_or(false),
                focus: member(params, "customInstructions")?,
                replace_instructions: member(params, "replaceInstructions")?.unwrap_or(false),
                label: member(params, "label")?,
            };
            cx.navigate_tree(to).await.map(left)
        }
        "switch" => cx.switch_session(needed(params, "path")?).await.map(left),
        "reload" => cx.reload().await.map(|()| Value::Null),
        other => Err(ExtensionError::new(format!("Unknown method: session/{other}"))),
    }
}
