//! Prepares a session's history for a model according to the model's rules, and records this.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::{NewSession, RecentSessions, SessionLog, convert_to_llm};
use pinch_coding_agent::store::{SessionStore, StoreError};
use pinch_llm::event::EventStream;
use pinch_llm::message::{Image, Message, ToolResult};
use pinch_llm::model::Model;
use pinch_llm::normalise::history::{RequestFacts, prepare};
use pinch_llm::normalise::repair::MISSING_RESULT;
use pinch_llm::normalise::turns::begins_with_answer;
use pinch_llm::provider::Provider;
use pinch_llm::request::{NativeThinking, Request, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{fitting, seen_images};
use crate::compaction::pruning::{CACHE_TTL, Pruner};
use crate::plugin::RunHooks;
use crate::run::scope::RunScope;

/// Type of the entry that records the model a session was last prepared for.
const MODEL_SNAPSHOT: &str = "model-snapshot";

/// Type of the entry that records that a message was inserted to begin the conversation.
const BOOTSTRAP: &str = "google-turn-ordering-bootstrap";

/// Prepares the messages of every request by the rules of its model, including those of the current run.
pub(super) struct PreparedHistory {
    inner: Arc<dyn Provider>,
    model_changed: bool,
    pruner: Option<Arc<Pruner>>,
}

impl PreparedHistory {
    pub(super) fn new(inner: Arc<dyn Provider>, model_changed: bool, pruner: Option<Arc<Pruner>>) -> Self {
        Self { inner, model_changed, pruner }
    }
}

impl Provider for PreparedHistory {
    fn stream(&self, mut request: Request, cancel: Cancel) -> EventStream {
        let rules = &request.model.dialect.history;
        let facts = RequestFacts {
            model_changed: self.model_changed,
            thinking: thinks(&request.options.thinking),
            unsigned_thinking: rules.allow_empty_signature,
        };
        let prepared = prepare(&request.messages, &rules.transcript, facts);
        // A request without messages would be rejected; in that case the history is sent unchanged.
        if prepared.iter().any(|message| !matches!(**message, Message::System(_))) {
            request.messages = prepared;
        }
        if let Some(pruner) = &self.pruner {
            pruner.prune(&mut request.messages);
        }
        seen_images::leave_out(&mut request.messages);
        if let Err(error) = fitting::fit(&mut request) {
            return EventStream::failed(&request.model, request.host.now_ms(), error);
        }
        self.inner.stream(request, cancel)
    }

    fn close_session(&self, session_id: &str) {
        self.inner.close_session(session_id);
    }
}

fn thinks(choice: &ThinkingChoice) -> bool {
    match choice {
        ThinkingChoice::Unset => false,
        ThinkingChoice::Level(level) => *level != ThinkingLevel::Off,
        ThinkingChoice::Native(NativeThinking { enabled, .. }) => *enabled != Some(false),
    }
}

/// Opens the session of a run, or creates it.
pub(in crate::runtime) async fn open_log(
    store: &Arc<dyn SessionStore>,
    scope: &RunScope,
    recent: Option<&RecentSessions>,
) -> Result<SessionLog, StoreError> {
    let request = &scope.request;
    let new = NewSession {
        cwd: scope.workspace.to_string_lossy().into_owned(),
        id: Some(request.session_id.clone()),
        parent_session: None,
    };
    let (host, store) = (&scope.host, Arc::clone(store));
    let mut log = match recent {
        Some(recent) => SessionLog::reopen_or_create(host, store, &request.session, new, recent).await?,
        None => SessionLog::open_or_create(host, store, &request.session, new).await?,
    };
    log.set_fence(Arc::clone(&scope.fence));
    Ok(log.with_missing_result(MISSING_RESULT))
}

/// Records which model a session is prepared for, as [`record`] does, and notifies plugins if the session is new.
///
/// # Errors
/// If the session cannot be written.
pub(in crate::runtime) async fn begin(
    log: &mut SessionLog,
    model: &Model,
    scope: &RunScope,
) -> Result<bool, StoreError> {
    let is_new = log.entry_ids().len() == 0;
    let changed = record(log, model, scope.host.now_ms()).await?;
    if is_new && !scope.request.is_indexed {
        scope.hooks.session_created();
    }
    Ok(changed)
}

/// Answers calls whose results are missing because their run was interrupted, so that plugins see these results too. Returns whether there
/// were any.
///
/// # Errors
/// If the session cannot be written.
pub(in crate::runtime) async fn answer_interrupted_calls(
    log: &mut SessionLog,
    hooks: &RunHooks,
    host: &Host,
) -> Result<bool, StoreError> {
    let calls = log.awaited_calls();
    for call in &calls {
        let result = ToolResult::text(call, MISSING_RESULT, true, host.now_ms());
        let result = hooks.written_placeholder(Arc::new(Message::ToolResult(result))).await;
        log.append(EntryBody::Message(result)).await?;
    }
    Ok(!calls.is_empty())
}

/// Records which model the session is prepared for, and whether its beginning had to be inserted. Returns true if another model was
/// recorded before.
///
/// # Errors
/// If the session cannot be written.
pub async fn record(log: &mut SessionLog, model: &Model, now: i64) -> Result<bool, StoreError> {
    let before = log.last_custom(MODEL_SNAPSHOT).flatten();
    let changed = before.as_ref().is_some_and(|before| !is_of(before, model));
    if before.is_none() || changed {
        let (provider, api, id) = (model.provider.as_str(), model.api.as_str(), model.id.as_str());
        let data = json!({"timestamp": now, "provider": provider, "modelApi": api, "modelId": id});
        append(log, MODEL_SNAPSHOT, data).await?;
    }
    let rules = &model.dialect.history.transcript;
    if rules.record_user_first
        && begins_with_answer(&convert_to_llm(&log.context().messages))
        && log.last_custom(BOOTSTRAP).is_none()
    {
        tracing::warn!(session = log.id().as_str(), "the conversation begins with an answer; inserting a user message");
        append(log, BOOTSTRAP, json!({"timestamp": now})).await?;
    }
    Ok(changed)
}

/// Records that the prompt of a session was sent, and which results are shortened in it.
///
/// # Errors
/// If the session cannot be written.
pub(super) async fn stamp(log: &mut SessionLog, pruner: &Pruner, model: &Model) -> Result<(), StoreError> {
    append(log, CACHE_TTL, pruner.stamp(model)).await
}

/// Returns the pruner for a session's requests.
pub(super) fn pruner(log: &SessionLog, scope: &RunScope, model: &Model) -> Option<Arc<Pruner>> {
    let last = log.last_custom(CACHE_TTL).flatten();
    Pruner::new(scope.pruning.as_ref()?, model, last.as_ref(), &scope.host).map(Arc::new)
}

fn is_of(snapshot: &Value, model: &Model) -> bool {
    let same = |name: &str, expected: &str| snapshot[name].as_str().unwrap_or_default() == expected;
    same("provider", model.provider.as_str())
        && same("modelApi", model.api.as_str())
        && same("modelId", model.id.as_str())
}

pub(super) async fn append(log: &mut SessionLog, custom_type: &str, data: Value) -> Result<(), StoreError> {
    let body = EntryBody::Custom { custom_type: custom_type.to_owned(), data: Some(data) };
    log.append(body).await.map(drop)
}

/// Returns the text and images of a prompt, after those of earlier messages of the user that were never answered. The session is moved back
/// before these, so that they appear only once; they remain in the file.
///
/// # Errors
/// If the session refers to an entry that does not exist.
pub fn take_prompt(log: &mut SessionLog, text: &str, images: &[Image]) -> Result<(String, Vec<Image>), StoreError> {
    // Latest first.
    let mut unanswered: Vec<(String, Vec<Image>)> = vec![(text.to_owned(), images.to_vec())];
    let mut at = log.leaf_id().cloned();
    let mut begin = None;
    while let Some(entry) = at.as_ref().and_then(|id| log.entry(id)) {
        match &entry.body {
            EntryBody::Message(message) => {
                let Message::User(user) = &**message else { break };
                unanswered.push((user.content.text("\n"), user.content.images().cloned().collect()));
                begin = Some(entry.parent_id.clone());
            }
            // Not part of the model's context.
            EntryBody::Custom { .. }
            | EntryBody::ModelChange { .. }
            | EntryBody::ThinkingLevelChange { .. }
            | EntryBody::SessionInfo { .. }
            | EntryBody::Usage(_)
            | EntryBody::Label { .. } => {}
            _ => break,
        }
        at = entry.parent_id.clone();
    }
    match begin {
        None => {}
        Some(Some(parent)) => log.move_to(&parent)?,
        Some(None) => log.reset_leaf(),
    }
    let (mut texts, images): (Vec<String>, Vec<Vec<Image>>) = unanswered.into_iter().rev().unzip();
    texts.retain(|text| !text.trim().is_empty());
    Ok((texts.join("\n\n"), images.concat()))
}
