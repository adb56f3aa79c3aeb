//! Requests from a process about models, and to models.

use std::sync::Arc;

use futures::StreamExt as _;
use pinch_llm::event::{BlockKind, Finished, StreamEvent};
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, CacheRetention, CallOptions, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Env;
use serde_json::{Map, Value, json};

use super::link::{Link, line};
use super::points::{member, needed, object};
use crate::extension::cx::ExtensionCx;
use crate::extension::error::ExtensionError;

/// Performs a request whose method is `models/` and this word.
pub(super) async fn serve(
    link: &Link,
    cx: &ExtensionCx,
    method: &str,
    params: &Value,
    cancel: &Cancel,
) -> Result<Value, ExtensionError> {
    let known = cx.models()?;
    match method {
        "list" => Ok(known.all().iter().map(|model| model.to_record()).collect()),
        "find" => {
            let (provider, id): (ProviderId, ModelId) = (needed(params, "provider")?, needed(params, "id")?);
            Ok(known.find(&provider, &id).map_or(Value::Null, |model| model.to_record()))
        }
        "scoped" => {
            let record = |(model, level): (Arc<Model>, Option<ThinkingLevel>)| {
                object([
                    ("model", Some(model.to_record())),
                    ("thinkingLevel", level.map(|level| level.as_str().into())),
                ])
            };
            Ok(known.scoped().into_iter().map(record).collect())
        }
        "provider" => {
            let provider: ProviderId = needed(params, "provider")?;
            Ok(json!({
                "name": known.display_name(&provider), "configured": known.is_configured(&provider),
                "oauth": known.is_using_oauth(&provider),
            }))
        }
        "credentials" => {
            let model = model_in(params)?;
            Ok(known.credentials(&model).await?.map_or(Value::Null, |auth| credentials(&auth)))
        }
        "complete" => {
            let request = request(cx, params)?;
            let stream: Option<String> = member(params, "stream")?;
            // A handler waiting for the process also waits for the model.
            let _paused = link.pause();
            let finished = answer(link, cx, request, stream.as_deref(), cancel).await?;
            Ok(Message::Assistant(finished.message).to_value())
        }
        other => Err(ExtensionError::new(format!("Unknown method: models/{other}"))),
    }
}

fn model_in(params: &Value) -> Result<Arc<Model>, ExtensionError> {
    let model = Model::from_record(params.get("model").unwrap_or(&Value::Null));
    model.map(Arc::new).map_err(|error| ExtensionError::new(format!("model: {error}")))
}

pub(super) fn credentials(auth: &Auth) -> Value {
    let headers: Map<String, Value> =
        auth.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let variables = |env: &Env| -> Map<String, Value> {
        env.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    };
    object([
        ("apiKey", auth.key.as_ref().map(|key| key.reveal().into())),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
        ("baseUrl", auth.base_url.as_deref().map(Value::from)),
        ("env", auth.env.as_ref().map(|env| variables(env).into())),
    ])
}

/// Changes the options of a call. What is not an option of every format goes to the format as it is.
fn options(mut options: CallOptions, given: Map<String, Value>) -> Result<CallOptions, ExtensionError> {
    for (name, value) in given {
        let wrong = || ExtensionError::new(format!("Invalid option {name}: {value}"));
        match name.as_str() {
            "temperature" => options.temperature = Some(value.as_f64().ok_or_else(wrong)?),
            "maxTokens" => options.max_tokens = Some(value.as_u64().ok_or_else(wrong)?),
            "sessionId" => options.session_id = Some(value.as_str().ok_or_else(wrong)?.into()),
            "metadata" => options.metadata = Some(value.as_object().ok_or_else(wrong)?.clone()),
            "reasoning" | "reasoningEffort" => {
                let level = value.as_str().and_then(ThinkingLevel::parse).ok_or_else(wrong)?;
                options.thinking = ThinkingChoice::Level(level);
            }
            "cacheRetention" => {
                options.cache_retention = Some(match value.as_str() {
                    Some("none") => CacheRetention::None,
                    Some("short") => CacheRetention::Short,
                    Some("long") => CacheRetention::Long,
                    _ => return Err(wrong()),
                });
            }
            "headers" => {
                let headers = value.as_object().ok_or_else(wrong)?.iter();
                options.headers.extend(headers.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))));
            }
            _ => drop(options.native.insert(name, value)),
        }
    }
    Ok(options)
}

fn request(cx: &ExtensionCx, params: &Value) -> Result<Request, ExtensionError> {
    let context = params.get("context").unwrap_or(&Value::Null);
    let options = options(cx.call_options()?, member(params, "options")?.unwrap_or_default())?;
    let messages: Vec<Message> = member(context, "messages")?.unwrap_or_default();
    let tools: Vec<ToolDecl> = member(context, "tools")?.unwrap_or_default();
    let system = member::<String>(context, "systemPrompt")?.map(SystemPrompt::text).unwrap_or_default();
    let messages = messages.into_iter().map(Arc::new).collect();
    Ok(Request::new(model_in(params)?, messages).with_system(system).with_tools(tools).with_options(options))
}

/// Calls a model. With the id of a stream, the process is told each event.
async fn answer(
    link: &Link,
    cx: &ExtensionCx,
    request: Request,
    stream: Option<&str>,
    cancel: &Cancel,
) -> Result<Finished, ExtensionError> {
    let mut events = cx.call(request, cancel.clone())?;
    let mut names = Vec::new();
    while let Some(event) = events.next().await {
        if let StreamEvent::End(finished) = event {
            return Ok(finished);
        }
        if let Some((stream, event)) = stream.zip(record(&event, &mut names)) {
            let params = json!({"stream": stream, "event": event});
            link.send(line(&json!({"jsonrpc": "2.0", "method": "models/event", "params": params}))).await?;
        }
    }
    Err(ExtensionError::new("The answer has no end"))
}

/// Converts an event to a record like pi's, without the message so far. `names` has the first words of the types of blocks' events.
fn record(event: &StreamEvent, names: &mut Vec<&'static str>) -> Option<Value> {
    let name = |names: &[&'static str], index: usize| names.get(index).copied().unwrap_or("text");
    match event {
        StreamEvent::Start(message) => {
            Some(json!({"type": "start", "message": Message::Assistant(Arc::clone(message)).to_value()}))
        }
        StreamEvent::BlockStart { index, kind } => {
            let (word, block) = match kind {
                BlockKind::Text | BlockKind::Commentary => ("text", json!({"type": "text", "text": ""})),
                BlockKind::Thinking { .. } => ("thinking", json!({"type": "thinking", "thinking": ""})),
                BlockKind::ToolCall { id, name } => {
                    ("toolcall", json!({"type": "toolCall", "id": id.as_str(), "name": name, "arguments": {}}))
                }
            };
            names.push(word);
            Some(json!({"type": format!("{word}_start"), "contentIndex": index, "block": block}))
        }
        StreamEvent::Delta { index, text } => {
            Some(json!({"type": format!("{}_delta", name(names, *index)), "contentIndex": index, "delta": text}))
        }
        StreamEvent::BlockEnd { index, block } => {
            Some(json!({"type": format!("{}_end", name(names, *index)), "contentIndex": index, "block": **block}))
        }
        StreamEvent::Usage(_) | StreamEvent::End(_) => None,
    }
}
