//! A wire format: JSON requests, and server-sent events of one flat object each.
//!
//! ```text
//! data: {"kind":"text","text":"Hello"}
//! data: {"kind":"call","id":"c1","name":"read"}
//! data: {"kind":"arguments","text":"{\"path\":\"a\"}"}
//! data: {"kind":"usage","input":10,"output":5,"cached":0}
//! data: {"kind":"end","reason":"calls"}
//! ```

use http::{HeaderMap, StatusCode};
use pinch_llm::error::{LlmError, LlmErrorKind, classify};
use pinch_llm::event::Emit;
use pinch_llm::frame::Frame;
use pinch_llm::message::{Block, Content, Image, Message, StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use pinch_llm::normalise::{ids, system, transform};
use pinch_llm::request::{Request, ThinkingChoice, ToolChoice};
use pinch_llm::wire::frame_json::{self, TextMember, TextQuality};
use pinch_llm::wire::headers::{self, HeaderLayers};
use pinch_llm::wire::reply::{OpenBlock, ReplyBuilder};
use pinch_llm::wire::{Decoder, FrameKind, HttpRequest, WireCall, WireFormat, address, limit, refusal, tool_output};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The name of the format.
pub const API: &str = "acorn-chat";

/// The format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acorn;

impl WireFormat for Acorn {
    fn api(&self) -> &'static str {
        API
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        let request = call.request;
        let url = address::url(request, "chat")?;
        Ok(HttpRequest::new(url, all_headers(request)?, body(request)))
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(AcornDecoder { reply: ReplyBuilder::new(call.request, call.timestamp), current: None })
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        let text = String::from_utf8_lossy(body);
        let json: Option<Value> = serde_json::from_str(&text).ok();
        let message = json.as_ref().and_then(|json| json["error"]["message"].as_str());
        refusal::error(&call.request.model, status, headers, None, json.as_ref(), message.unwrap_or(text.trim()))
    }
}

fn all_headers(request: &Request) -> Result<HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    if let Some(key) = headers::key(request)? {
        layers.set("authorization", &key.bearer())?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}

fn body(request: &Request) -> Value {
    let model = &*request.model;
    let conversation = system::collapse(&request.system, &request.tools, &request.messages);
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", model.id.as_str().into());
    let prompt = conversation.head.text();
    if !prompt.trim().is_empty() {
        put("prompt", prompt.into());
    }
    let messages = transform(&conversation.messages, model, Some(&|id, _, _| ids::anthropic_id(id)));
    put("messages", messages.iter().filter_map(|message| written(message)).collect());
    let tools = conversation.head.tools.iter().map(|tool| {
        let rules = &model.dialect.schema;
        let parameters = tool.parameters.cleaned(rules.family, rules.hints);
        json!({"name": tool.name, "description": tool.description, "parameters": parameters})
    });
    put("tools", tools.collect());
    if let Some(limit) = limit::limit_to_send(request) {
        put("max_tokens", limit.into());
    }
    if let Some(temperature) = request.options.temperature.filter(|_| model.dialect.wire.temperature) {
        put("temperature", temperature.into());
    }
    if let ThinkingChoice::Level(level) = request.options.thinking {
        put("thinking", level.as_str().into());
    }
    if let Some(choice) = &request.options.tool_choice {
        put("tool_choice", ToolChoice::to_value(choice));
    }
    Value::Object(body)
}

fn written(message: &Message) -> Option<Value> {
    match message {
        Message::User(user) => {
            let parts: Vec<Value> = match &user.content {
                Content::Text(text) => text_part(text).into_iter().collect(),
                Content::Blocks(blocks) => blocks.iter().filter_map(part).collect(),
            };
            (!parts.is_empty()).then(|| json!({"role": "user", "parts": parts}))
        }
        Message::Assistant(answer) => {
            let parts: Vec<Value> = answer.content.iter().filter_map(|block| part(block)).collect();
            (!parts.is_empty()).then(|| json!({"role": "model", "parts": parts}))
        }
        Message::ToolResult(result) => {
            let images: Vec<Value> = tool_output::images(result).map(image_part).collect();
            Some(json!({
                "role": "tool", "tool_call_id": result.tool_call_id, "failed": result.is_error,
                "output": tool_output::output_text(result), "images": images,
            }))
        }
        // Already merged into the prompt; messages with unknown roles are not for models.
        _ => None,
    }
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => text_part(&text.text),
        Block::Image(image) => Some(image_part(image)),
        Block::ToolCall(call) => Some(json!({"id": call.id, "name": call.name, "arguments": call.arguments})),
        // Servers of this format do not take thinking back.
        _ => None,
    }
}

fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"text": text}))
}

fn image_part(image: &Image) -> Value {
    json!({"image": image.data, "type": image.mime_type})
}

#[derive(Deserialize)]
struct ForkEvent<'a> {
    #[serde(borrow, default)]
    kind: TextMember<'a>,
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    name: TextMember<'a>,
    #[serde(borrow, default)]
    reason: TextMember<'a>,
    #[serde(default, deserialize_with = "frame_json::count")]
    input: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    output: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cached: Option<u64>,
}

/// Decodes one response: one block after another.
struct AcornDecoder {
    reply: ReplyBuilder,
    /// The open block and the kind of its deltas.
    current: Option<(&'static str, usize)>,
}

impl AcornDecoder {
    fn open(&mut self, deltas: &'static str, block: OpenBlock, emit: &mut Emit) -> usize {
        if let Some((_, index)) = self.current.take() {
            self.reply.close(index, emit);
        }
        let index = self.reply.open(block, emit);
        self.current = Some((deltas, index));
        index
    }

    /// The open block for deltas of this kind, opened if necessary.
    fn block(&mut self, deltas: &'static str, new: OpenBlock, emit: &mut Emit) -> usize {
        match self.current {
            Some((kind, index)) if kind == deltas => index,
            _ => self.open(deltas, new, emit),
        }
    }

    fn event(&mut self, event: &ForkEvent<'_>, quality: TextQuality, emit: &mut Emit) -> FrameKind {
        let text = event.text.get().unwrap_or_default();
        match event.kind.get() {
            Some("text") => {
                let index = self.block("text", OpenBlock::Text(TextBlock::default()), emit);
                self.reply.delta(index, text, quality, emit);
            }
            Some("thinking") => {
                let index = self.block("thinking", OpenBlock::Thinking(Thinking::default()), emit);
                self.reply.delta(index, text, quality, emit);
            }
            Some("call") => {
                let (id, name) = (event.id.get().unwrap_or_default(), event.name.get().unwrap_or_default());
                self.open("arguments", OpenBlock::call(ToolCall::new(id, name, Map::new())), emit);
            }
            Some("arguments") => match self.current {
                Some(("arguments", index)) => self.reply.delta(index, text, quality, emit),
                _ => self.reply.fail_with(LlmErrorKind::Protocol, "arguments without a call", emit),
            },
            Some("usage") => {
                let (input, output, cache_read) =
                    (event.input.unwrap_or(0), event.output.unwrap_or(0), event.cached.unwrap_or(0));
                let total_tokens = input + output + cache_read;
                self.reply.set_usage(Usage { input, output, cache_read, total_tokens, ..Usage::default() }, emit);
            }
            Some("end") => self.end(event.reason.get().unwrap_or_default(), emit),
            Some("error") => {
                let kind = classify(None, None, text);
                self.reply.fail_with(kind, text, emit);
            }
            _ => return FrameKind::KeepAlive,
        }
        FrameKind::Content
    }

    fn end(&mut self, reason: &str, emit: &mut Emit) {
        self.reply.message.raw_stop_reason = Some(reason.to_owned());
        self.reply.start(emit);
        self.reply.close_all(emit);
        match reason {
            "done" => self.reply.done(StopReason::Stop, emit),
            "calls" => self.reply.done(StopReason::ToolUse, emit),
            "length" => self.reply.done(StopReason::Length, emit),
            other => self.reply.fail_with(LlmErrorKind::Protocol, format!("unknown end: {other}"), emit),
        }
    }
}

impl Decoder for AcornDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() {
            return FrameKind::KeepAlive;
        }
        let mut scratch = String::new();
        match frame_json::read::<ForkEvent<'_>>(frame.data, &mut scratch) {
            Ok(read) => self.event(&read.value, read.quality, emit),
            Err(why) => {
                self.reply.fail_with(frame_json::error_kind(&why), format!("invalid event: {why}"), emit);
                FrameKind::Content
            }
        }
    }

    fn finish(&mut self, emit: &mut Emit) {
        self.reply.fail_with(LlmErrorKind::StreamCut, "the stream ended too early", emit);
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
