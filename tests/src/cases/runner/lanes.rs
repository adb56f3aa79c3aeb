//! The order in which lanes start runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use pinch_embed::lanes::Lanes;
use pinch_embed::ports::{LeaseRequest, LocalLeases, RunLeases as _};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use super::check;

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    if area != "lane-order" {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let actual = match runtime {
        Ok(runtime) => runtime.block_on(play(given)),
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(check(expect, &actual))
}

async fn play(given: &Value) -> Value {
    let lanes = Lanes::default();
    for (lane, places) in given["lanes"].as_object().into_iter().flatten() {
        lanes.set_concurrency(lane, places.as_u64().unwrap_or(1) as usize);
    }
    let leases = LocalLeases::new(lanes.clone(), Host::builder().build());
    let failing: BTreeSet<&str> = given["fail"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let blocks = given["all_block_until"].is_string() || given["while_running"].is_string();
    let release = Cancel::new();
    if !blocks {
        release.cancel(pinch_stdx::cancel::CancelReason::User);
    }
    let started = Arc::new(Mutex::new(Vec::new()));
    let tasks = given["enqueue"].as_array().into_iter().flatten().map(|entry| {
        let (name, session) = (entry[0].as_str().unwrap_or(""), entry[1].as_str().unwrap_or(""));
        let (leases, release, started, failing) = (&leases, release.clone(), Arc::clone(&started), &failing);
        async move {
            let (session, cancel) = (format!("session:{session}"), Cancel::new());
            let lease = leases.acquire(LeaseRequest::new(&session, "main", &cancel)).await;
            let outcome = match lease {
                Ok(_lease) => {
                    started.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
                    release.cancelled().await;
                    if failing.contains(name) { "rejected" } else { "resolved" }
                }
                Err(_) => "rejected",
            };
            (name.to_owned(), Value::from(outcome))
        }
    });
    let mut actual = Map::new();
    let steer = async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let running = started.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cleared = given["clear"].as_str().map(|lane| lanes.clear(lane));
        release.cancel(pinch_stdx::cancel::CancelReason::User);
        (running, cleared)
    };
    let (outcomes, (running, cleared)) = futures::future::join(join_all(tasks), steer).await;
    let all = started.lock().unwrap_or_else(PoisonError::into_inner).clone();
    actual.extend(outcomes);
    actual.insert("then".into(), json!(all[running.len()..]));
    actual.insert("running_before_release".into(), json!(running));
    actual.insert("cleared".into(), json!(cleared));
    Value::Object(actual)
}
