//! Showing runs to people.

pub(crate) mod events;
pub(crate) mod payloads;
pub(crate) mod timeline;

use pinch_embed::ports::LeaseWait;

/// What a run waits for before it begins.
pub(crate) fn waits_for(wait: &LeaseWait) -> String {
    match wait {
        LeaseWait::Session { ahead: 1 } => "another run of this session".to_owned(),
        LeaseWait::Session { ahead } => format!("{ahead} other runs of this session"),
        LeaseWait::Slot { ahead } => format!("a free slot ({ahead} runs ahead)"),
        LeaseWait::Process { owner: Some(pid), .. } => format!("process {pid}, which works on this session"),
        _ => "another process that works on this session".to_owned(),
    }
}
