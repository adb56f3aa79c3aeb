//! The input of a decision: the terms of the run and what has happened so far.

use std::time::Duration;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::Usage;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;

use super::{Action, Decision, Finish, Mark};
use crate::config::agents::RunRetries;
use crate::config::preset::TransientRetries;
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;
use crate::run::outcome::{AttemptOutcome, AttemptPlan, AttemptStart, MissingAnswer};
use crate::run::request::Budget;
use crate::run::result::{FailoverError, RunErrorKind};
use crate::texts::{Phrase, TextTable};

/// What has been done about overflows.
#[derive(Clone, Debug, Default)]
pub(super) struct OverflowProgress {
    pub(super) n_compactions: u32,
    pub(super) truncation_tried: bool,
    /// The error text of the current overflow.
    pub(super) text: String,
    pub(super) oversized_tool_results: bool,
    /// Why the conversation could not be compacted.
    pub(super) not_compacted: Option<String>,
}

/// The terms under which one model is tried.
#[derive(Clone, Debug)]
pub struct RunTerms {
    /// The provider of the model.
    pub provider: ProviderId,
    /// The model.
    pub model: ModelId,
    /// Its context window in tokens; 0 = unknown.
    pub window: u64,
    /// Profiles that may be used, in order; if empty, credentials found without a profile are used.
    pub profiles: Vec<ProfileSlot>,
    /// Whether the user chose the profile, which is then the only one and is used even in cooldown.
    pub locked: bool,
    /// Whether another model follows if this one fails.
    pub has_fallbacks: bool,
    /// Whether one attempt may be made even if all profiles are in cooldown, for a reason that may have passed.
    pub allow_cooldown_probe: bool,
    /// Whether the model was chosen in order to probe it: one attempt is made whatever the reason of the cooldown.
    pub is_probe: bool,
    /// Why all profiles are in cooldown, if they are.
    pub cooldown_reason: Option<FailoverReason>,
    /// The initial thinking level.
    pub thinking: ThinkingLevel,
    /// How the first attempt begins: [`AttemptStart::Resume`] if an earlier model already added the prompt to the log, and
    /// [`AttemptStart::Continue`] if that model stopped without an answer.
    pub start: AttemptStart,
    /// The maximum number of attempts.
    pub retries: RunRetries,
    /// Retries of transient failures with the same profile.
    pub transient: TransientRetries,
    /// The maximum number of compactions after overflows.
    pub overflow_compactions: u32,
    /// Limits of the whole run.
    pub budget: Budget,
    /// Whether the conversation can be compacted; if not, tool results are truncated after an overflow.
    pub can_compact: bool,
    /// Whether the log contains the prompt of an attempt that failed; if not, each attempt adds it again.
    pub logs_prompt: bool,
    /// Whether a model that stopped without any text can be asked to go on.
    pub can_ask_again: bool,
    /// Whether an answer is required, and the model is asked for it once more at the end of the run.
    pub reply_required: bool,
    /// Whether the run succeeds without any text, because nobody asked something.
    pub may_say_nothing: bool,
    /// Whether a later candidate has a larger context window.
    pub larger_window_follows: bool,
    /// Texts for people.
    pub texts: TextTable,
}

impl RunTerms {
    /// Creates the default terms for a model without profiles.
    pub fn new(provider: impl Into<ProviderId>, model: impl Into<ModelId>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            window: 0,
            profiles: Vec::new(),
            locked: false,
            has_fallbacks: false,
            allow_cooldown_probe: false,
            is_probe: false,
            cooldown_reason: None,
            thinking: ThinkingLevel::Off,
            start: AttemptStart::Prompt,
            retries: RunRetries::default(),
            transient: TransientRetries::default(),
            overflow_compactions: 3,
            budget: Budget::default(),
            can_compact: true,
            logs_prompt: true,
            can_ask_again: true,
            reply_required: false,
            may_say_nothing: false,
            larger_window_follows: false,
            texts: TextTable::default(),
        }
    }
}

/// A profile and whether it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSlot {
    /// The profile.
    pub id: ProfileId,
    /// Whether it is not in cooldown.
    pub usable: bool,
}

/// The terms of a model, and what has happened so far.
#[derive(Clone, Debug)]
pub struct RunState {
    /// The terms of the model.
    pub terms: RunTerms,
    /// Wall clock time since the run began. The runner updates it before each decision.
    pub elapsed: Duration,
    /// Why the whole run was stopped, if it was: no further attempts are made. The runner sets it before each decision.
    pub stopped: Option<CancelReason>,
    pub(super) current: Option<usize>,
    pub(super) thinking: ThinkingLevel,
    pub(super) tried_thinking: Vec<ThinkingLevel>,
    pub(super) overflow: OverflowProgress,
    pub(super) timeout_compactions: u32,
    pub(super) overloads: u32,
    pub(super) same_profile_retries: u32,
    /// Time of the first transient failure since the last completed answer.
    pub(super) failing_since: Option<Duration>,
    pub(super) pending: NextStep,
    empty_answers: EmptyAnswers,
    /// Whether a tool of any attempt may have had side effects.
    pub(super) has_mutated: bool,
    /// Whether renewing the login of the current profile was attempted (`Some`), and succeeded (`true`).
    renewal: Option<bool>,
    iterations: u32,
    attempts_before: u32,
    /// Whether an earlier model already added the prompt to the log.
    prompt_is_logged: bool,
    usage: Usage,
    compactions: u32,
    last_call_usage: Option<Usage>,
}

/// How often a model was asked to go on after an answer without text.
#[derive(Clone, Copy, Debug, Default)]
struct EmptyAnswers {
    after_nothing: u32,
    after_reasoning: u32,
    /// Whether the next attempt asks again.
    asks_next: bool,
}

/// What follows the current wait or repair.
#[derive(Clone, Debug)]
pub(super) enum NextStep {
    /// The next attempt.
    Attempt,
    /// The next model.
    FailOver(Box<FailoverError>),
    /// The handling of a timeout.
    TimedOut { has_answer: bool },
    /// The handling of an overflow.
    Overflow,
}

impl RunState {
    /// Creates the state before the first attempt.
    pub fn new(terms: RunTerms) -> Self {
        Self {
            thinking: terms.thinking,
            terms,
            elapsed: Duration::ZERO,
            stopped: None,
            current: None,
            tried_thinking: Vec::new(),
            overflow: OverflowProgress::default(),
            timeout_compactions: 0,
            overloads: 0,
            same_profile_retries: 0,
            failing_since: None,
            renewal: None,
            pending: NextStep::Attempt,
            empty_answers: EmptyAnswers::default(),
            has_mutated: false,
            iterations: 0,
            attempts_before: 0,
            prompt_is_logged: false,
            usage: Usage::default(),
            compactions: 0,
            last_call_usage: None,
        }
    }

    /// Returns the initial state for the next model of the same run. Usage is carried over, and the prompt is in the log if an attempt was
    /// made by a runtime that logs it.
    #[must_use]
    pub fn next_model(&self, mut terms: RunTerms) -> Self {
        let is_logged = self.prompt_is_logged || (self.iterations > 0 && self.terms.logs_prompt);
        if is_logged && terms.logs_prompt {
            terms.start = match self.empty_answers.asks_next && terms.can_ask_again {
                true => AttemptStart::Continue,
                false => AttemptStart::Resume,
            };
        }
        let mut next = Self::new(terms);
        next.elapsed = self.elapsed;
        next.attempts_before = self.n_attempts();
        next.prompt_is_logged = is_logged;
        next.usage = self.usage;
        next.has_mutated = self.has_mutated;
        next.compactions = self.compactions;
        next.last_call_usage = self.last_call_usage;
        next
    }

    /// Returns the current profile.
    pub fn profile(&self) -> Option<&ProfileId> {
        Some(&self.terms.profiles.get(self.current?)?.id)
    }

    /// Returns the token usage of all attempts.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the token usage of the last call of all attempts.
    pub fn last_call_usage(&self) -> Option<&Usage> {
        self.last_call_usage.as_ref()
    }

    /// Returns the number of compactions during and between attempts.
    pub fn n_compactions(&self) -> u32 {
        self.compactions
    }

    /// Returns why the conversation could not be compacted after an overflow.
    pub(crate) fn not_compacted(&self) -> Option<&str> {
        self.overflow.not_compacted.as_deref()
    }

    /// Returns the number of attempts of the whole run.
    pub fn n_attempts(&self) -> u32 {
        self.attempts_before + self.iterations
    }

    /// Updates which profiles are in cooldown. The runner calls it after recording marks, because other runs also record marks.
    pub fn refresh_profiles(&mut self, mut usable: impl FnMut(&ProfileId) -> bool) {
        for slot in &mut self.terms.profiles {
            slot.usable = usable(&slot.id);
        }
    }

    pub(super) fn count_compaction(&mut self) {
        self.compactions += 1;
    }

    /// Adds what an attempt used, and whether it changed something.
    pub(crate) fn add_usage(&mut self, outcome: &AttemptOutcome) {
        self.usage.add(&outcome.usage);
        self.has_mutated |= outcome.has_mutated();
        self.compactions += outcome.compactions;
        if outcome.last_call_usage.is_some() {
            self.failing_since = None;
            self.last_call_usage = outcome.last_call_usage;
        }
    }

    /// Adds the usage of summaries made between attempts.
    pub(crate) fn add_repair_usage(&mut self, usage: &Usage) {
        self.usage.add(usage);
    }

    /// Selects the first profile that may be used; false if there is none.
    pub(super) fn take_first(&mut self) -> bool {
        if self.terms.profiles.is_empty() {
            return true;
        }
        let first = if self.terms.locked { Some(0) } else { self.terms.profiles.iter().position(|slot| slot.usable) };
        self.current = first.or_else(|| self.may_probe().then_some(0));
        self.current.is_some()
    }

    fn may_probe(&self) -> bool {
        use FailoverReason::{Overloaded, RateLimit, Unknown};
        let may_have_passed = matches!(self.terms.cooldown_reason, None | Some(RateLimit | Overloaded | Unknown));
        self.terms.is_probe || (self.terms.allow_cooldown_probe && may_have_passed)
    }

    /// Selects the next profile that may be used, without starting over; false if there is none.
    pub(super) fn advance(&mut self) -> bool {
        if self.terms.locked {
            return false;
        }
        let Some(current) = self.current else { return false };
        let Some(next) = (current + 1..self.terms.profiles.len()).find(|at| self.terms.profiles[*at].usable) else {
            return false;
        };
        self.current = Some(next);
        self.thinking = self.terms.thinking;
        self.tried_thinking.clear();
        self.same_profile_retries = 0;
        self.failing_since = None;
        self.renewal = None;
        true
    }

    /// Returns whether the login used by an attempt should be renewed: its server refused it, possibly before it expired.
    pub(crate) fn may_renew_login(&self, outcome: &AttemptOutcome) -> bool {
        let is_refused = outcome.error().is_some_and(|error| error.status.is_some_and(|status| status.as_u16() == 401));
        is_refused && self.stopped.is_none() && self.renewal.is_none()
    }

    /// Records whether the login was renewed, in which case the same profile is tried again.
    pub(crate) fn renewed_login(&mut self, is_renewed: bool) {
        self.renewal = Some(is_renewed);
    }

    /// Returns whether the last attempt failed with a login that has been renewed since.
    pub(super) fn take_renewed_login(&mut self) -> bool {
        self.renewal.replace(false) == Some(true)
    }

    /// Returns the mark for a failure of the current profile, which counts as in cooldown from now on.
    pub(super) fn mark_failure(&mut self, reason: FailoverReason, retry_after: Option<Duration>) -> Option<Mark> {
        let slot = self.terms.profiles.get_mut(self.current?)?;
        slot.usable = false;
        Some(Mark::Failure { profile: slot.id.clone(), reason, retry_after })
    }

    /// Returns whether a model that stopped without an answer is asked to go on, which the next attempt then does: once after an empty answer,
    /// and twice after reasoning. If an answer is required, the last time is the one at the end of the run.
    pub(super) fn may_ask_again(&mut self, missing: MissingAnswer) -> bool {
        let (asked, max) = match missing {
            MissingAnswer::Nothing => (&mut self.empty_answers.after_nothing, 1),
            MissingAnswer::OnlyReasoning => (&mut self.empty_answers.after_reasoning, 2),
            MissingAnswer::CutOff => return false,
        };
        // The end of the run is that of the last model.
        let max = max - u32::from(self.terms.reply_required && !self.terms.has_fallbacks);
        if !self.terms.can_ask_again || self.terms.may_say_nothing || self.stopped.is_some() || *asked >= max {
            return false;
        }
        *asked += 1;
        self.empty_answers.asks_next = true;
        true
    }

    /// Makes the next model go on from an empty answer that is in the log.
    pub(super) fn ask_next_model(&mut self) {
        self.empty_answers.asks_next = true;
    }

    /// Plans the next attempt, unless a limit is reached.
    pub(super) fn attempt(&mut self) -> Action {
        let max = self.terms.retries.bound(self.terms.profiles.len());
        if self.iterations >= max {
            return Action::Finish(Finish::Error {
                kind: RunErrorKind::RetryLimit,
                message: format!("Exceeded retry limit after {} attempts (max={max}).", self.iterations),
                text: self.terms.texts.get(Phrase::RetryLimit).to_owned(),
            });
        }
        if let Some(over) = self.over_budget() {
            return over;
        }
        let is_first = self.iterations == 0 || !self.terms.logs_prompt;
        let start = match std::mem::take(&mut self.empty_answers.asks_next) {
            true => AttemptStart::Continue,
            false if is_first => self.terms.start,
            false => AttemptStart::Resume,
        };
        self.iterations += 1;
        if !self.tried_thinking.contains(&self.thinking) {
            self.tried_thinking.push(self.thinking);
        }
        Action::Attempt(AttemptPlan {
            number: self.iterations,
            profile: self.profile().cloned(),
            thinking: self.thinking,
            start,
        })
    }

    /// Withdraws the last planned attempt, which was not made: it does not count, and the prompt is not in the log yet.
    pub(super) fn attempt_not_made(&mut self) {
        self.iterations = self.iterations.saturating_sub(1);
    }

    /// Ends the run if one of its limits is exceeded.
    pub(super) fn over_budget(&self) -> Option<Action> {
        let budget = &self.terms.budget;
        let spent = |what: Phrase, used: String, limit: String| Some((what, used, limit));
        let (what, used, limit) = if let Some(limit) = budget.reached_tokens(&self.usage) {
            spent(Phrase::BudgetTokens, self.usage.context_tokens().to_string(), limit.to_string())
        } else if let Some(limit) = budget.reached_cost(&self.usage) {
            spent(Phrase::BudgetCost, format!("{:.4}", self.usage.cost.total), limit.to_string())
        } else if let Some(limit) = budget.deadline.filter(|limit| self.elapsed >= *limit) {
            spent(Phrase::BudgetSeconds, self.elapsed.as_secs().to_string(), limit.as_secs().to_string())
        } else if let Some(limit) = budget.attempts.filter(|limit| self.n_attempts() >= *limit) {
            spent(Phrase::BudgetAttempts, self.n_attempts().to_string(), limit.to_string())
        } else {
            None
        }?;
        let in_words = |texts: &TextTable| texts.fill(what, [("used", &used), ("limit", &limit)]);
        Some(Action::Finish(Finish::Error {
            kind: RunErrorKind::Budget,
            text: self.terms.texts.fill(Phrase::Budget, [("spent", &in_words(&self.terms.texts))]),
            message: in_words(&TextTable::default()),
        }))
    }

    /// Returns the action with its marks, or the end of the run if a limit is exceeded.
    pub(super) fn within_budget(&self, marks: Vec<Mark>, action: Action) -> Decision {
        Decision { marks, action: self.over_budget().unwrap_or(action) }
    }
}
