//! Auth profiles: order, health, secrets, and profiles from the configuration.

use std::time::Duration;

use pinch_embed::config::auth::clean_secret;
use pinch_embed::config::{AuthConfig, Cooldowns};
use pinch_embed::ports::FileHealth;
use pinch_embed::profiles::health::{self, Health, ProfileFailure};
use pinch_embed::profiles::order::{Order, order};
use pinch_embed::profiles::resolve::resolve;
use pinch_embed::profiles::{Credential, Profile, ProfileFile, ProfileId, ProfileSources, Profiles};
use pinch_embed::run::FailoverReason;
use pinch_llm::ids::ProviderId;
use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::host::{Env, Host};
use serde_json::{Map, Value, json};

use super::{NOW, check, config};

pub(super) fn run(area: &str, group: &Value, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let now = group["now"].as_i64().unwrap_or(NOW);
    let actual = match area {
        "cooldown-series" => series(given),
        "mark-failure" => return Some(mark_failure(given, expect, now)),
        "mark-success" => match mark_success(given, now)? {
            Ok(actual) => actual,
            Err(why) => return Some(Err(why)),
        },
        "clear-expired" => {
            let before = Health::read(given["stats"].as_object());
            with_unchanged(&before, &before.without_ended(now))
        }
        "unavailable-reason" => {
            let healths: Vec<Health> =
                given["stats"].as_array().into_iter().flatten().map(|stats| Health::read(stats.as_object())).collect();
            json!(health::unavailable_reason(&healths, now).map(FailoverReason::as_str))
        }
        "half-open" => half_open(given, now),
        "profile-order" => profile_order(group, given, now),
        "secret-resolution" => secret(group, given, now),
        "config-profiles" => return Some(config_profiles(given, expect, now)),
        "store-load" => match store_load(given, expect, now) {
            Ok(actual) => actual,
            Err(why) => return Some(Err(why)),
        },
        _ => return None,
    };
    Some(check_absent(expect, &actual))
}

/// Compares, and checks that the fields in `absent` do not exist.
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
    let mut actual = Value::Object(after.to_entry());
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
    if let Some(id) = given["profile"].as_str() {
        let reason = given["reason"].as_str().and_then(FailoverReason::parse).ok_or("an unknown reason")?;
        return check(expect, &mark_on_disk(id, ProfileMark::Failure(reason), now)?);
    }
    let before = Health::read(given["existing"].as_object());
    let provider = ProviderId::new(given["provider"].as_str().unwrap_or("openai"));
    let failure = ProfileFailure {
        reason: given["reason"].as_str().and_then(FailoverReason::parse).ok_or("an unknown reason")?,
        retry_after: given["retryAfterMs"].as_u64().map(Duration::from_millis),
        model: given["model"].as_str(),
        provider: &provider,
        now,
        of_model: false,
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

fn mark_success(given: &Value, now: i64) -> Option<Result<Value, String>> {
    if given["mark"] == "good" {
        let provider = given["provider"].as_str().unwrap_or(OWNER);
        return Some(mark_on_disk(given["profile"].as_str()?, ProfileMark::Good { provider }, now));
    }
    Some(Ok(Health::read(given["existing"].as_object()).after_success(now).to_entry().into()))
}

/// The owner of the profile in the store of cases that mark one.
const OWNER: &str = "openai";

/// The result of using a profile.
enum ProfileMark<'a> {
    Good { provider: &'a str },
    Failure(FailoverReason),
}

/// Marks a profile in a store that contains one; returns the resulting store.
fn mark_on_disk(id: &str, mark: ProfileMark<'_>, now: i64) -> Result<Value, String> {
    let store = json!({"version": 1, "profiles": {"openai:p1": {"type": "api_key", "provider": OWNER, "key": "k"}}});
    let (profiles, dir) = open(&AuthConfig::default(), &store, Env::default(), now)?;
    let id = ProfileId::new(id);
    block_on(async {
        match mark {
            ProfileMark::Failure(reason) => profiles.mark_failure(&id, reason, None, None),
            ProfileMark::Good { provider } => profiles.mark_good(&id, &ProviderId::new(provider)),
        }
        profiles.flush().await;
    })?;
    let mut after = read(&dir)?;
    after["unchanged"] = (after == store).into();
    Ok(after)
}

/// A store on disk, like the real one.
fn open(auth: &AuthConfig, store: &Value, env: Env, now: i64) -> Result<(Profiles, tempfile::TempDir), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = dir.path().join("auth-profiles.json");
    write_atomic(&path, store.to_string().as_bytes(), Access::Private).map_err(|error| error.to_string())?;
    let host = Host::builder().clock(now, 0).env(env).build();
    let sources = ProfileSources { config: auth.clone(), file: Some(path), ..ProfileSources::default() };
    Ok((Profiles::load(host, sources).0, dir))
}

fn read(dir: &tempfile::TempDir) -> Result<Value, String> {
    let bytes = std::fs::read(dir.path().join("auth-profiles.json")).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(work))
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
    let failure = ProfileFailure {
        reason: FailoverReason::RateLimit,
        retry_after,
        model: None,
        provider: &provider,
        now,
        of_model: false,
    };
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
    let document = document.as_object().cloned().unwrap_or_default();
    let health = FileHealth::records(&document);
    let file = ProfileFile::from_document(document);
    let profiles = file.profiles();
    let auth = config(json!({"auth": given["config"]})).auth;
    let preferred = given["preferred"].as_str().map(ProfileId::from);
    ids(&order(&Order {
        provider: &ProviderId::new(given["provider"].as_str().unwrap_or("")),
        model: given["model"].as_str(),
        preferred: preferred.as_ref(),
        profiles: &profiles,
        file: &file,
        health: &health,
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
    let id = given["profile"].as_str().unwrap_or("p");
    let Some(profile) = Profile::from_entry(id, entry) else { return Value::Null };
    let vars = given["env"].as_object().into_iter().flatten();
    let env = Env::from_iter(vars.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))));
    let auth = config(json!({"auth": given["config"].get("auth").unwrap_or(&given["config"])})).auth;
    let usable = order(&Order {
        provider: &profile.provider,
        model: None,
        preferred: None,
        profiles: std::slice::from_ref(&profile),
        file: &ProfileFile::default(),
        health: &FileHealth::records(&Map::new()),
        config: &auth,
        env: &env,
        now,
    });
    // A configuration can list the profile for another provider, or with another kind of credential.
    if usable.is_empty() {
        return Value::Null;
    }
    let mode = match profile.credential {
        Credential::ApiKey(_) => "api-key",
        Credential::Token { .. } => "token",
        Credential::OAuth { .. } => "oauth",
    };
    match resolve(&profile, &env, now) {
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
    let store = json!({"version": 1, "profiles": given["store"]});
    let (profiles, dir) = open(auth, &store, env.clone(), now)?;
    let by_provider = expect["order"].as_object().into_iter().flatten();
    let order =
        by_provider.map(|(name, _)| (name.clone(), ids(&profiles.candidates(&ProviderId::new(name), None, None))));
    let order = order.collect::<Map<_, _>>();
    let mut credentials = Map::new();
    for (id, _) in expect["credential"].as_object().into_iter().flatten() {
        let id = ProfileId::new(id);
        let profile = profiles.get(&id);
        let key = profile.as_ref().and_then(|profile| resolve(profile, &env, now).ok());
        credentials.insert(id.to_string(), json!(key.as_ref().map(|key| key.reveal())));
        if let Some(profile) = profile {
            block_on(async {
                profiles.mark_good(&id, &profile.provider);
                profiles.flush().await;
            })?;
        }
    }
    // Health is written, credentials are not.
    let file_unchanged = read(&dir)?["profiles"] == store["profiles"];
    check(expect, &json!({"order": order, "credential": credentials, "fileUnchanged": file_unchanged}))
}

/// Loads the files of an agent directory, optionally on top of those of the main agent.
fn store_load(given: &Value, expect: &Value, now: i64) -> Result<Value, String> {
    const KNOWN: [&str; 7] = ["file", "state", "legacy", "oauth", "main", "agent", "config"];
    if let Some(name) =
        given.as_object().into_iter().flatten().map(|(name, _)| name).find(|n| !KNOWN.contains(&n.as_str()))
    {
        return Err(format!("a member that is not understood: {name}"));
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let put = |path: &str, content: &Value| match content {
        Value::Null => Ok(()),
        content => {
            let path = dir.path().join(path);
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| error.to_string())?;
            write_atomic(&path, content.to_string().as_bytes(), Access::Private).map_err(|error| error.to_string())
        }
    };
    put("main/auth-profiles.json", &given["main"])?;
    let own = if given["agent"].is_null() { &given["file"] } else { &given["agent"] };
    put("agent/auth-profiles.json", own)?;
    put("agent/auth-state.json", &given["state"])?;
    put("agent/auth.json", &given["legacy"])?;
    put("credentials/oauth.json", &given["oauth"])?;
    let host = Host::builder().clock(now, 0).build();
    let auth = config(json!({"auth": given["config"]})).auth;
    let load = |name: &str, below: Option<Profiles>| {
        let at = |file: &str| dir.path().join(file);
        let legacy = vec![at(&format!("{name}/auth.json")), at("credentials/oauth.json")];
        let (config, file) = (auth.clone(), Some(at(&format!("{name}/auth-profiles.json"))));
        Profiles::load(host.clone(), ProfileSources { config, file, legacy, below, ..ProfileSources::default() }).0
    };
    let main = given["main"].is_object().then(|| load("main", None));
    let profiles = load("agent", main);
    let file = profiles.document();
    let list = file.profiles();
    let orders = file.document().get("order").and_then(Value::as_object).into_iter().flatten();
    let order: Map<String, Value> =
        orders.filter_map(|(name, _)| Some((name.clone(), ids(&file.order(&ProviderId::new(name))?)))).collect();
    let keys = list.iter().filter_map(|profile| {
        let key = resolve(profile, host.env(), now).ok()?;
        Some((profile.id.to_string(), key.reveal().into()))
    });
    let keys: Map<String, Value> = keys.collect();
    // Whole profiles are compared if a case contains them whole.
    let whole = expect["profiles"].is_object();
    let listed = match whole {
        true => file.document().get("profiles").cloned().unwrap_or_default(),
        false => list.iter().map(|profile| profile.id.as_str()).collect(),
    };
    if let (true, Some(expected)) = (whole, expect["profiles"].as_object())
        && listed.as_object().map(Map::len) != Some(expected.len())
    {
        return Err(format!("/profiles: other profiles than expected: {listed}"));
    }
    let empty = Value::Object(Map::new());
    let member = |name: &str| file.document().get(name).unwrap_or(&empty).clone();
    Ok(json!({
        "profiles": listed, "order": order, "keys": keys,
        "lastGood": member("lastGood"), "usageStats": member("usageStats"),
    }))
}
