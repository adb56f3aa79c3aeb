//! Compaction by the session's own model.

use std::sync::Arc;

use pinch_agent_core::Agent;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::{Auth, CacheRetention, CallOptions, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use crate::compaction::{
    self, CompactError, Compacted, CompactionReason, CompactionSettings, SummaryModel, SummaryPrompt, estimate,
};
use crate::session_log::SessionLog;

/// Who makes summaries: the agent's model as it stands. A copy, because a run has the agent borrowed.
pub(super) struct Summariser {
    model: Arc<Model>,
    provider: Arc<dyn Provider>,
    thinking: ThinkingLevel,
    options: CallOptions,
    host: Host,
}

impl Summariser {
    pub(super) fn of(agent: &Agent) -> Self {
        Self {
            model: Arc::clone(&agent.model),
            provider: Arc::clone(&agent.provider),
            thinking: agent.thinking,
            options: agent.options.clone(),
            host: agent.host.clone(),
        }
    }

    /// Compacts a log by asking the model for a summary.
    pub(super) async fn compact(
        &self,
        log: &mut SessionLog,
        settings: &CompactionSettings,
        reason: CompactionReason,
        focus: Option<String>,
        cancel: &Cancel,
    ) -> Result<Compacted, CompactError> {
        let build = |prompt: SummaryPrompt| self.request(&prompt);
        let context_window = self.model.context_window;
        let model = SummaryModel { provider: &*self.provider, build: &build, focus, context_window };
        compaction::compact(log, settings, &model, reason, cancel).await
    }

    /// A summary's request: no tools, nothing kept in caches, a conversation of its own.
    fn request(&self, prompt: &SummaryPrompt) -> Request {
        let mut options = self.options.clone();
        options.max_tokens = Some(match self.model.max_tokens {
            0 => prompt.max_tokens,
            limit => prompt.max_tokens.min(limit),
        });
        options.cache_retention = Some(CacheRetention::None);
        options.session_id = Some(self.host.ids().uuid_v7(self.host.now_ms()));
        options.tool_choice = None;
        options.thinking = ThinkingChoice::Level(if self.model.reasoning { self.thinking } else { ThinkingLevel::Off });
        Request {
            model: Arc::clone(&self.model),
            system: SystemPrompt::text(prompt.system),
            messages: vec![Arc::new(Message::user(prompt.text.as_str(), self.host.now_ms()))],
            tools: Arc::default(),
            options,
            auth: Auth::default(),
            host: self.host.clone(),
        }
    }

    /// Whether a conversation has come near to the model's window.
    pub(super) fn is_due(&self, messages: &[Arc<Message>], settings: &CompactionSettings) -> bool {
        compaction::due(settings, estimate::context_tokens(messages).tokens, self.model.context_window)
    }
}
