//! RPC mode: a session driven by lines of JSON, as pi 0.87.1 speaks them.
//!
//! Commands are done as they arrive. While a prompt runs, queries are answered and changes are made between two events of the run; commands that
//! need the session for themselves cancel the run first: see [`RpcCommand`](crate::protocol::command::RpcCommand).

use std::fmt;

use pinch_stdx::cancel::Cancel;

use crate::runtime::SessionRuntime;

mod snapshots;
mod approvals;
mod outbox;
mod dialogs;
mod io;
mod waiting;
mod context;
mod pages;
mod busy;
mod idle;

pub use dialogs::ClientUi;
pub use io::{IncomingLine, LineChannel};

use waiting::{Backlog, serve_during};

/// Why RPC mode ended before its client did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The user interface of the client is in use by another one.
    #[error("the client's user interface is already in use")]
    Taken,
    /// The client does not read any more.
    #[error("the client does not read the output")]
    NobodyReads,
}

/// Serves a client until it writes nothing more, does not read any more, or until `stop`; whatever runs then is cancelled. `ui` is the one that the
/// session's extensions were given.
///
/// # Errors
/// [`RpcError`].
pub async fn rpc(
    runtime: &mut SessionRuntime,
    ui: &ClientUi,
    lines: LineChannel,
    stop: &Cancel,
) -> Result<(), RpcError> {
    RpcClient::new(ui, lines, stop)?.serve(runtime).await
}

/// A client, also before there is a session for it.
pub struct RpcClient {
    io: io::Io,
    ui: ClientUi,
    stop: Cancel,
    backlog: Backlog,
}

impl RpcClient {
    /// The client at the other end of these lines; `ui` is the one that the session's extensions are given.
    ///
    /// # Errors
    /// [`RpcError::Taken`].
    pub fn new(ui: &ClientUi, lines: LineChannel, stop: &Cancel) -> Result<Self, RpcError> {
        let io = io::Io::new(lines, ui, stop).ok_or(RpcError::Taken)?;
        Ok(Self { stop: io.stop().clone(), io, ui: ui.clone(), backlog: Backlog::default() })
    }

    /// Waits for a future, the creation of a session above all. Extensions may ask the user behind the client meanwhile; commands wait until
    /// [`RpcClient::serve`].
    pub async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> T {
        serve_during(&mut self.io, &self.ui, &mut self.backlog, work).await
    }

    /// Serves the client: see [`rpc`].
    ///
    /// # Errors
    /// [`RpcError::NobodyReads`].
    pub async fn serve(self, runtime: &mut SessionRuntime) -> Result<(), RpcError> {
        idle::IdleServer::new(runtime, self).serve().await
    }
}

impl fmt::Debug for RpcClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("n_postponed", &self.io.n_postponed()).finish_non_exhaustive()
    }
}

/// The longest line of a client that is read, in bytes: a prompt with a few large images.
pub const MAX_LINE: usize = 256 * 1024 * 1024;
