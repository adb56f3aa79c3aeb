//! Display of runs.

pub(crate) mod events;
pub(crate) mod payloads;
pub(crate) mod timeline;

use pinch_embed::ports::LeaseWait;

/// Describes what a run waits for before it starts.
pub(crate) fn waits_for(wait: &LeaseWait) -> String {
    match wait {
        LeaseWait::Session { ahead: 1 } => "another run of this session".to_owned(),
        LeaseWait::Session { ahead } => format!("{ahead} other runs of this session"),
        LeaseWait::Slot { ahead } => format!("a free slot ({ahead} runs ahead)"),
        LeaseWait::Process { owner: Some(pid), .. } => format!("process {pid}, which works on this session"),
        _ => "another process that works on this session".to_owned(),
    }
}
