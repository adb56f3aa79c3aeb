//! Single requests in each wire format: text, forced calls, cancellation, and prompts that are too long.
//!
//! Calls are forced with `tool_choice`, which makes the server's grammar produce arguments that match the schema.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pinch_llm::error::LlmErrorKind;
use pinch_llm::event::laws::Laws;
use pinch_llm::event::{Finished, StreamEvent};
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolDecl, ToolResult};
use pinch_llm::model::Model;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::{Auth, CallOptions, Request, SystemPrompt, Timeouts, ToolChoice};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::stdx::host::Host;
use serde_json::{Map, Value, json};

use super::server::{LlamaFormat, LlamaPython, LlamaServer, LlamaSettings, formats};
use crate::interop::table::ResultTable;

/// Tokens of a prompt and its answer.
const CONTEXT: u64 = 4_096;

/// Starts a server and runs the checks of all formats.
pub(super) async fn check(python: &LlamaPython, table: &mut ResultTable) -> anyhow::Result<()> {
    let server = LlamaServer::start(python, LlamaSettings { context: CONTEXT, grammar: None })?;
    for LlamaFormat { api, path, .. } in formats() {
        let client = LlamaClient { api, base_url: format!("{}{path}", server.url) };
        client.check(table).await;
    }
    Ok(())
}

/// A client of the server for one wire format.
struct LlamaClient {
    api: &'static str,
    base_url: String,
}

type LlamaCheck = Result<String, String>;

impl LlamaClient {
    async fn check(&self, table: &mut ResultTable) {
        table.row(self.api, "streams a text", self.text().await);
        let called = self.call().await;
        let answer = called.as_ref().ok().map(|(answer, _)| answer.clone());
        table.row(self.api, "calls a tool it is forced to", called.map(|(_, told)| told));
        if let Some(answer) = answer {
            table.row(self.api, "goes on after the tool's result", self.result(answer).await);
        }
        table.row(self.api, "is aborted in the middle", self.abort().await);
        table.row(self.api, "answers again after the abort", self.text().await);
        table.row(self.api, "refuses too long a prompt", self.overflow().await);
    }

    fn request(&self, messages: Vec<Message>, max_tokens: u64) -> Request {
        let record = json!({
            "id": "gemma", "api": self.api, "provider": "llama.cpp", "baseUrl": self.base_url, "reasoning": false,
            "input": ["text"], "maxTokens": 1024,
        });
        #[expect(clippy::expect_used, reason = "the record above is complete")]
        let model = Model::from_record(&record).expect("the record is complete");
        let minutes = |n: u64| Some(Duration::from_secs(60 * n));
        let timeouts = Timeouts::default().with_first_content(minutes(3)).with_idle(minutes(1)).with_total(minutes(6));
        Request::new(model, messages.into_iter().map(Arc::new).collect())
            .with_system(SystemPrompt::text("You are a helpful assistant."))
            .with_options({
                let mut options = CallOptions::default();
                options.max_tokens = Some(max_tokens);
                options.temperature = Some(0.0);
                options.timeouts = timeouts;
                options
            })
            .with_auth(Auth::keyless())
            .with_host(Host::system())
    }

    async fn text(&self) -> LlamaCheck {
        let (events, end) = pull(self.request(vec![Message::user("Count to five.", 1)], 24), None).await?;
        good(&end)?;
        let deltas: String = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Delta { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        let n_deltas = events.iter().filter(|event| matches!(event, StreamEvent::Delta { .. })).count();
        ensure(n_deltas > 3, || format!("only {n_deltas} deltas"))?;
        ensure(deltas == end.message.text(""), || "the deltas are not the text".into())?;
        let usage = end.message.usage;
        ensure(usage.output > 0 && usage.input + usage.cache_read > 5, || format!("usage {usage:?}"))?;
        ensure(end.message.response_id.is_some(), || "no response id".into())?;
        Ok(format!(
            "{n_deltas} deltas, {} + {} tokens, {}",
            usage.input + usage.cache_read,
            usage.output,
            end.message.stop_reason.as_str()
        ))
    }

    fn tool() -> ToolDecl {
        ToolDecl::new(
            "read",
            "Reads a file.",
            json!({
                "type": "object", "required": ["path", "lines"], "additionalProperties": false,
                "properties": {"path": {"type": "string", "enum": ["a.txt", "b.txt"]}, "lines": {"type": "integer", "minimum": 1, "maximum": 9}},
            }),
        )
    }

    /// The grammar lets the model write text before it calls, and this one would never stop: examples show it what to do.
    fn examples(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for (n, file) in ["b.txt", "a.txt", "b.txt"].into_iter().enumerate() {
            let call = ToolCall::new(
                ToolCallId::new(format!("call_{n}")),
                "read",
                Map::from_iter([("path".to_owned(), file.into()), ("lines".to_owned(), (n + 2).into())]),
            );
            let result = ToolResult::text(&call, "one two three", false, 3);
            let mut answer = AssistantMessage::pending(self.api.into(), "llama.cpp".into(), "gemma".into(), 2);
            answer.stop_reason = StopReason::ToolUse;
            answer.content.push(Arc::new(Block::ToolCall(call)));
            messages.push(Message::user(format!("Read the file {file}."), 1));
            messages.extend([Message::Assistant(Arc::new(answer)), Message::ToolResult(result)]);
        }
        messages.push(Message::user("Read the file a.txt.", 4));
        messages
    }

    async fn call(&self) -> Result<(Arc<AssistantMessage>, String), String> {
        let mut request = self.request(self.examples(), 160);
        request.tools = Arc::new([Self::tool()]);
        request.options.tool_choice = Some(ToolChoice::Required);
        let (_, end) = pull(request, None).await?;
        good(&end)?;
        let call = end.message.tool_calls().next().ok_or_else(|| format!("no call: {:?}", end.message.content))?;
        // The grammar lets the model call again and again until the limit cuts off the last call.
        let stop = end.message.stop_reason;
        ensure(matches!(stop, StopReason::ToolUse | StopReason::Length), || format!("stop {stop:?}"))?;
        let schema = Self::tool().parameters;
        let arguments = Value::Object(call.arguments.clone());
        call.validated_arguments(&schema).map_err(|why| why.text)?;
        let mut answer = (*end.message).clone();
        answer.content.retain(|block| block.as_tool_call().is_none_or(|other| other.id == call.id));
        let told = format!("{} {arguments}, {} calls, {}", call.name, end.message.tool_calls().count(), stop.as_str());
        Ok((Arc::new(answer), told))
    }

    async fn result(&self, answer: Arc<AssistantMessage>) -> LlamaCheck {
        let results: Vec<Message> = answer
            .tool_calls()
            .map(|call| Message::ToolResult(ToolResult::text(call, "one two three", false, 3)))
            .collect();
        let mut messages = self.examples();
        messages.push(Message::Assistant(answer));
        messages.extend(results);
        let mut request = self.request(messages, 16);
        request.tools = Arc::new([Self::tool()]);
        let (_, end) = pull(request, None).await?;
        good(&end)?;
        Ok(format!("{} tokens", end.message.usage.output))
    }

    async fn abort(&self) -> LlamaCheck {
        let request = self.request(vec![Message::user("Count to one thousand.", 1)], 512);
        let (events, end) = pull(request, Some(4)).await?;
        let kind = end.error.as_ref().map(|error| error.kind);
        ensure(kind == Some(LlmErrorKind::Aborted), || format!("ended as {kind:?}"))?;
        ensure(end.message.stop_reason == StopReason::Aborted, || format!("stop {:?}", end.message.stop_reason))?;
        Ok(format!("after {} events", events.len()))
    }

    async fn overflow(&self) -> LlamaCheck {
        let (_, end) = pull(self.request(vec![Message::user("word ".repeat(6_000), 1)], 16), None).await?;
        let error = end.error.as_ref().ok_or("the prompt is taken")?;
        ensure(error.kind == LlmErrorKind::ContextOverflow, || format!("{:?}: {}", error.kind, error.text))?;
        Ok(error.text.chars().take(60).collect())
    }
}

/// Polls a call to its end, cancelling it after the given number of events.
async fn pull(request: Request, cancel_after: Option<usize>) -> Result<(Vec<StreamEvent>, Finished), String> {
    let cancel = Cancel::new();
    let provider = ProviderRegistry::builtin().get(&request.model.api).map_err(|why| why.to_string())?;
    let mut stream = provider.stream(request, cancel.clone());
    let (mut events, mut laws) = (Vec::new(), Laws::default());
    while let Some(event) = stream.next().await {
        laws.check(&event)?;
        if let StreamEvent::End(finished) = event {
            return Ok((events, finished));
        }
        events.push(event);
        if cancel_after == Some(events.len()) {
            cancel.cancel(CancelReason::User);
        }
    }
    Err("the stream has no end".into())
}

fn good(end: &Finished) -> Result<(), String> {
    match &end.error {
        None => Ok(()),
        Some(error) => Err(format!("{:?}: {}", error.kind, error.text)),
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
