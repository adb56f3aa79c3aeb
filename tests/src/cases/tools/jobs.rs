//! `cron-normalize`, `cron-schedule`, `cron-delivery`, `announce-target`, `a2a`.

use pinch_tools::cron::normalize::normalized_job;
use pinch_tools::cron::schedule::{JobSchedule, backoff, parse_time};
use pinch_tools::cron::target::{announce_target, job_delivery, ping_pong_turns};
use serde_json::{Value, json};

use super::super::{Case, CaseOutcome};
use super::{check, only, wanted};

pub(super) fn normalized(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["job"])?;
    Ok(Value::Object(normalized_job(input["job"].as_object().ok_or("the job is no object")?)))
}

pub(super) fn schedule(case: &Case<'_>) -> CaseOutcome {
    let input = &case.case["input"];
    let given = &input["schedule"];
    if let Err(why) = only(input, &["schedule", "nowMs", "consecutiveErrors"]) {
        return CaseOutcome::Failed(why);
    }
    let errors = match &input["consecutiveErrors"] {
        Value::Array(all) => Some(all.clone()),
        Value::Number(one) => Some(vec![one.clone().into()]),
        _ => None,
    };
    let actual = if let Some(errors) = errors {
        let wait = |n: &Value| backoff(u32::try_from(n.as_u64().unwrap_or(0)).unwrap_or(u32::MAX)).as_millis();
        json!({"backoffMs": errors.iter().map(wait).map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)).collect::<Vec<_>>()})
    } else {
        let schedule = match given["kind"].as_str() {
            Some("at") => {
                let at = given["atMs"].as_i64().or_else(|| parse_time(given["at"].as_str()?));
                at.map(JobSchedule::At)
            }
            Some("every") => given["everyMs"]
                .as_i64()
                .map(|every_ms| JobSchedule::Every { every_ms, anchor_ms: given["anchorMs"].as_i64() }),
            Some("cron") => given["expr"]
                .as_str()
                .map(|expr| JobSchedule::Cron { expr: expr.to_owned(), tz: given["tz"].as_str().map(str::to_owned) }),
            _ => return CaseOutcome::Failed(format!("unknown schedule {given}")),
        };
        let next = schedule.and_then(|schedule| schedule.next(input["nowMs"].as_i64().unwrap_or_default()));
        json!({"nextMs": next})
    };
    check(wanted(case), &actual).into()
}

pub(super) fn delivery(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["sessionKey"])?;
    let found = job_delivery(input["sessionKey"].as_str().unwrap_or_default());
    let shown = |found: pinch_tools::cron::target::JobDelivery| json!({"mode": "announce", "to": found.to, "channel": found.channel});
    Ok(json!({"delivery": found.map(shown)}))
}

pub(super) fn announce(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["sessionKey"])?;
    let found = announce_target(input["sessionKey"].as_str().unwrap_or_default());
    let shown = |found: pinch_tools::cron::target::AnnounceTarget| json!({"channel": found.channel, "to": found.to, "threadId": found.thread});
    Ok(json!({"target": found.map(shown)}))
}

pub(super) fn turns(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["maxPingPongTurns"])?;
    Ok(json!({"turns": ping_pong_turns(input["maxPingPongTurns"].as_f64())}))
}
