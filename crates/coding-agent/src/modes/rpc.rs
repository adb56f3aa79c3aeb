//! RPC mode: a session driven by lines of JSON, as pi 0.87.1 speaks them.
//!
//! Commands are done as they arrive. While a prompt runs, what only looks at the session is answered at once, what changes it reaches the run
//! between two events, and what needs another session ends the run first.

use pinch_stdx::cancel::Cancel;

use crate::runtime::SessionRuntime;

mod snapshots;
mod io;
mod desk;
mod busy;
mod idle;

pub use io::{Incoming, Lines};

/// Why RPC mode ended before its client did.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The client does not read any more.
    #[error("nobody reads the output")]
    NobodyReads,
}

/// Serves a client until it has nothing more to say, or until `stop`. A prompt that runs when the client's last word is said comes to its end;
/// `stop` cancels it. When the client does not read any more, everything is cancelled.
///
/// # Errors
/// [`RpcError`].
pub async fn rpc(runtime: &mut SessionRuntime, lines: Lines, stop: &Cancel) -> Result<(), RpcError> {
    idle::Server::new(runtime, io::Io::new(lines, stop), stop).serve().await
}

/// The longest line of a client that is read, in bytes: a prompt with a few large images.
pub const MAX_LINE: usize = 256 * 1024 * 1024;
