//! Histories in sessions: what is recorded of them, what the log writes, and which parts a request contains.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::StoreError;
use pinch_embed::runtime::native::history::record;
use pinch_llm::ids::ApiId;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::normalise::history::{RequestFacts, sanitised};
use pinch_llm::normalise::repair::MISSING_RESULT;
use pinch_llm::request::{Auth, Request};
use pinch_llm::wire::WireCall;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{CaseMessages, model_of, word};

const NOW: i64 = 1_767_225_600_000;

fn host() -> Host {
    Host::builder().clock(NOW, 1).build()
}

fn words(error: StoreError) -> String {
    error.to_string()
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

/// An in-memory session with these messages.
async fn session(messages: &[Arc<Message>]) -> Result<SessionLog, String> {
    let mut log = SessionLog::in_memory(&host(), NewSession::in_directory("/work")).with_missing_result(MISSING_RESULT);
    for message in messages {
        log.append_message(Arc::clone(message)).await.map_err(words)?;
    }
    Ok(log)
}

fn customs(log: &SessionLog) -> Vec<String> {
    let custom = |entry: Arc<pinch_coding_agent::entry::Entry>| match &entry.body {
        EntryBody::Custom { custom_type, .. } => Some(custom_type.clone()),
        _ => None,
    };
    log.entries().filter_map(custom).collect()
}

/// The history as a model receives it, and what the session then records about it.
pub(super) fn history(input: &Value) -> Result<Value, String> {
    let model = model_of(input)?;
    let mut read = CaseMessages::read(&input["messages"])?;
    (read.copies_signatures, read.hides_details) = (model.dialect.history.transcript.signed_thinking, true);
    let (model_changed, added) = block_on(async {
        // Only the first message is recorded; the messages need not be valid for a log.
        let first = &read.messages[..read.messages.len().min(1)];
        let mut log = session(first).await?;
        for entry in input["customEntries"].as_array().into_iter().flatten() {
            let custom_type = word(&entry["customType"]).to_owned();
            log.append(EntryBody::Custom { custom_type, data: entry.get("data").cloned() }).await.map_err(words)?;
        }
        let before = customs(&log).len();
        let changed = record(&mut log, &model, NOW).await.map_err(words)?;
        Ok((changed, customs(&log).split_off(before)))
    })?;
    let facts = RequestFacts { model_changed, ..RequestFacts::default() };
    let messages = sanitised(&read.messages, &model.dialect.history.transcript, facts);
    Ok(json!({"messages": read.write(&messages), "appendedCustomTypes": added}))
}

/// The start of a session that is prepared for a model twice.
pub(super) fn google_twice(input: &Value) -> Result<Value, String> {
    let model = model_of(input)?;
    let rules = &model.dialect.history.transcript;
    let read = CaseMessages::read(&input["messages"])?;
    block_on(async {
        let mut log = session(&read.messages).await?;
        let mut prepended = Vec::new();
        let mut first = String::new();
        for _ in 0..2 {
            record(&mut log, &model, NOW).await.map_err(words)?;
            let before = log.context().messages;
            let messages = sanitised(&before, rules, RequestFacts::default());
            prepended.push(messages.len() > before.len());
            first = messages.first().map_or_else(String::new, |message| message.role().to_owned());
        }
        // Each is recorded with one warning.
        let markers: Vec<String> = customs(&log).into_iter().filter(|custom| custom != "model-snapshot").collect();
        Ok(json!({"firstRole": first, "didPrepend": prepended, "warnings": markers.len(), "markers": markers.len(),
            "markerType": markers.first()}))
    })
}

/// The content of a session after appends; `FLUSH` marks the end of a run.
pub(super) fn guard(input: &Value) -> Result<Value, String> {
    let appends = input["appends"].as_array().ok_or("no appends")?;
    let all: Vec<Value> = appends.iter().filter(|append| append.is_object()).cloned().collect();
    let read = CaseMessages::read(&all.into())?;
    block_on(async {
        let mut log = session(&[]).await?;
        let mut messages = read.messages.iter();
        for append in appends {
            match messages.as_slice().first().filter(|_| append.is_object()) {
                Some(message) => {
                    log.append_message(Arc::clone(message)).await.map_err(words)?;
                    messages.next();
                }
                None => {
                    log.heal().await.map_err(words)?;
                }
            }
        }
        let pending: Vec<String> = log.awaited_calls().iter().map(|call| call.id.to_string()).collect();
        let persisted = log.context().messages;
        let roles: Vec<&str> = persisted.iter().map(|message| message.role()).collect();
        Ok(super::super::outputs(
            json!({"persisted": read.write(&persisted), "persisted_roles": roles, "pending": pending}),
        ))
    })
}

/// The prompt as it appears in a request of the provider's wire format.
pub(super) fn scrubbed(input: &Value) -> Result<Value, String> {
    let provider = word(&input["provider"]);
    let api = super::api_of(provider);
    let record = json!({"id": "m", "provider": provider, "api": api, "baseUrl": "http://localhost"});
    let model = Model::from_record(&record).map_err(|error| error.to_string())?;
    let message = Message::user(word(&input["prompt"]), NOW);
    let request = Request::new(model, vec![Arc::new(message)]).with_auth(Auth::key("key"));
    let format = pinch_llm::wire::builtin().into_iter().find(|format| format.api() == api).ok_or("no such format")?;
    let call = WireCall::new(&request, NOW);
    let encoded = format.encode(&call).map_err(|error| error.to_string())?;
    let content = &encoded.body["messages"][0]["content"];
    let text = if api == ApiId::ANTHROPIC_MESSAGES { &content[0]["text"] } else { content };
    Ok(text.as_str().or(content[0]["text"].as_str()).unwrap_or_default().into())
}
