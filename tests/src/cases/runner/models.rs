//! Models: references, candidates, context windows, and failover.

use pinch_embed::coding_agent::auth::config_value::{ValueOrigin, origin};
use pinch_embed::config::agents::ModelSetting;
use pinch_embed::models::providers::provider_layer;
use pinch_embed::models::select::Allowed;
use pinch_embed::models::{Aliases, CandidateRequest, ModelRef, Window, WindowSource, candidates};
use pinch_embed::reason::{Classified, FailoverReason, NamedError, classify, is_abort, is_timeout};
use pinch_embed::run::failover::{
    CandidateObservation, FailoverState, NextCandidate, ProbeThrottle, ProviderHealth, next_candidate,
};
use pinch_embed::run::{FailoverError, RunError};
use pinch_llm::error::LlmError;
use pinch_llm::error::overflow::is_likely_overflow_text;
use pinch_stdx::cancel::CancelReason;
use serde_json::{Value, json};

use super::{NOW, check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let actual = match area {
        "context-guard" => window(given),
        "fallback-candidates" => list(given).iter().map(ToString::to_string).collect(),
        "fallback-run" => return Some(fallback(given, expect)),
        "timeout-vs-abort" => end_of_chain(given),
        "model-refs" => {
            let aliases = given["aliases"].as_object().into_iter().flatten();
            let aliases = Aliases::new(aliases.filter_map(|(alias, target)| Some((alias.as_str(), target.as_str()?))));
            json!(aliases.resolve(given["raw"].as_str().unwrap_or("")).map(|found| found.to_string()))
        }
        "allowlist" => allowed(given)?,
        "models-json" => match layer(given, expect) {
            Ok(actual) => return Some(check(expect, &actual)),
            Err(why) => return Some(Err(why)),
        },
        _ => return None,
    };
    Some(check(expect, &actual))
}

fn window(given: &Value) -> Value {
    let tokens = |name: &str| given[name].as_f64().filter(|n| n.is_finite() && *n > 0.0).map(|n| n as u64);
    if let (Some(provider), Some(model)) = (given["provider"].as_str(), given["model"].as_str()) {
        let window = Window { tokens: tokens("tokens").unwrap_or(0), source: WindowSource::Model };
        if !window.is_too_small() {
            return Value::Null;
        }
        let error = FailoverError::window_too_small(window, provider, model);
        return json!({
            "failover": {"reason": error.reason.map(FailoverReason::as_str), "messagePrefix": error.message},
            "classified_as_overflow": is_likely_overflow_text(&error.message),
        });
    }
    let window = match given["info"].as_object() {
        Some(info) => Window { tokens: info["tokens"].as_u64().unwrap_or(0), source: WindowSource::Model },
        None => Window::resolve(tokens("modelsConfig"), tokens("model"), tokens("contextTokens")),
    };
    json!({
        "tokens": window.tokens, "source": window.source.as_str(),
        "warn": window.is_small(), "block": window.is_too_small(),
    })
}

fn list(given: &Value) -> Vec<ModelRef> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let defaults = config(json!({"agents": {"defaults": {"models": given["models"]}}})).agents.defaults;
    let aliases = Aliases::of(&defaults);
    let setting = ModelSetting {
        primary: given["model"]["primary"].as_str().map(str::to_owned),
        fallbacks: texts(&given["model"]["fallbacks"]),
    };
    let request = &given["request"];
    let requested = match request {
        Value::String(text) => aliases.resolve(text),
        Value::Object(_) => {
            Some(ModelRef::new(request["provider"].as_str().unwrap_or(""), request["model"].as_str().unwrap_or("")))
        }
        _ => None,
    };
    let fallbacks = given["fallbacksOverride"].is_array().then(|| texts(&given["fallbacksOverride"]));
    candidates(&CandidateRequest {
        setting: &setting,
        aliases: &aliases,
        requested: requested.as_ref(),
        fallbacks_override: fallbacks.as_deref(),
    })
}

fn allowed(given: &Value) -> Option<Value> {
    let models: Vec<ModelRef> = (given["models"].as_object().into_iter().flatten())
        .filter_map(|(name, _)| ModelRef::parse(name, "anthropic"))
        .collect();
    let default = given["default"].as_str().and_then(|text| ModelRef::parse(text, "anthropic")).unwrap_or_default();
    let wanted = ModelRef::parse(given["ref"].as_str()?, "anthropic")?;
    Some(match (Allowed { models: &models, default: &default }).check(&wanted) {
        Ok(()) => true.into(),
        Err(error) => json!({"error": error.to_string()}),
    })
}

/// The provider layer that a configuration adds to a models.json: the order of the providers, or fields by path.
fn layer(given: &Value, expect: &Value) -> Result<Value, String> {
    const KNOWN: [&str; 8] = ["mode", "existing", "new", "config", "implicit", "explicit", "twice", "env"];
    if let Some(name) =
        given.as_object().into_iter().flatten().map(|(name, _)| name).find(|n| !KNOWN.contains(&n.as_str()))
    {
        return Err(format!("a member that is not understood: {name}"));
    }
    let provider = || json!({"baseUrl": "https://p.invalid/v1", "api": "openai-completions", "models": [{"id": "m"}]});
    let listed = |names: &Value| -> serde_json::Map<String, Value> {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| (name.to_owned(), provider())).collect()
    };
    let mut models = given["config"].as_object().cloned().unwrap_or_default();
    if let Some(mode) = given.get("mode") {
        models.insert("mode".into(), mode.clone());
    }
    let own = models.entry("providers").or_insert_with(|| json!({}));
    own.as_object_mut().ok_or("providers must be an object")?.extend(listed(&given["new"]));
    let ids = |ids: &Value| -> Value {
        let ids = ids.as_array().into_iter().flatten();
        ids.map(|id| json!({"id": id})).collect()
    };
    for (name, explicit) in given["explicit"].as_object().into_iter().flatten() {
        let mut entry = provider();
        entry["models"] = ids(explicit);
        own[name] = entry;
    }
    let implicit: serde_json::Map<String, Value> = (given["implicit"].as_object().into_iter().flatten())
        .map(|(name, models)| {
            let mut entry = provider();
            entry["models"] = ids(models);
            (name.clone(), entry)
        })
        .collect();
    let config = config(json!({"models": models}));
    let existing = json!({"providers": listed(&given["existing"])});
    let existing = existing.as_object().cloned().unwrap_or_default();
    let mut root = provider_layer(existing, &implicit, &config.models);
    if given["twice"] == true {
        root = provider_layer(root, &implicit, &config.models);
    }
    let providers = root.get("providers").and_then(Value::as_object).cloned().unwrap_or_default();
    if expect.is_array() {
        return Ok(providers.keys().map(String::as_str).collect());
    }
    let mut actual = serde_json::Map::new();
    for (path, _) in expect.as_object().into_iter().flatten() {
        let value = match path.rsplit_once('.') {
            // Nothing is ever written.
            None if path == "secondWrites" => false.into(),
            None if path == "providers" => providers.keys().map(String::as_str).collect(),
            None => providers.get(path).cloned().unwrap_or_default(),
            Some((name, "models")) => {
                let models = providers.get(name).and_then(|entry| entry["models"].as_array());
                models.into_iter().flatten().map(|model| model["id"].clone()).collect()
            }
            Some((name, "apiKey")) => {
                match providers.get(name).and_then(|entry| entry["apiKey"].as_str()).map(origin) {
                    Some(ValueOrigin::Variables(names)) => names.join(", ").into(),
                    Some(_) => providers[name]["apiKey"].clone(),
                    None => Value::Null,
                }
            }
            Some((name, member)) => providers.get(name).map(|entry| entry[member].clone()).unwrap_or_default(),
        };
        actual.insert(path.clone(), value);
    }
    Ok(actual.into())
}

/// The error that the runner would create for a candidate that failed in this way.
fn error_of(outcome: &Value) -> RunError {
    let message = outcome["error"].as_str().or(outcome["message"].as_str()).unwrap_or("");
    let name = outcome["name"].as_str().unwrap_or("");
    let error = NamedError { name, message };
    let causes = causes(outcome);
    let status = outcome["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    if name == "AbortError" && is_abort(error) && !is_timeout(error, &causes) && status.is_none() {
        return RunError::Cancelled(CancelReason::User);
    }
    let code = outcome["code"].as_str();
    let typed = status.and_then(|status| http::StatusCode::from_u16(status).ok());
    let classified = classify(&LlmError::refused("p".into(), typed, code, message));
    let (reason, is_overflow) = match classified {
        Classified::ContextOverflow => (None, true),
        Classified::None | Classified::Reason(FailoverReason::Unknown) => {
            (is_timeout(error, &causes).then_some(FailoverReason::Timeout), is_likely_overflow_text(message))
        }
        Classified::Reason(reason) => (Some(reason), false),
    };
    let error = FailoverError { message: message.to_owned(), reason, status, is_overflow, ..FailoverError::default() };
    FailoverError { code: code.map(str::to_owned), ..error }.into()
}

/// The causes of an error: its own cause and the reason of the signal that raised it, as texts or as errors.
fn causes(outcome: &Value) -> Vec<NamedError<'_>> {
    ["cause", "reason"].iter().map(|name| &outcome[*name]).filter(|value| !value.is_null()).map(named).collect()
}

fn named(value: &Value) -> NamedError<'_> {
    let message = value.as_str().or(value["message"].as_str()).unwrap_or("");
    NamedError { name: value["name"].as_str().unwrap_or(""), message }
}

/// Whether the failure of the first of two similar models ends the run, and otherwise why the second is tried.
fn end_of_chain(given: &Value) -> Value {
    let models = ["first", "second"].map(|name| ModelRef::new("p", name));
    let mut state = FailoverState::new(models.to_vec());
    let mut throttle = ProbeThrottle::default();
    let mut next = |seen: CandidateObservation<'_>| {
        next_candidate(&mut state, seen, &mut throttle, NOW, |_| ProviderHealth::Usable)
    };
    next(CandidateObservation::Start);
    let error = error_of(given);
    let ends = matches!(next(CandidateObservation::Failed { error: &error, duration_ms: 1 }), NextCandidate::Fail(_));
    let reason = state.attempts().last().map(|attempt| attempt.reason.as_str());
    json!({"rethrow": ends, "reason": reason.filter(|_| !ends)})
}

fn fallback(given: &Value, expect: &Value) -> Result<(), String> {
    let health = |model: &ModelRef| {
        let provider = model.provider.as_str();
        let reason = given["cooldownReason"].as_str().and_then(FailoverReason::parse);
        if let Some(left) = given["cooldown"][provider].as_i64() {
            return ProviderHealth::CoolingDown { until: NOW + left, reason };
        }
        let ids = given["profiles"][provider].as_array().map_or(&[][..], Vec::as_slice);
        let left = |id: &Value| given["cooldownProfiles"][id.as_str().unwrap_or("")].as_i64();
        match ids.iter().map(left).collect::<Option<Vec<i64>>>() {
            Some(left) if !left.is_empty() => {
                ProviderHealth::CoolingDown { until: NOW + left.into_iter().min().unwrap_or(0), reason }
            }
            _ => ProviderHealth::Usable,
        }
    };
    let mut state = FailoverState::new(list(given));
    let mut throttle = ProbeThrottle::default();
    let (mut calls, mut options, mut winner, mut throws) = (0, Vec::new(), Value::Null, Value::Null);
    let mut next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, NOW, health);
    let mut outcomes = given["outcomes"].as_array().into_iter().flatten();
    loop {
        match next {
            NextCandidate::Fail(error) => {
                throws = error.to_string().into();
                break;
            }
            NextCandidate::Run(candidate) => {
                calls += 1;
                options.push(json!({"allowTransientCooldownProbe": candidate.allow_cooldown_probe}));
                let outcome = outcomes.next().ok_or("more candidates were tried than the case has outcomes")?;
                if outcome == "ok" {
                    winner = candidate.model.to_string().into();
                    break;
                }
                let error = error_of(outcome);
                let seen = CandidateObservation::Failed { error: &error, duration_ms: 1 };
                next = next_candidate(&mut state, seen, &mut throttle, NOW, health);
            }
        }
    }
    let attempts = state.attempts().iter().map(|attempt| {
        json!({
            "provider": attempt.model.provider, "model": attempt.model.model, "error": attempt.error,
            "reason": attempt.reason.as_str(), "status": attempt.status, "code": attempt.code,
        })
    });
    let actual = json!({
        "calls": calls, "options": options, "winner": winner, "throws": throws, "attempts": attempts.collect::<Vec<_>>(),
    });
    check(expect, &actual)
}
