//! `session`: which conversations share a session, and when a session is reset.

use pinch_coding_agent::document::Problem;

use super::node::Node;
use crate::key::DmScope;

/// `session`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Which direct chats share one session (`dmScope`).
    pub dm_scope: DmScope,
    /// Name of the session that direct chats share (`mainKey`).
    pub main_key: String,
    /// People by name, each with their ids in channels (`identityLinks`).
    pub identity_links: Vec<(String, Vec<String>)>,
    /// When a session is reset.
    pub reset: ResetRules,
    /// Messages that start a new session (`resetTriggers`).
    pub reset_triggers: Vec<String>,
}

/// When a session is reset automatically: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRules {
    /// Every day at this hour, local time.
    pub daily_at_hour: Option<u8>,
    /// After this many minutes without a message.
    pub idle_minutes: Option<u64>,
}

/// Default hour of a daily reset.
const DEFAULT_HOUR: u8 = 4;
/// Default minutes of an idle reset.
const DEFAULT_IDLE_MINUTES: u64 = 60;

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            dm_scope: DmScope::default(),
            main_key: "main".to_owned(),
            identity_links: Vec::new(),
            reset: ResetRules::default(),
            reset_triggers: ["/new", "/reset"].map(str::to_owned).to_vec(),
        }
    }
}

impl SessionConfig {
    pub(super) fn read(node: &Node<'_>, reset: ResetRules, problems: &mut Vec<Problem>) -> Self {
        let default = Self::default();
        node.object(problems);
        let scopes = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"];
        let links = node.get("identityLinks").members(problems).into_iter();
        let links = links.map(|(name, peers)| (name.to_owned(), peers.texts(problems).unwrap_or_default())).collect();
        Self {
            dm_scope: node.get("dmScope").word(problems, &scopes, DmScope::parse).unwrap_or_default(),
            main_key: node.get("mainKey").text(problems).unwrap_or(default.main_key),
            identity_links: links,
            reset: ResetRules::read(node, reset, problems),
            reset_triggers: node.get("resetTriggers").texts(problems).unwrap_or(default.reset_triggers),
        }
    }
}

/// `session.reset.mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResetMode {
    None,
    Daily,
    Idle,
}

impl ResetMode {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "none" => Self::None,
            "daily" => Self::Daily,
            "idle" => Self::Idle,
            _ => return None,
        })
    }
}

impl Default for ResetRules {
    /// Every day at 4:00.
    fn default() -> Self {
        Self { daily_at_hour: Some(DEFAULT_HOUR), idle_minutes: None }
    }
}

impl ResetRules {
    /// A session lasts until someone starts a new one.
    pub const NEVER: Self = Self { daily_at_hour: None, idle_minutes: None };

    fn read(session: &Node<'_>, default: Self, problems: &mut Vec<Problem>) -> Self {
        let reset = session.get("reset");
        reset.object(problems);
        // The former key for the idle minutes.
        let idle_minutes = reset.get("idleMinutes").count(problems).or(session.get("idleMinutes").count(problems));
        let hour = reset.get("atHour");
        let at_hour = hour.count(problems).and_then(|at| {
            let at = u8::try_from(at).ok().filter(|at| *at < 24);
            if at.is_none() {
                problems
                    .push(hour.problem("must be an hour from 0 to 23").remedy("Correct it; until then it is ignored"));
            }
            at
        });
        let mode = reset.get("mode").word(problems, &["none", "daily", "idle"], ResetMode::parse);
        // Without a mode, the other settings imply it.
        let mode = match (mode, at_hour, idle_minutes) {
            (Some(mode), ..) => mode,
            (None, Some(_), _) => ResetMode::Daily,
            (None, None, Some(_)) => ResetMode::Idle,
            (None, None, None) => return default,
        };
        match mode {
            ResetMode::None => Self::NEVER,
            ResetMode::Daily => Self { daily_at_hour: Some(at_hour.unwrap_or(DEFAULT_HOUR)), idle_minutes },
            ResetMode::Idle => {
                Self { daily_at_hour: None, idle_minutes: Some(idle_minutes.unwrap_or(DEFAULT_IDLE_MINUTES)) }
            }
        }
    }
}
