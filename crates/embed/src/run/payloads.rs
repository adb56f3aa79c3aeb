//! What a run gives back for people.

use crate::replies::tokens::{HEARTBEAT, HeartbeatMode, SILENT, is_silent, strip_heartbeat};
use crate::replies::user_text::sanitise;

/// The last step of any reply: tokens go, scaffolding goes, the prefix comes; `None` when nothing is worth sending. `has_more` says that the
/// payload has media or data of a channel.
pub fn normalise_reply(text: &str, has_more: bool, prefix: Option<&str>) -> Option<String> {
    if text.trim().is_empty() && !has_more {
        return None;
    }
    let mut text = text.to_owned();
    if is_silent(&text) {
        if !has_more {
            return None;
        }
        text.clear();
    }
    if text.contains(HEARTBEAT) {
        let stripped = strip_heartbeat(&text, HeartbeatMode::Message);
        if stripped.skip && !has_more {
            return None;
        }
        text = stripped.text;
    }
    text = sanitise(&text);
    if text.trim().is_empty() && !has_more {
        return None;
    }
    match prefix.filter(|prefix| !prefix.is_empty() && !text.is_empty()) {
        Some(prefix) if !text.starts_with(prefix) && text.trim() != HEARTBEAT && text.trim() != SILENT => {
            Some(format!("{prefix} {text}"))
        }
        _ => Some(text),
    }
}
