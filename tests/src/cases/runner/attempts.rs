//! Decisions of one model: a scripted runtime answers what `decide` asks for.

use std::sync::Arc;
use std::time::Duration;

use pinch_embed::config::agents::RunRetries;
use pinch_embed::profiles::order::select;
use pinch_embed::profiles::{ProfileId, Profiles};
use pinch_embed::reason::image::{image_dimension, image_size_mb, is_image_size};
use pinch_embed::reason::overflow::{is_compaction_failure, is_context_overflow, is_likely_context_overflow};
use pinch_embed::reason::{Classified, Signal, reason_of_signal};
use pinch_embed::run::decide::{
    Action, CompactTrigger, Finish, Mark, ProfileSlot, Repair, Repaired, RunState, RunTerms, Seen, WaitFor, decide,
    thinking,
};
use pinch_embed::run::outcome::{FailureStage, ToolRun};
use pinch_embed::run::request::{ProfileChoice, ProfileSource};
use pinch_embed::run::{AttemptEnd, AttemptOutcome, FailoverReason, RunError};
use pinch_llm::error::LlmError;
use pinch_llm::ids::ProviderId;
use pinch_llm::message::{AssistantMessage, StopReason, Usage};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;
use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use super::{NOW, check, config};

pub(super) fn run(area: &str, group: &Value, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let text = given["text"].as_str().unwrap_or("");
    let actual = match area {
        "iteration-bound" => {
            let n = given["candidates"].as_u64().unwrap_or(0) as usize;
            let defaults = config(json!({"agents": {"defaults": {"runRetries": given["runRetries"]}}})).agents.defaults;
            let retries: RunRetries = defaults.run_retries;
            retries.bound(n).into()
        }
        "thinking-fallback" => {
            let tried = given["attempted"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let tried: Vec<ThinkingLevel> = tried.filter_map(ThinkingLevel::parse).collect();
            json!(thinking::next_level(text, &tried).map(ThinkingLevel::as_str))
        }
        "failover-status" => {
            json!(given["reason"].as_str().and_then(FailoverReason::parse).and_then(FailoverReason::status))
        }
        "classify-later" => {
            let status = given["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            match reason_of_signal(Signal { status, code: given["code"].as_str(), message: Some(text) }) {
                Classified::Reason(reason) => json!(reason.as_str()),
                Classified::ContextOverflow | Classified::None => Value::Null,
            }
        }
        "overflow-text" => json!({
            "strict": is_context_overflow(text), "likely": is_likely_context_overflow(text),
            "compactionFailure": is_compaction_failure(text),
        }),
        "image-errors" => match image_dimension(text) {
            Some(found) => json!({
                "maxDimensionPx": found.max_px, "messageIndex": found.message_idx, "contentIndex": found.content_idx,
            }),
            None if is_image_size(text) => json!({"maxMb": image_size_mb(text)}),
            None => Value::Null,
        },
        "retry-loop" if needs_runner(expect) => return None,
        "retry-loop" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            return Some(match runtime {
                Ok(runtime) => runtime.block_on(Play::new(group, given).and_then_run(expect)),
                Err(error) => Err(error.to_string()),
            });
        }
        _ => return None,
    };
    Some(check(expect, &actual))
}

/// What only the whole runner makes: calls the caller has to run, the prompt as it is sent.
fn needs_runner(expect: &Value) -> bool {
    expect.get("promptMustNotContain").is_some() || expect["result"].get("pendingToolCalls").is_some()
}

/// One case being played.
struct Play<'a> {
    setup: Map<String, Value>,
    given: &'a Value,
    provider: ProviderId,
    actions: Vec<String>,
    attempt_profiles: Vec<Value>,
    attempt_thinking: Vec<Value>,
    waits: Vec<Value>,
    last: Option<AttemptOutcome>,
}

impl<'a> Play<'a> {
    fn new(group: &Value, given: &'a Value) -> Self {
        let mut setup = group["runner"].as_object().cloned().unwrap_or_default();
        setup.extend(given.as_object().cloned().unwrap_or_default());
        let provider = ProviderId::new(setup["provider"].as_str().unwrap_or("openai"));
        Self {
            setup,
            given,
            provider,
            actions: Vec::new(),
            attempt_profiles: Vec::new(),
            attempt_thinking: Vec::new(),
            waits: Vec::new(),
            last: None,
        }
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let list = self.setup.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The store of the case, on disk, as the real one is.
    fn store(&self, dir: &std::path::Path) -> Result<Profiles, String> {
        let mut entries = Map::new();
        for id in self.texts("profiles").into_iter().chain(self.texts("storeHas")) {
            entries.insert(id, json!({"type": "api_key", "provider": self.provider, "key": "k"}));
        }
        if let Some(id) = self.given["authProfileId"].as_str() {
            let owner = id.split_once(':').map_or(self.provider.as_str(), |(owner, _)| owner);
            entries.entry(id).or_insert_with(|| json!({"type": "api_key", "provider": owner, "key": "k"}));
        }
        let reason = self.given["cooldownReason"].as_str();
        let resting = self.texts("cooldown").into_iter().map(|id| {
            let mut stats = json!({"errorCount": 1, "lastFailureAt": NOW - 1, "cooldownUntil": NOW + 600_000});
            if let Some(reason) = reason {
                stats["failureCounts"] = json!({reason: 1});
            }
            (id, stats)
        });
        let file = json!({"version": 1, "profiles": entries, "usageStats": resting.collect::<Map<_, _>>()});
        let path = dir.join("auth-profiles.json");
        write_atomic(&path, file.to_string().as_bytes(), Access::Private).map_err(|error| error.to_string())?;
        let order = self.texts("order");
        let order = if order.is_empty() { self.texts("profiles") } else { order };
        let order = if order.is_empty() { json!({}) } else { json!({self.provider.as_str(): order}) };
        let auth = config(json!({"auth": {"order": order}})).auth;
        Ok(Profiles::load(Host::builder().clock(NOW, 0).build(), auth, Some(path), None).0)
    }

    fn terms(&self, profiles: &Profiles) -> Result<RunTerms, RunError> {
        let choice = self.given["authProfileId"].as_str().map(|id| ProfileChoice {
            id: id.into(),
            source: match self.given["authProfileIdSource"].as_str() {
                Some("user") => ProfileSource::User,
                _ => ProfileSource::Auto,
            },
        });
        let owner = choice.as_ref().and_then(|choice| profiles.get(&choice.id)).map(|profile| profile.provider);
        let order = profiles.candidates(&self.provider, choice.as_ref().map(|choice| &choice.id));
        let selection = select(order, choice.as_ref(), owner.as_ref(), &self.provider)
            .map_err(|error| RunError::Config(error.to_string()))?;
        let model = self.setup["model"].as_str().unwrap_or("mock-1");
        let slot = |id: ProfileId| ProfileSlot { usable: profiles.usable(&id, Some(model)), id };
        let n = |name: &str| self.given[name].as_u64().map(|n| n as u32);
        let uncapped = self.given["attempts"].get("compactionCap").is_some_and(Value::is_null);
        let defaults = RunTerms::new(self.provider.clone(), model);
        Ok(RunTerms {
            window: self.setup["window"].as_u64().unwrap_or(0),
            profiles: selection.ids.into_iter().map(slot).collect(),
            locked: selection.locked,
            has_fallbacks: !self.texts("fallbacks").is_empty(),
            allow_cooldown_probe: self.given["allowTransientCooldownProbe"] == true,
            cooldown_reason: profiles.unavailable_reason(&self.provider),
            thinking: self.setup["thinkLevel"].as_str().and_then(ThinkingLevel::parse).unwrap_or_default(),
            transient_retries: n("transientRetries").unwrap_or(0),
            overflow_compactions: if uncapped { u32::MAX } else { defaults.overflow_compactions },
            ..defaults
        })
    }

    async fn and_then_run(mut self, expect: &Value) -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let profiles = self.store(dir.path())?;
        let before = |profiles: &Profiles, id: &str| profiles.health(&id.into());
        let all: Vec<String> = self.texts("profiles");
        let healths: Vec<_> = all.iter().map(|id| before(&profiles, id)).collect();
        let mut actual = match self.terms(&profiles) {
            Err(error) => json!({"throws": error.to_string()}),
            Ok(terms) => self.play(RunState::new(terms), &profiles).await?,
        };
        let changed = |at: usize| before(&profiles, &all[at]) != healths[at];
        actual["after"] = (0..all.len())
            .map(|at| {
                let stats = before(&profiles, &all[at]).to_json();
                (all[at].clone(), if changed(at) { stats } else { json!("unchanged") })
            })
            .collect::<Map<_, _>>()
            .into();
        actual["untouched"] = expect["untouched"].clone();
        let named = expect["untouched"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(id) = named.into_iter().find(|id| all.iter().position(|other| other == id).is_some_and(changed)) {
            return Err(format!("/untouched: {id} has changed"));
        }
        actual["rotated"] = self.attempt_profiles.windows(2).any(|pair| pair[0] != pair[1]).into();
        let n_attempts = self.attempt_profiles.len() as u64;
        actual["actions"] = json!(self.actions);
        actual["attemptProfiles"] = json!(self.attempt_profiles);
        actual["attemptThinking"] = json!(self.attempt_thinking);
        actual["waitsMs"] = json!(self.waits);
        let mut expect = expect.clone();
        if let Some(most) = expect.as_object_mut().and_then(|expect| expect.remove("attemptsAtMost"))
            && most.as_u64().is_some_and(|most| n_attempts > most)
        {
            return Err(format!("{n_attempts} attempts, at most {most} expected"));
        }
        for (owner, member, whole, at_start) in [
            ("throwsFailover", "messageContains", "message", false),
            ("result", "textContains", "firstText", false),
            ("result", "textPrefix", "firstText", true),
        ] {
            let Some(wanted) =
                expect.get_mut(owner).and_then(Value::as_object_mut).and_then(|named| named.remove(member))
            else {
                continue;
            };
            let (text, wanted) =
                (actual[owner][whole].as_str().unwrap_or(""), wanted.as_str().unwrap_or("").to_owned());
            if !(if at_start { text.starts_with(&wanted) } else { text.contains(&wanted) }) {
                return Err(format!("/{owner}/{member}: expected {wanted:?} in {text:?}"));
            }
        }
        check(&expect, &actual)
    }

    async fn play(&mut self, mut state: RunState, profiles: &Profiles) -> Result<Value, String> {
        let (mut n_attempts, mut n_compactions, mut n_truncations) = (0, 0, 0);
        let model = self.setup["model"].as_str().unwrap_or("mock-1").to_owned();
        let mut decision = decide(&mut state, Seen::Start);
        loop {
            for mark in &decision.marks {
                self.mark(profiles, mark, &model).await?;
            }
            state.refresh_profiles(|id| profiles.usable(id, Some(&model)));
            decision = match decision.action {
                Action::Attempt(_) if self.given["noKey"] == true => {
                    decide(&mut state, Seen::NoCredential { message: "No API key found." })
                }
                Action::Attempt(plan) => {
                    let profile = plan.profile.as_ref().map_or("", ProfileId::as_str);
                    self.actions.push(format!("attempt:{profile}"));
                    self.attempt_profiles.push(profile.into());
                    self.attempt_thinking.push(plan.thinking.as_str().into());
                    let script = &self.given["attempts"];
                    let script = script.get("always").unwrap_or(&script[n_attempts]);
                    n_attempts += 1;
                    if script.is_null() {
                        return Err(format!("attempt {n_attempts} has no outcome; actions {:?}", self.actions));
                    }
                    let outcome = self.outcome(script);
                    let next = decide(&mut state, Seen::Attempt(&outcome));
                    self.last = Some(outcome);
                    next
                }
                Action::Repair(repair) => {
                    let repaired = match repair {
                        Repair::Compact { trigger, .. } => {
                            let word: CompactTrigger = trigger;
                            self.actions.push(format!("compact:{}", word.as_str()));
                            let script = &self.given["compactions"][n_compactions];
                            n_compactions += 1;
                            match script["compacted"] == true {
                                true => Repaired::Compacted,
                                false => Repaired::NotCompacted { why: script["reason"].as_str().unwrap_or("").into() },
                            }
                        }
                        Repair::TruncateToolResults => {
                            self.actions.push("truncate".into());
                            let script = &self.given["truncations"][n_truncations];
                            n_truncations += 1;
                            match script["truncated"] == true {
                                true => Repaired::Truncated { count: script["count"].as_u64().unwrap_or(1) as usize },
                                false => Repaired::NotTruncated,
                            }
                        }
                    };
                    decide(&mut state, Seen::Repaired(&repaired))
                }
                Action::Wait(wait) => {
                    if matches!(wait.before, WaitFor::SameProfile { .. }) {
                        self.actions.push("wait".into());
                        self.waits.push((wait.delay.as_millis() as u64).into());
                    }
                    decide(&mut state, Seen::Waited)
                }
                Action::Finish(finish) => return Ok(json!({"result": self.result(&state, &finish)})),
                Action::FailOver(error) => {
                    return Ok(json!({"throwsFailover": {
                        "message": error.message, "reason": error.reason.map(FailoverReason::as_str), "status": error.status,
                        "provider": error.provider, "model": error.model,
                    }}));
                }
                Action::Fail(error) => return Ok(json!({"throws": error.to_string()})),
            };
        }
    }

    async fn mark(&mut self, profiles: &Profiles, mark: &Mark, model: &str) -> Result<(), String> {
        let marked = match mark {
            Mark::Failure { profile, reason, retry_after } => {
                self.actions.push(format!("mark:failure:{profile}:{}", reason.as_str()));
                profiles.mark_failure(profile, *reason, *retry_after, Some(model)).await
            }
            Mark::Good { profile } => {
                self.actions.push(format!("mark:good:{profile}"));
                profiles.mark_good(profile).await
            }
            Mark::Used { profile } => {
                self.actions.push(format!("mark:used:{profile}"));
                Ok(())
            }
        };
        marked.map_err(|error| error.to_string())
    }

    fn outcome(&self, script: &Value) -> AttemptOutcome {
        let failed = |stage, text: &str| {
            let mut error = LlmError::refused(self.provider.clone(), None, None, text);
            error.retry_after = script["retryAfterMs"].as_u64().map(Duration::from_millis);
            AttemptEnd::Failed { stage, error: Arc::new(error) }
        };
        let text = script["assistant"].as_str();
        let end = if let Some(text) = script["promptError"].as_str() {
            failed(FailureStage::Prompt, text)
        } else if let Some(text) = script["assistantError"].as_str() {
            failed(FailureStage::Answer, text)
        } else if script["timedOut"] == true {
            AttemptEnd::TimedOut { during_compaction: script["timedOutDuringCompaction"] == true }
        } else if script["aborted"] == true {
            AttemptEnd::Aborted(CancelReason::User)
        } else {
            AttemptEnd::Good
        };
        let mut outcome = AttemptOutcome::new(end);
        outcome.compactions = script["compactionCount"].as_u64().unwrap_or(0) as u32;
        outcome.has_payload = text.is_some_and(|text| !text.is_empty());
        let mut message = AssistantMessage::pending("api".into(), self.provider.clone(), "mock-1".into(), NOW);
        message.stop_reason = match script["stopReason"].as_str() {
            Some("toolUse") => StopReason::ToolUse,
            Some("error") => StopReason::Error,
            Some("length") => StopReason::Length,
            _ => StopReason::Stop,
        };
        outcome.last_assistant = text.map(|_| Arc::new(message));
        let tools = script["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
        outcome.tools = tools
            .map(|name| ToolRun {
                name: name.into(),
                mutates: matches!(name, "write" | "edit" | "bash" | "exec"),
                failed: false,
                duration_ms: 0,
            })
            .collect();
        let largest = script["toolResultChars"].as_array().into_iter().flatten().filter_map(Value::as_u64).max();
        outcome.oversized_tool_results = largest.unwrap_or(0) > 240_000;
        outcome.last_call_usage =
            script["lastCallPromptTokens"].as_u64().map(|input| Usage { input, ..Usage::default() });
        let usage = &script["usage"];
        let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
        outcome.usage = Usage {
            input: tokens("input"),
            output: tokens("output"),
            cache_read: tokens("cacheRead"),
            cache_write: tokens("cacheWrite"),
            total_tokens: tokens("total"),
            ..Usage::default()
        };
        outcome
    }

    /// What of the result the decision determines.
    fn result(&self, state: &RunState, finish: &Finish) -> Value {
        let attempts = &self.given["attempts"];
        let script = attempts.get("always").unwrap_or(&attempts[self.attempt_profiles.len().saturating_sub(1)]);
        let said = script["assistant"].as_str().filter(|text| !text.is_empty());
        let failed = script["assistantError"].as_str();
        let (text, error, kind) = match finish {
            Finish::Answer => (said, failed, None),
            Finish::Aborted => (said, None, None),
            Finish::TimedOut | Finish::Incomplete { .. } => (None, finish.text(), None),
            Finish::Error { kind, .. } => (None, finish.text(), Some(kind.as_str())),
        };
        let usage = state.usage();
        json!({
            "text": text, "firstText": error.or(text), "isError": error.is_some(), "error": kind,
            "payloads": if text.or(error).is_some() { json!([text.or(error)]) } else { Value::Null },
            "aborted": self.last.as_ref().is_some_and(AttemptOutcome::is_aborted),
            "compactionCount": state.n_compactions(),
            "usage": {
                "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
                "cacheWrite": usage.cache_write, "total": usage.total_tokens,
            },
        })
    }
}
