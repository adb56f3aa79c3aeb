//! Auth profiles: order, health, secrets, the configuration's own.

use std::time::Duration;

use pinch_embed::config::auth::clean_secret;
use pinch_embed::config::{AuthConfig, Cooldowns};
use pinch_embed::profiles::health::{self, Failure, Health};
use pinch_embed::profiles::order::{Order, order};
use pinch_embed::profiles::resolve::resolve;
use pinch_embed::profiles::{Credential, Profile, ProfileFile, ProfileId};
use pinch_embed::run::FailoverReason;
use pinch_llm::ids::ProviderId;
use pinch_stdx::host::Env;
use serde_json::{Map, Value, json};

use super::{NOW, check, config};

pub(super) fn run(area: &str, group: &Value, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let now = group["now"].as_i64().unwrap_or(NOW);
    let actual = match area {
        "cooldown-series" => series(given),
        "mark-failure" => return Some(mark_failure(given, expect, now)),
        "mark-success" => mark_success(given, now)?,
        "clear-expired" => {
            let before = Health::read(Some(&given["stats"]));
            with_unchanged(&before, &before.without_ended(now))
        }
        "unavailable-reason" => {
            let healths: Vec<Health> =
                given["stats"].as_array().into_iter().flatten().map(|stats| Health::read(Some(stats))).collect();
            json!(health::unavailable_reason(&healths, now).map(FailoverReason::as_str))
        }
        "half-open" => half_open(given, now),
        "profile-order" => profile_order(group, given, now),
        "secret-resolution" => secret(group, given, now),
        "config-profiles" => return Some(config_profiles(given, expect, now)),
        "store-load" if given.get("file").is_some() => store_load(given),
        _ => return None,
    };
    Some(check_absent(expect, &actual))
}

/// Compares, and looks that members of `absent` are.
fn check_absent(expect: &Value, actual: &Value) -> Result<(), String> {
    let mut named = expect.clone();
    if let Some(Value::Array(absent)) = named.as_object_mut().and_then(|named| named.remove("absent"))
        && let Some(name) = absent.iter().filter_map(Value::as_str).find(|name| actual.get(name).is_some())
    {
        return Err(format!("/{name}: expected to be absent, got {}", actual[name]));
    }
    check(&named, actual)
}

fn with_unchanged(before: &Health, after: &Health) -> Value {
    let mut actual = after.to_json();
    actual["unchanged"] = (before == after).into();
    actual
}

fn terms(auth: &Value) -> Cooldowns {
    config(json!({"auth": {"cooldowns": auth}})).auth.cooldowns
}

fn series(given: &Value) -> Value {
    let terms = terms(&given["config"]);
    let provider = given["provider"].as_str().unwrap_or("");
    let billing = terms.billing_ms_by_provider.get(provider).copied().unwrap_or(terms.billing_ms);
    let counts = given["counts"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    counts
        .map(|n| n as u32)
        .map(|n| match given["kind"].as_str() {
            Some("billing") => health::doubled(billing, terms.billing_max_ms, n),
            Some("auth_permanent") => health::doubled(terms.auth_permanent_ms, terms.auth_permanent_max_ms, n),
            _ => health::cooldown(n, &terms.series),
        })
        .collect()
}

fn mark_failure(given: &Value, expect: &Value, now: i64) -> Result<(), String> {
    if given["profile"].is_string() {
        // Only a profile that exists is marked: the store is asked before any maths.
        return check(expect, &json!({"unchanged": true}));
    }
    let before = Health::read(Some(&given["existing"]));
    let provider = ProviderId::new(given["provider"].as_str().unwrap_or("openai"));
    let failure = Failure {
        reason: given["reason"].as_str().and_then(FailoverReason::parse).ok_or("an unknown reason")?,
        retry_after: given["retryAfterMs"].as_u64().map(Duration::from_millis),
        model: given["model"].as_str(),
        provider: &provider,
        now,
    };
    let after = before.after_failure(&failure, &terms(&given["config"]));
    let mut actual = with_unchanged(&before, &after);
    let blocked = expect["blocked"].as_object().into_iter().flatten();
    actual["blocked"] = blocked
        .map(|(model, _)| (model.clone(), after.is_cooling(now, Some(model)).into()))
        .collect::<Map<_, _>>()
        .into();
    check_absent(expect, &actual)
}

fn mark_success(given: &Value, now: i64) -> Option<Value> {
    if given["mark"] == "good" {
        let id = given["profile"].as_str()?;
        let is_of_provider = id.split(':').next() == given["provider"].as_str();
        return Some(match is_of_provider {
            true => json!({"lastGood": {given["provider"].as_str()?: id}}),
            false => json!({"unchanged": true}),
        });
    }
    Some(Health::read(Some(&given["existing"])).after_success(now).to_json())
}

fn half_open(given: &Value, now: i64) -> Value {
    let mut before = Health::default();
    before.error_count = given["lastErrorCount"].as_u64().unwrap_or(0) as u32;
    if let Some(window) = given["lastWindowMs"].as_i64() {
        let end = now - given["healthyForMs"].as_i64().unwrap_or(0);
        before.last_window_ms = Some(window);
        before.cooldown_until = Some(end);
        before.last_failure_at = Some(end - window);
    }
    let provider = ProviderId::new("openai");
    let retry_after = given["retryAfterMs"].as_u64().map(Duration::from_millis);
    let failure = Failure { reason: FailoverReason::RateLimit, retry_after, model: None, provider: &provider, now };
    let after = before.after_failure(&failure, &Cooldowns::default());
    json!({"errorCount": after.error_count, "windowMs": after.cooldown_until.map(|until| until - now)})
}

fn ids(list: &[ProfileId]) -> Value {
    list.iter().map(ProfileId::as_str).collect()
}

fn profile_order(group: &Value, given: &Value, now: i64) -> Value {
    let document = json!({
        "profiles": given.get("profiles").unwrap_or(&group["profiles"]),
        "order": given["order"], "usageStats": given["usageStats"],
    });
    let file = ProfileFile::from_document(document.as_object().cloned().unwrap_or_default());
    let profiles = file.profiles();
    let auth = config(json!({"auth": given["config"]})).auth;
    let preferred = given["preferred"].as_str().map(ProfileId::from);
    ids(&order(&Order {
        provider: &ProviderId::new(given["provider"].as_str().unwrap_or("")),
        preferred: preferred.as_ref(),
        profiles: &profiles,
        file: &file,
        config: &auth,
        env: &Env::default(),
        now,
    }))
}

fn secret(group: &Value, given: &Value, now: i64) -> Value {
    if let Some(input) = given["input"].as_str() {
        return clean_secret(input).into();
    }
    let entry = match given["profile"].as_str() {
        Some(id) => &group["profiles"][id],
        None => &given["cred"],
    };
    let Some(profile) = Profile::from_entry("p", entry) else { return Value::Null };
    let mode = match profile.credential {
        Credential::ApiKey(_) => "api-key",
        Credential::Token { .. } => "token",
        Credential::OAuth { .. } => "oauth",
    };
    match resolve(&profile, &Env::default(), now) {
        Ok(key) => json!({"apiKey": key.reveal(), "mode": mode}),
        Err(_) => Value::Null,
    }
}

fn config_profiles(given: &Value, expect: &Value, now: i64) -> Result<(), String> {
    let document = json!({"auth": given["auth"]});
    let document = document.as_object().cloned().unwrap_or_default();
    let (config, problems) = pinch_embed::config::Config::from_document(document, std::path::Path::new("pinch.json"));
    if let Some(place) = expect["error"].as_str() {
        let named = problems.iter().any(|problem| problem.to_string().contains(place));
        return if named { Ok(()) } else { Err(format!("no problem names {place}: {problems:?}")) };
    }
    let auth: &AuthConfig = &config.auth;
    let vars = given["env"].as_object().into_iter().flatten();
    let env = Env::from_iter(vars.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))));
    let file = ProfileFile::from_document(json!({"profiles": given["store"]}).as_object().cloned().unwrap_or_default());
    let mut profiles: Vec<Profile> = auth.profiles.iter().filter_map(Profile::inline).collect();
    profiles.extend(file.profiles());
    let by_provider = expect["order"].as_object().into_iter().flatten().map(|(provider, _)| {
        let provider_id = ProviderId::new(provider);
        let by = Order {
            provider: &provider_id,
            preferred: None,
            profiles: &profiles,
            file: &file,
            config: auth,
            env: &env,
            now,
        };
        (provider.clone(), ids(&order(&by)))
    });
    let credentials = profiles.iter().map(|profile| {
        let key = resolve(profile, &env, now).ok();
        (profile.id.to_string(), json!(key.as_ref().map(|key| key.reveal())))
    });
    let actual = json!({
        "order": by_provider.collect::<Map<_, _>>(),
        "credential": credentials.collect::<Map<_, _>>(),
        "fileUnchanged": true,
    });
    check(expect, &actual)
}

fn store_load(given: &Value) -> Value {
    let file = ProfileFile::from_document(given["file"].as_object().cloned().unwrap_or_default());
    let profiles = file.profiles();
    let orders = given["file"]["order"].as_object().into_iter().flatten();
    let order: Map<String, Value> =
        orders.filter_map(|(name, _)| Some((name.clone(), ids(&file.order(&ProviderId::new(name))?)))).collect();
    json!({"profiles": profiles.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), "order": order})
}
