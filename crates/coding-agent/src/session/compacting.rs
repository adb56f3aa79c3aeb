//! Compaction and branch summaries with the session's own model.

use std::borrow::Cow;
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::{CacheRetention, CallOptions, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;

use crate::compaction::branch::{BranchInstructions, LeftBranch};
use crate::compaction::hooks::{BeforeCompaction, PendingCompaction};
use crate::compaction::{
    self, CompactError, Compacted, CompactionReason, CompactionRules, CompactionSettings, Preparation, Strategy as _,
    Summarised, SummaryHooks, SummaryModel, SummaryPrompt, SummaryRetry, SummaryStep, branch, estimate,
};
use crate::entry::BranchSummary;
use crate::event::{SessionEvent, SummarySource};
use crate::extension::Notification;
use crate::recovery::TurnRetry;
use crate::session_log::SessionLog;

use super::AgentSession;
use super::answering::answering;
use super::changes::CurrentSelection;
use super::control::SessionControl;
use super::emitter::EventListener;

/// The model for summaries: a copy of the agent's, because a run borrows the agent.
pub(super) struct Summariser {
    model: Arc<Model>,
    provider: Arc<dyn Provider>,
    thinking: ThinkingLevel,
    options: CopyOnWrite<CallOptions>,
    host: Host,
    settings: CompactionSettings,
    retry: TurnRetry,
    hooks: Arc<dyn SummaryHooks>,
    control: SessionControl,
}

/// The requested compaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompactionTask<'a> {
    pub(super) reason: CompactionReason,
    pub(super) focus: Option<&'a str>,
    /// Whether a failed prompt is retried after success.
    pub(super) will_retry: bool,
}

impl CompactionTask<'_> {
    pub(super) fn automatic(reason: CompactionReason, will_retry: bool) -> Self {
        Self { reason, focus: None, will_retry }
    }
}

impl Summariser {
    pub(super) fn of(session: &AgentSession) -> Self {
        let agent = &session.agent;
        Self {
            settings: rules_now(&session.compaction, &session.control).for_model(&agent.model),
            model: Arc::clone(&agent.model),
            provider: Arc::clone(&agent.provider),
            thinking: agent.thinking,
            options: agent.options.clone(),
            host: agent.host.clone(),
            retry: session.plan.turn,
            hooks: Arc::clone(&session.summaries),
            control: session.control.clone(),
        }
    }

    /// Adopts the session's current model and level.
    pub(super) fn follow(&mut self, selection: &CurrentSelection, rules: &CompactionRules) {
        self.settings = rules_now(rules, &self.control).for_model(&selection.model);
        self.model = Arc::clone(&selection.model);
        self.thinking = selection.thinking;
    }

    /// Compacts a log and emits its start, retries and end. An automatic compaction emits nothing if there is nothing to summarise.
    pub(super) async fn compact(
        &self,
        log: &mut SessionLog,
        wanted: CompactionTask<'_>,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<Compacted, CompactError> {
        let preparation = compaction::prepare_log(log, &self.settings);
        if wanted.reason != CompactionReason::Manual
            && let Err(nothing) = preparation
        {
            return Err(nothing);
        }
        emitter.event(SessionEvent::CompactionStart { reason: wanted.reason }).await;
        let mut from_extension = false;
        let made = match preparation {
            Ok(preparation) => self.make(log, preparation, wanted, &mut from_extension, emitter, cancel).await,
            Err(nothing) => Err(nothing),
        };
        match &made {
            Ok(done) => {
                self.hooks.compacted(done);
                if let Some(entry) = log.entry(&done.entry_id) {
                    let notification = Notification::Compacted { done, entry: &entry, will_retry: wanted.will_retry };
                    self.control.notify_extensions(notification, log).await;
                }
            }
            Err(error) => {
                self.hooks.compaction_failed(wanted.reason, error);
                let (reason, message) = (wanted.reason, &*failure_text(error, wanted.reason));
                let notification = Notification::CompactFailed { reason, error, message, from_extension };
                self.control.notify_extensions(notification, log).await;
            }
        }
        emitter.event(end_of(&made, wanted)).await;
        made
    }

    async fn make(
        &self,
        log: &mut SessionLog,
        preparation: Preparation,
        wanted: CompactionTask<'_>,
        from_extension: &mut bool,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<Compacted, CompactError> {
        let CompactionTask { reason, focus, will_retry } = wanted;
        let ahead = PendingCompaction { preparation: &preparation, reason, focus, will_retry };
        let asking = async {
            match self.hooks.before_compaction(&ahead, cancel).await {
                BeforeCompaction::Continue => self.control.extensions().before_compact(&ahead).await,
                other => other,
            }
        };
        let before = cancel.run(answering(&self.control, log, asking)).await;
        let made: Summarised = match before.map_err(|_| CompactError::Cancelled)? {
            BeforeCompaction::Cancel => return Err(CompactError::Cancelled),
            BeforeCompaction::Instead(made) => {
                *from_extension = true;
                *made
            }
            BeforeCompaction::Continue => {
                match answering(&self.control, log, self.hooks.summarise(&ahead, cancel)).await {
                    Some(made) => made?,
                    None => self.summarise(log, &preparation, wanted, emitter, cancel).await?,
                }
            }
        };
        cancel.check().map_err(|_| CompactError::Cancelled)?;
        compaction::store(log, preparation, made, reason).await
    }

    /// Summarises with the session's own model.
    async fn summarise(
        &self,
        log: &mut SessionLog,
        preparation: &Preparation,
        wanted: CompactionTask<'_>,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<Summarised, CompactError> {
        let build = |prompt: SummaryPrompt| self.request(&prompt);
        let step = |step| emitter.event(step_event(step, SummarySource::Compaction, Some(wanted.reason)));
        let retry = SummaryRetry { plan: self.retry, host: &self.host, on_step: &step };
        let model = SummaryModel { focus: wanted.focus.map(str::to_owned), ..self.model(&build, retry) };
        answering(&self.control, log, model.summarise(preparation, cancel)).await
    }

    /// Summarises a branch being left.
    pub(super) async fn summarise_branch(
        &self,
        left: &LeftBranch,
        reserve_tokens: u64,
        wanted: &BranchInstructions,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<BranchSummary, CompactError> {
        let build = |prompt: SummaryPrompt| {
            let mut request = self.request(&prompt);
            request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Off);
            request
        };
        let step = |step| emitter.event(step_event(step, SummarySource::BranchSummary, None));
        let retry = SummaryRetry { plan: self.retry, host: &self.host, on_step: &step };
        branch::summarise(left, &self.model(&build, retry), reserve_tokens, wanted, cancel).await
    }

    fn model<'a>(
        &'a self,
        build: compaction::summarise::BuildRequest<'a>,
        retry: SummaryRetry<'a>,
    ) -> SummaryModel<'a> {
        let context_window = self.model.context_window;
        SummaryModel { provider: &*self.provider, build, focus: None, context_window, retry: Some(retry) }
    }

    /// Builds a summary request: without tools or cache writes, in a separate conversation.
    fn request(&self, prompt: &SummaryPrompt) -> Request {
        let mut options = CallOptions::clone(&self.options);
        options.max_tokens = Some(match self.model.max_tokens {
            0 => prompt.max_tokens,
            limit => prompt.max_tokens.min(limit),
        });
        options.cache_retention = Some(CacheRetention::None);
        options.session_id = Some(self.host.ids().uuid_v7(self.host.now_ms()).into());
        options.tool_choice = None;
        options.response_format = None;
        options.thinking = ThinkingChoice::Level(if self.model.reasoning { self.thinking } else { ThinkingLevel::Off });
        let message = Message::user(prompt.text.as_str(), self.host.now_ms());
        Request::new(Arc::clone(&self.model), vec![Arc::new(message)])
            .with_system(SystemPrompt::text(prompt.system))
            .with_options(options)
            .with_host(self.host.clone())
    }

    /// Returns whether a conversation is near the limit of the model's window, and a summary could help.
    pub(super) fn is_due(&self, log: &SessionLog) -> bool {
        !log.is_compaction_futile()
            && compaction::due(&self.settings, estimate::tokens_of(&log.context()).tokens, self.model.context_window)
    }
}

/// Returns the rules with the current switches applied.
fn rules_now<'a>(rules: &'a CompactionRules, control: &SessionControl) -> Cow<'a, CompactionRules> {
    match control.switches().compaction {
        Some(on) if on != rules.settings.enabled => {
            let mut changed = rules.clone();
            changed.settings.enabled = on;
            Cow::Owned(changed)
        }
        _ => Cow::Borrowed(rules),
    }
}

fn step_event(step: SummaryStep, source: SummarySource, reason: Option<CompactionReason>) -> SessionEvent {
    match step {
        SummaryStep::Scheduled { attempt, max_attempts, delay, error_message } => {
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message }
        }
        SummaryStep::Started => SessionEvent::SummaryRetryStart { source, reason },
        SummaryStep::Finished => SessionEvent::SummaryRetryEnd,
    }
}

/// Returns the event for the end of a compaction.
fn end_of(made: &Result<Compacted, CompactError>, wanted: CompactionTask<'_>) -> SessionEvent {
    let reason = wanted.reason;
    let (result, aborted, error_message) = match made {
        Ok(done) => (Some(Box::new(done.clone())), false, None),
        Err(CompactError::Cancelled) => (None, true, None),
        Err(error) => (None, false, Some(failure_text(error, reason))),
    };
    let will_retry = wanted.will_retry && made.is_ok();
    SessionEvent::CompactionEnd { reason, result, aborted, will_retry, error_message }
}

/// Returns the message for a failure.
fn failure_text(error: &CompactError, reason: CompactionReason) -> String {
    match reason {
        CompactionReason::Manual => format!("Compaction failed: {error}"),
        CompactionReason::Threshold => format!("Auto-compaction failed: {error}"),
        CompactionReason::Overflow => format!("Context overflow recovery failed: {error}"),
    }
}
