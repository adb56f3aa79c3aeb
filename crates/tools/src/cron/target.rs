//! Delivery targets for answers that no caller waits for.

/// A target for announcements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnounceTarget {
    /// The channel.
    pub channel: String,
    /// The group or channel within it, like `group:-100`.
    pub to: String,
    /// The thread or topic.
    pub thread: Option<String>,
}

/// Where a job's answer is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDelivery {
    /// The channel, if the session key names one.
    pub channel: Option<String>,
    /// The person or group.
    pub to: String,
}

fn parts(key: &str) -> Vec<&str> {
    key.trim().split(':').filter(|part| !part.is_empty()).collect()
}

/// Returns the group in a session key: `…:<channel>:<group|channel>:<id>[:topic|thread:<id>]`.
pub fn announce_target(key: &str) -> Option<AnnounceTarget> {
    let parts = parts(key);
    let body = match parts.as_slice() {
        ["agent", _, body @ ..] if !body.is_empty() => body,
        all => all,
    };
    let [channel, kind @ ("group" | "channel"), id @ ..] = body else { return None };
    let (id, thread) = match id {
        [id @ .., "topic" | "thread", thread] if !id.is_empty() => (id, Some((*thread).to_owned())),
        id => (id, None),
    };
    let channel = channel.to_lowercase();
    // These have no groups: every conversation is a channel.
    let kind = if matches!(channel.as_str(), "discord" | "slack") { "channel" } else { kind };
    let id = id.join(":").trim().to_owned();
    (!id.is_empty()).then(|| AnnounceTarget { to: format!("{kind}:{id}"), channel, thread })
}

/// Returns the person or group of the session that created a job.
pub fn job_delivery(key: &str) -> Option<JobDelivery> {
    let key = key.trim();
    let lower = key.to_ascii_lowercase();
    let without_thread = lower.rfind(":thread:").filter(|at| *at > 0).map_or(key, |at| &key[..at]);
    let parts = parts(without_thread);
    let ["agent", _, body @ ..] = parts.as_slice() else { return None };
    let head = body.first()?.trim().to_lowercase();
    if matches!(head.as_str(), "main" | "subagent" | "acp" | "cron") {
        return None;
    }
    let at = body.iter().position(|part| matches!(*part, "direct" | "dm" | "group" | "channel"))?;
    let to = body[at + 1..].join(":").trim().to_owned();
    (!to.is_empty()).then(|| JobDelivery { channel: (at > 0).then_some(head), to })
}

/// Maximum turns that two agents may answer each other.
const MAX_TURNS: u8 = 5;

/// Returns the maximum number of turns that two agents may answer each other: `session.agentToAgent.maxPingPongTurns`, from 0 to 5.
pub fn ping_pong_turns(configured: Option<f64>) -> u8 {
    let turns = configured.filter(|turns| turns.is_finite()).unwrap_or(f64::from(MAX_TURNS));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 5")]
    let turns = turns.clamp(0.0, f64::from(MAX_TURNS)) as u8;
    turns
}
