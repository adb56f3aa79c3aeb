//! The call history of a session, and the detectors.

use std::collections::VecDeque;

use pinch_llm::message::Block;
use serde_json::Value;

use super::config::{LoopConfig, OnRepeat};
use super::fingerprint::{CallEnd, call_hash, outcome_hash, unknown_tool};
use crate::policy::canonical_name;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopLevel {
    /// The call may run; the model is warned.
    Warning,
    /// The call must not run.
    Critical,
}

/// The detector that found a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// A nonexistent tool is called repeatedly.
    UnknownToolRepeat,
    /// Too many calls without progress, of any kind.
    GlobalCircuitBreaker,
    /// A process is polled without making progress.
    KnownPollNoProgress,
    /// Two calls alternate.
    PingPong,
    /// The same call is repeated.
    GenericRepeat,
    /// The calls after a compaction repeat those before it.
    CompactionLoopPersisted,
}

impl Detector {
    /// Returns the name used in logs and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownToolRepeat => "unknown_tool_repeat",
            Self::GlobalCircuitBreaker => "global_circuit_breaker",
            Self::KnownPollNoProgress => "known_poll_no_progress",
            Self::PingPong => "ping_pong",
            Self::GenericRepeat => "generic_repeat",
            Self::CompactionLoopPersisted => "compaction_loop_persisted",
        }
    }
}

/// A detected loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopFinding {
    /// Its severity.
    pub level: LoopLevel,
    /// The detector that found it.
    pub detector: Detector,
    /// Number of calls in the loop.
    pub count: usize,
    /// Message for the model.
    pub message: String,
}

impl LoopFinding {
    /// Returns a result's content with the message appended to its last text.
    pub fn append_to(&self, content: &[Block]) -> Vec<Block> {
        let mut content = content.to_vec();
        match content.iter_mut().rev().find_map(|block| Some((block.as_text()?.to_owned(), block))) {
            Some((text, block)) => *block = Block::text(format!("{text}\n\n{}", self.message)),
            None => content.push(Block::text(self.message.clone())),
        }
        content
    }
}

/// The end of messages about repetition.
const ADVICE: &str = "Repeated identical tool call detected, please try a different approach.";

/// One call.
#[derive(Clone, Debug)]
struct CallRecord {
    id: String,
    run: Option<String>,
    tool: String,
    params: Value,
    hash: String,
    result: Option<String>,
    unknown_tool: Option<String>,
}

/// Number of calls after a compaction to compare.
const AFTER_COMPACTION: usize = 3;
/// Maximum bytes of arguments kept until the result arrives: they determine how to hash it.
const MAX_PARAMS: usize = 4096;

/// The latest calls of a session, newest last.
#[derive(Clone, Debug, Default)]
pub struct CallHistory {
    records: VecDeque<CallRecord>,
    /// Hashes of calls and results before the last compaction, while they are relevant.
    before_compaction: Vec<(String, String)>,
    n_after_compaction: usize,
    n_repeated_after_compaction: usize,
}

impl CallHistory {
    /// Adds a call that is about to run. The oldest calls beyond the history size are dropped.
    pub fn record(&mut self, config: &LoopConfig, id: &str, tool: &str, params: &Value, run: Option<&str>) {
        self.records.push_back(CallRecord {
            id: id.to_owned(),
            run: run.map(str::to_owned),
            tool: canonical_name(tool),
            params: if params.to_string().len() <= MAX_PARAMS { params.clone() } else { action_of(params) },
            hash: call_hash(tool, params),
            result: None,
            unknown_tool: None,
        });
        while self.records.len() > config.history_size {
            self.records.pop_front();
        }
    }

    /// Adds the result of a call.
    pub fn record_outcome(&mut self, id: &str, outcome: CallEnd<'_>) {
        let Some(record) = self.records.iter_mut().rev().find(|record| record.id == id && record.result.is_none())
        else {
            return;
        };
        record.result = outcome_hash(&record.tool, &record.params, outcome);
        record.params = Value::Null;
        if let CallEnd::Error(text) = outcome {
            record.unknown_tool = unknown_tool(text);
        }
        let Some(result) = record.result.clone() else { return };
        let is_repeated = self.before_compaction.contains(&(record.hash.clone(), result));
        if self.repeats_after_compaction() && !is_repeated {
            // The model does something else now.
            self.before_compaction.clear();
            (self.n_after_compaction, self.n_repeated_after_compaction) = (0, 0);
        } else if self.n_after_compaction < AFTER_COMPACTION && !self.before_compaction.is_empty() {
            self.n_after_compaction += 1;
            self.n_repeated_after_compaction += usize::from(is_repeated);
        }
    }

    /// Returns whether the calls after the last compaction were only repetitions of those before it.
    fn repeats_after_compaction(&self) -> bool {
        self.n_after_compaction == AFTER_COMPACTION && self.n_repeated_after_compaction == AFTER_COMPACTION
    }

    /// Records that the session was compacted: if the following calls repeat the earlier ones, compaction did not help.
    pub fn compacted(&mut self) {
        let finished =
            self.records.iter().rev().filter_map(|record| Some((record.hash.clone(), record.result.clone()?)));
        self.before_compaction = finished.take(AFTER_COMPACTION).collect();
        // If the calls since the last compaction were only repetitions, another one does not help either.
        let only_repeats = self.n_repeated_after_compaction == self.n_after_compaction;
        if !only_repeats {
            self.n_after_compaction = 0;
            self.n_repeated_after_compaction = 0;
        }
    }

    /// Returns the hashes of the remembered calls, oldest first.
    pub fn hashes(&self) -> impl ExactSizeIterator<Item = &str> {
        self.records.iter().map(|record| record.hash.as_str())
    }

    /// Returns the loop that a call would continue, if any. With a run, only its calls and calls without a run are considered.
    pub fn detect(&self, config: &LoopConfig, tool: &str, params: &Value, run: Option<&str>) -> Option<LoopFinding> {
        if !config.enabled {
            return None;
        }
        let tool = canonical_name(tool);
        let counts = |record: &&CallRecord| match (run, &record.run) {
            (Some(run), Some(of)) => run == of,
            _ => true,
        };
        let view = HistoryView {
            records: self.records.iter().filter(counts).collect(),
            hash: call_hash(&tool, params),
            is_poll: is_poll(&tool, params),
            tool: &tool,
        };
        let repeats_again = || self.before_compaction.iter().any(|(hash, _)| *hash == view.hash);
        if self.repeats_after_compaction() && repeats_again() {
            return Some(critical(
                Detector::CompactionLoopPersisted,
                AFTER_COMPACTION,
                format!(
                    "{tool} and the calls before it repeat what was done before the conversation was compacted, {AFTER_COMPACTION} times with the same results."
                ),
            ));
        }
        view.detect(config)
    }
}

fn action_of(params: &Value) -> Value {
    serde_json::json!({"action": params["action"]})
}

/// Returns whether a call only polls for progress.
fn is_poll(tool: &str, params: &Value) -> bool {
    match tool {
        "process" => matches!(params["action"].as_str(), Some("poll" | "log")),
        _ => tool == "command_status",
    }
}

fn critical(detector: Detector, count: usize, text: String) -> LoopFinding {
    LoopFinding { level: LoopLevel::Critical, detector, count, message: format!("CRITICAL: {text}") }
}

fn warning(detector: Detector, count: usize, text: String) -> LoopFinding {
    LoopFinding { level: LoopLevel::Warning, detector, count, message: format!("WARNING: {text}") }
}

/// The relevant calls, and the call about to run.
struct HistoryView<'a> {
    records: Vec<&'a CallRecord>,
    tool: &'a str,
    hash: String,
    is_poll: bool,
}

impl HistoryView<'_> {
    fn detect(&self, config: &LoopConfig) -> Option<LoopFinding> {
        let tool = self.tool;
        let n = self.unknown_tail();
        if n >= config.unknown_tool {
            let text = format!(
                "{tool} was called {n} times, and there is no such tool. Use one of the tools that are offered."
            );
            return Some(critical(Detector::UnknownToolRepeat, n, text));
        }
        let streak = self.streak();
        let breaker = |n: usize, what: &str| {
            let text = format!(
                "{tool} was called {n} times {what} without progress. The global circuit breaker stops this call. Try a different approach, or report what blocks you."
            );
            Some(critical(Detector::GlobalCircuitBreaker, n, text))
        };
        if streak >= config.breaker {
            return breaker(streak, "with identical arguments");
        }
        if let Some((n, n_patterns)) = self.few_patterns(config.breaker) {
            return breaker(n, &format!("with {n_patterns} repeated argument patterns"));
        }
        if self.is_poll && config.poll_no_progress {
            let text = |advice: &str| {
                format!(
                    "{tool} was polled {streak} times with identical arguments, and there was no progress. {advice}"
                )
            };
            if streak >= config.critical {
                let text = text("Stop polling: end the process or report what it waits for.");
                return Some(critical(Detector::KnownPollNoProgress, streak, text));
            }
            if streak >= config.warning {
                let text = text("Wait longer between polls, or check whether the process is stuck.");
                return Some(warning(Detector::KnownPollNoProgress, streak, text));
            }
        }
        self.ping_pong(config).or_else(|| self.repeat(config, streak))
    }

    /// Counts the trailing calls of this tool that failed because it does not exist.
    fn unknown_tail(&self) -> usize {
        let own = self.records.iter().rev().filter(|record| record.tool == self.tool);
        let mut names = own.map(|record| record.unknown_tool.as_deref());
        let Some(Some(newest)) = names.next() else { return 0 };
        1 + names.take_while(|name| *name == Some(newest)).count()
    }

    fn same_calls(&self) -> impl Iterator<Item = &CallRecord> {
        self.records.iter().rev().copied().filter(|record| record.hash == self.hash)
    }

    /// Counts how often the same call gave the newest result.
    fn streak(&self) -> usize {
        let mut results = self.same_calls().filter_map(|record| record.result.as_ref());
        let Some(newest) = results.next() else { return 0 };
        1 + results.take_while(|result| *result == newest).count()
    }

    /// Returns the number of this tool's calls and of their distinct arguments, if these are few and no call gave anything new. Two
    /// arguments may occur only once, since models probe.
    fn few_patterns(&self, breaker: usize) -> Option<(usize, usize)> {
        const MIN_REPEATS: usize = 4;
        const MAX_PROBES: usize = 2;
        let own: Vec<&CallRecord> =
            self.records.iter().rev().copied().filter(|record| record.tool == self.tool).take(breaker).collect();
        if own.len() < breaker {
            return None;
        }
        let mut patterns: Vec<(&str, &str, usize)> = Vec::new();
        for record in &own {
            let result = record.result.as_deref()?;
            match patterns.iter_mut().find(|(hash, ..)| *hash == record.hash) {
                Some((_, first, n)) if *first == result => *n += 1,
                Some(_) => return None,
                None => patterns.push((&record.hash, result, 1)),
            }
        }
        let n_probes = patterns.iter().filter(|(.., n)| *n == 1).count();
        let repeated: Vec<usize> = patterns.iter().map(|(.., n)| *n).filter(|n| *n > 1).collect();
        let is_loop = n_probes <= MAX_PROBES && repeated.len() > 1 && repeated.iter().all(|n| *n >= MIN_REPEATS);
        (is_loop && patterns.iter().any(|(hash, _, n)| *hash == self.hash && *n > 1))
            .then_some((own.len(), repeated.len()))
    }

    /// Detects alternating calls: the tail alternates between two, and the next call continues it.
    fn ping_pong(&self, config: &LoopConfig) -> Option<LoopFinding> {
        if !config.ping_pong {
            return None;
        }
        let last = self.records.last()?;
        let other = self.records.iter().rev().find(|record| record.hash != last.hash)?;
        if self.hash != other.hash {
            return None;
        }
        let expected = |at: usize| if at.is_multiple_of(2) { &last.hash } else { &other.hash };
        let tail: Vec<&CallRecord> = (self.records.iter().rev().copied().enumerate())
            .take_while(|(at, record)| record.hash == *expected(*at))
            .map(|(_, record)| record)
            .collect();
        let count = tail.len() + 1;
        if tail.len() < 2 || count < config.warning {
            return None;
        }
        let is_constant = |hash: &str| {
            let mut results = tail.iter().filter(|record| record.hash == hash).map(|record| record.result.as_ref());
            results.next().flatten().is_some_and(|first| results.all(|result| result == Some(first)))
        };
        let has_no_progress = is_constant(&last.hash) && is_constant(&other.hash);
        let calls = format!("{} and {} were called in turns, {count} times", other.tool, last.tool);
        if count >= config.critical && has_no_progress {
            let text = format!(
                "{calls}, with the same results: a ping-pong loop. Try a different approach, or report what blocks you."
            );
            return Some(critical(Detector::PingPong, count, text));
        }
        let text =
            format!("{calls}: this looks like a ping-pong loop. If there is no progress, try a different approach.");
        Some(raised(config, warning(Detector::PingPong, count, text)))
    }

    fn repeat(&self, config: &LoopConfig, streak: usize) -> Option<LoopFinding> {
        let tool = self.tool;
        if self.is_poll || !config.generic_repeat {
            return None;
        }
        if streak >= config.critical {
            let text =
                format!("{tool} was called {streak} times with identical arguments and identical outcomes. {ADVICE}");
            return Some(critical(Detector::GenericRepeat, streak, text));
        }
        let count = self.same_calls().count();
        if count < config.warning {
            return None;
        }
        let text = format!("{tool} was called {count} times with identical arguments. {ADVICE}");
        Some(raised(config, warning(Detector::GenericRepeat, count, text)))
    }
}

/// Turns a warning into a critical finding with `onRepeat: "block"`.
fn raised(config: &LoopConfig, mut finding: LoopFinding) -> LoopFinding {
    if config.on_repeat == OnRepeat::Block {
        finding.level = LoopLevel::Critical;
        finding.message = finding.message.replacen("WARNING", "CRITICAL", 1);
    }
    finding
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ran(history: &mut CallHistory, tool: &str, params: &Value, text: &str) {
        let config = LoopConfig { history_size: 100, ..LoopConfig::default() };
        history.record(&config, "id", tool, params, None);
        history.record_outcome("id", CallEnd::Result { text, details: &Value::Null });
    }

    #[track_caller]
    fn check(history: &CallHistory, tool: &str, params: &Value, expect: Option<(LoopLevel, Detector, usize)>) {
        let found = history.detect(&LoopConfig::default(), tool, params, None);
        assert_eq!(found.map(|found| (found.level, found.detector, found.count)), expect);
    }

    #[test]
    fn alternating_calls_with_the_same_results_are_blocked() {
        let mut history = CallHistory::default();
        for n in 0..19 {
            ran(&mut history, if n % 2 == 0 { "read" } else { "ls" }, &json!({}), "same");
        }
        check(&history, "ls", &json!({}), Some((LoopLevel::Critical, Detector::PingPong, 20)));
        check(&history, "read", &json!({}), Some((LoopLevel::Warning, Detector::GenericRepeat, 10)));
        check(&history, "grep", &json!({}), None);
    }

    #[test]
    fn few_alternating_targets_trip_the_breaker_but_two_passes_over_many_do_not() {
        let mut history = CallHistory::default();
        for n in 0..30 {
            ran(&mut history, "read", &json!({"path": n % 15}), "same");
        }
        check(&history, "read", &json!({"path": 0}), None);
        let mut history = CallHistory::default();
        for n in 0..30 {
            let path = if n == 7 { 99 } else { n % 3 };
            ran(&mut history, "read", &json!({"path": path}), "same");
        }
        check(&history, "read", &json!({"path": 0}), Some((LoopLevel::Critical, Detector::GlobalCircuitBreaker, 30)));
        check(&history, "read", &json!({"path": 99}), None);
        check(&history, "read", &json!({"path": 5}), None);
    }

    #[test]
    fn repetition_continued_after_a_compaction_is_a_loop() {
        let mut history = CallHistory::default();
        (0..3).for_each(|n| ran(&mut history, "read", &json!({"path": n}), "same"));
        history.compacted();
        (0..2).for_each(|n| ran(&mut history, "read", &json!({"path": n}), "same"));
        check(&history, "read", &json!({"path": 2}), None);
        ran(&mut history, "read", &json!({"path": 2}), "same");
        let critical = Some((LoopLevel::Critical, Detector::CompactionLoopPersisted, 3));
        check(&history, "read", &json!({"path": 2}), critical);
        check(&history, "ls", &json!({}), None);
        ran(&mut history, "ls", &json!({}), "files");
        check(&history, "read", &json!({"path": 2}), None);
    }

    #[test]
    fn another_compaction_does_not_excuse_repetition() {
        let mut history = CallHistory::default();
        for _ in 0..2 {
            (0..2).for_each(|n| ran(&mut history, "read", &json!({"path": n}), "same"));
            history.compacted();
        }
        check(&history, "read", &json!({"path": 0}), None);
        ran(&mut history, "read", &json!({"path": 0}), "same");
        check(&history, "read", &json!({"path": 1}), Some((LoopLevel::Critical, Detector::CompactionLoopPersisted, 3)));
        let mut history = CallHistory::default();
        for path in 0..9 {
            ran(&mut history, "read", &json!({"path": path}), "same");
            history.compacted();
        }
        check(&history, "read", &json!({"path": 9}), None);
    }
}
