//! RPC mode: a session driven by lines of JSON, as pi 0.87.1 speaks them.
//!
//! Commands are done as they arrive. While a prompt runs, what only looks at the session is answered at once, what changes it reaches the run
//! between two events, and what needs another session ends the run first.

use pinch_stdx::cancel::Cancel;

use crate::runtime::SessionRuntime;

mod snapshots;
mod approvals;
mod dialogs;
mod io;
mod desk;
mod busy;
mod idle;

pub use dialogs::ClientUi;
pub use io::{Incoming, Lines};

/// Why RPC mode ended before its client did.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The person behind the client serves another one already.
    #[error("the client's UI is in use already")]
    Taken,
    /// The client does not read any more.
    #[error("nobody reads the output")]
    NobodyReads,
}

/// Serves a client until it has nothing more to say, or until `stop`. A prompt that runs when the client's last word is said comes to its end;
/// `stop` cancels it. `ui` is the one that the session's extensions were given. When the client does not read any more, everything is cancelled.
///
/// # Errors
/// [`RpcError`].
pub async fn rpc(runtime: &mut SessionRuntime, ui: &ClientUi, lines: Lines, stop: &Cancel) -> Result<(), RpcError> {
    let io = io::Io::new(lines, ui, stop).ok_or(RpcError::Taken)?;
    idle::Server::new(runtime, io, ui.clone(), stop).serve().await
}

/// The longest line of a client that is read, in bytes: a prompt with a few large images.
pub const MAX_LINE: usize = 256 * 1024 * 1024;
