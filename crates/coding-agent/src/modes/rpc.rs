//! RPC mode: a session driven by lines of JSON, as pi 0.87.1 speaks them.
//!
//! Commands are done as they arrive. While a prompt runs, what only looks at the session is answered at once, what changes it reaches the run
//! between two events, and what needs another session ends the run first.

use std::fmt;

use pinch_stdx::cancel::Cancel;

use crate::runtime::SessionRuntime;

mod snapshots;
mod approvals;
mod outbox;
mod dialogs;
mod io;
mod meanwhile;
mod desk;
mod pages;
mod busy;
mod idle;

pub use dialogs::ClientUi;
pub use io::{Incoming, Lines};

use meanwhile::{Left, meanwhile};

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

/// Serves a client until it has nothing more to say, does not read any more, or until `stop`; whatever runs then is cancelled. `ui` is the one that
/// the session's extensions were given.
///
/// # Errors
/// [`RpcError`].
pub async fn rpc(runtime: &mut SessionRuntime, ui: &ClientUi, lines: Lines, stop: &Cancel) -> Result<(), RpcError> {
    Client::new(ui, lines, stop)?.serve(runtime).await
}

/// A client, also before there is a session for it.
pub struct Client {
    io: io::Io,
    ui: ClientUi,
    stop: Cancel,
    left: Left,
}

impl Client {
    /// The client at the other end of these lines; `ui` is the one that the session's extensions are given.
    ///
    /// # Errors
    /// [`RpcError::Taken`].
    pub fn new(ui: &ClientUi, lines: Lines, stop: &Cancel) -> Result<Self, RpcError> {
        let io = io::Io::new(lines, ui, stop).ok_or(RpcError::Taken)?;
        Ok(Self { stop: io.stop().clone(), io, ui: ui.clone(), left: Left::default() })
    }

    /// Waits for something, the making of a session above all. Extensions may ask the person behind the client meanwhile; commands wait until
    /// the client is served.
    pub async fn attend<T>(&mut self, work: impl Future<Output = T>) -> T {
        meanwhile(&mut self.io, &self.ui, &mut self.left, work).await
    }

    /// Serves the client: see [`rpc`].
    ///
    /// # Errors
    /// [`RpcError::NobodyReads`].
    pub async fn serve(self, runtime: &mut SessionRuntime) -> Result<(), RpcError> {
        idle::Server::new(runtime, self).serve().await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("n_postponed", &self.io.n_postponed()).finish_non_exhaustive()
    }
}

/// The longest line of a client that is read, in bytes: a prompt with a few large images.
pub const MAX_LINE: usize = 256 * 1024 * 1024;
