//! Normalization of jobs as models write them into the stored form.

use serde_json::{Map, Value, json};

use super::schedule::{iso, parse_time};

/// Members of a payload that may appear at the top level.
const FLAT: [&str; 6] = ["message", "text", "model", "thinking", "timeoutSeconds", "allowUnsafeExternalContent"];
/// Maximum characters of a name derived from a text.
const MAX_NAME: usize = 60;

/// Returns a job in its stored form, with kinds, times and defaults. Errors are kept for validation.
pub fn normalized_job(raw: &Map<String, Value>) -> Map<String, Value> {
    let wrapped = ["data", "job"].iter().find_map(|key| raw.get(*key).and_then(Value::as_object));
    let mut job = wrapped.unwrap_or(raw).clone();
    if let Some(enabled) = job.get("enabled").and_then(Value::as_str).map(|text| text.trim().to_lowercase())
        && matches!(enabled.as_str(), "true" | "false")
    {
        job.insert("enabled".into(), (enabled == "true").into());
    }
    for (key, words) in [("wakeMode", ["now", "next-heartbeat"]), ("sessionTarget", ["main", "isolated"])] {
        if let Some(word) = word(job.get(key)).and_then(|word| words.into_iter().find(|known| *known == word)) {
            job.insert(key.into(), word.into());
        }
    }
    for key in ["name", "agentId"] {
        if let Some(text) = job.get(key).and_then(Value::as_str).map(|text| text.trim().to_owned()) {
            match text.is_empty() {
                true => drop(job.shift_remove(key)),
                false => drop(job.insert(key.into(), text.into())),
            }
        }
    }
    if let Some(Value::Object(schedule)) = job.get("schedule") {
        let schedule = schedule_of(schedule);
        job.insert("schedule".into(), schedule.into());
    }
    move_flat_members(&mut job);
    let mut delivery = job.get("delivery").and_then(Value::as_object).map(delivery_of);
    if let Some(Value::Object(payload)) = job.get("payload") {
        let mut payload = payload_of(payload);
        if let Some(old) = old_delivery(&mut payload) {
            delivery.get_or_insert(old);
        }
        job.insert("payload".into(), payload.into());
    }
    if let Some(old) = old_delivery(&mut job) {
        delivery.get_or_insert(old);
    }
    if let Some(delivery) = delivery {
        job.insert("delivery".into(), delivery.into());
    }
    add_defaults(&mut job);
    job
}

fn word(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty())
}

fn schedule_of(raw: &Map<String, Value>) -> Map<String, Value> {
    let mut schedule = raw.clone();
    let has = |key: &str| raw.get(key).is_some_and(|value| !value.is_null());
    let kind = word(raw.get("kind")).or_else(|| {
        let kinds = [("at", "at"), ("atMs", "at"), ("everyMs", "every"), ("expr", "cron")];
        kinds.into_iter().find(|(key, _)| has(key)).map(|(_, kind)| kind.to_owned())
    });
    if let Some(kind) = kind {
        schedule.insert("kind".into(), kind.into());
    }
    let at_ms = schedule.shift_remove("atMs");
    let at = [at_ms.as_ref(), raw.get("at")].into_iter().flatten().find_map(|at| match at {
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
        Value::Number(at) => at.as_i64().or_else(|| at.as_f64().map(|at| at as i64)),
        Value::String(at) => parse_time(at),
        _ => None,
    });
    if let Some(at) = at.and_then(iso) {
        schedule.insert("at".into(), at.into());
    }
    schedule
}

/// Moves payload members from the top level into a payload.
fn move_flat_members(job: &mut Map<String, Value>) {
    let has_payload = job.get("payload").is_some_and(Value::is_object);
    let text = |job: &Map<String, Value>, key: &str| {
        job.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
    };
    if !has_payload && (text(job, "message") || text(job, "text")) {
        job.insert("payload".into(), json!({}));
    }
    let moved: Vec<(String, Value)> =
        FLAT.iter().filter_map(|key| Some(((*key).to_owned(), job.shift_remove(*key)?))).collect();
    if let Some(Value::Object(payload)) = job.get_mut("payload") {
        for (key, value) in moved {
            payload.entry(key).or_insert(value);
        }
    }
}

fn payload_of(raw: &Map<String, Value>) -> Map<String, Value> {
    let mut payload = raw.clone();
    for key in ["message", "text", "model", "thinking"] {
        if let Some(text) = raw.get(key).and_then(Value::as_str).map(str::trim) {
            match text.is_empty() {
                true => drop(payload.shift_remove(key)),
                false => drop(payload.insert(key.into(), text.into())),
            }
        }
    }
    let kind = match word(raw.get("kind")).as_deref() {
        Some("agentturn") => Some("agentTurn"),
        Some("systemevent") => Some("systemEvent"),
        Some(_) => None,
        None if payload.contains_key("message") => Some("agentTurn"),
        None if payload.contains_key("text") => Some("systemEvent"),
        None => None,
    };
    if let Some(kind) = kind {
        payload.insert("kind".into(), kind.into());
    }
    if let Some(seconds) = raw.get("timeoutSeconds") {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; a cast saturates")]
        match seconds.as_f64() {
            Some(seconds) => drop(payload.insert("timeoutSeconds".into(), (seconds.max(1.0) as u64).into())),
            None => drop(payload.shift_remove("timeoutSeconds")),
        }
    }
    payload
}

fn delivery_of(raw: &Map<String, Value>) -> Map<String, Value> {
    let mut delivery = raw.clone();
    if let Some(mode) = word(raw.get("mode")) {
        let mode = if mode == "deliver" { "announce" } else { &mode };
        delivery.insert("mode".into(), mode.into());
    }
    let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::trim);
    for (key, text) in [("channel", text("channel").map(str::to_lowercase)), ("to", text("to").map(str::to_owned))] {
        match text {
            Some(text) if text.is_empty() => drop(delivery.shift_remove(key)),
            Some(text) => drop(delivery.insert(key.into(), text.into())),
            None => {}
        }
    }
    delivery
}

/// Removes the members that specified delivery before `delivery` existed.
fn old_delivery(members: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let mut take = |key: &str| members.shift_remove(key).filter(|value| !value.is_null());
    let (deliver, channel, provider) = (take("deliver"), take("channel"), take("provider"));
    let (to, best_effort) = (take("to"), take("bestEffortDeliver"));
    let channel = channel.or(provider);
    if deliver.is_none() && channel.is_none() && to.is_none() && best_effort.is_none() {
        return None;
    }
    let mode = if deliver == Some(Value::Bool(false)) { "none" } else { "announce" };
    let mut delivery = Map::from_iter([("mode".to_owned(), mode.into())]);
    for (key, value) in [("channel", channel), ("to", to), ("bestEffort", best_effort)] {
        delivery.extend(value.map(|value| (key.to_owned(), value)));
    }
    Some(delivery_of(&delivery))
}

fn add_defaults(job: &mut Map<String, Value>) {
    let kind = |job: &Map<String, Value>, of: &str| job.get(of).and_then(|of| of["kind"].as_str()).map(str::to_owned);
    job.entry("wakeMode").or_insert_with(|| "now".into());
    job.entry("enabled").or_insert(Value::Bool(true));
    if !job.contains_key("name") {
        let name = name_of(job);
        job.insert("name".into(), name.into());
    }
    let payload = kind(job, "payload");
    let target = match payload.as_deref() {
        Some("agentTurn") => Some("isolated"),
        Some("systemEvent") => Some("main"),
        _ => None,
    };
    if let Some(target) = target {
        job.entry("sessionTarget").or_insert_with(|| target.into());
    }
    if kind(job, "schedule").as_deref() == Some("at") {
        job.entry("deleteAfterRun").or_insert(Value::Bool(true));
    }
    let is_isolated = job.get("sessionTarget").and_then(Value::as_str) == Some("isolated");
    if is_isolated && payload.as_deref() == Some("agentTurn") {
        job.entry("delivery").or_insert_with(|| json!({"mode": "announce"}));
    }
}

/// Derives a name from the first line of the job's text, or else from its schedule.
fn name_of(job: &Map<String, Value>) -> String {
    let payload = job.get("payload").unwrap_or(&Value::Null);
    let text = ["message", "text"].iter().find_map(|key| payload[*key].as_str()).unwrap_or_default();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if !first.is_empty() {
        return match first.char_indices().nth(MAX_NAME) {
            None => first.to_owned(),
            Some(_) => first.chars().take(MAX_NAME - 1).collect::<String>().trim_end().to_owned() + "…",
        };
    }
    let schedule = job.get("schedule").unwrap_or(&Value::Null);
    match (schedule["expr"].as_str(), &schedule["everyMs"]) {
        (Some(expr), _) => format!("Cron: {expr}"),
        (None, Value::Number(every)) => format!("Every: {every}ms"),
        _ => "One-shot".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: Value, expect: Value) {
        assert_eq!(Value::Object(normalized_job(raw.as_object().unwrap())), expect);
    }

    #[test]
    fn legacy_members_become_a_delivery() {
        let payload = json!({"message": " go\nand on ", "deliver": true, "provider": " Slack", "to": "C1 ", "bestEffortDeliver": true});
        check(
            json!({"schedule": {"expr": "* * * * *"}, "payload": payload, "name": " "}),
            json!({
                "schedule": {"expr": "* * * * *", "kind": "cron"},
                "payload": {"message": "go\nand on", "kind": "agentTurn"},
                "delivery": {"mode": "announce", "channel": "slack", "to": "C1", "bestEffort": true},
                "wakeMode": "now", "enabled": true, "name": "go", "sessionTarget": "isolated",
            }),
        );
    }
}
