//! RPC mode: a session controlled by JSON lines, compatible with pi 0.87.1.
//!
//! Commands are executed as they arrive. During a prompt, queries are answered and changes are applied between two events of the run;
//! commands that need exclusive access to the session cancel the run first: see [`RpcCommand`](crate::protocol::command::RpcCommand).

use std::fmt;

use futures::future::BoxFuture;
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
    /// The client user interface is already in use.
    #[error("the client's user interface is already in use")]
    Taken,
    /// The client stopped reading.
    #[error("the client does not read the output")]
    NobodyReads,
}

/// Serves a client until it closes its output, stops reading, or `stop` is cancelled; running work is cancelled then. `ui` must be the one
/// given to the session's extensions.
///
/// # Errors
/// [`RpcError`].
pub fn rpc<'a>(
    runtime: &'a mut SessionRuntime,
    ui: &'a ClientUi,
    lines: LineChannel,
    stop: &'a Cancel,
) -> BoxFuture<'a, Result<(), RpcError>> {
    Box::pin(async move { RpcClient::new(ui, lines, stop)?.serve(runtime).await })
}

/// A client, which may exist before its session.
pub struct RpcClient {
    io: io::Io,
    ui: ClientUi,
    stop: Cancel,
    backlog: Backlog,
}

impl RpcClient {
    /// Creates a client with these lines; `ui` must be the one given to the session's extensions.
    ///
    /// # Errors
    /// [`RpcError::Taken`].
    pub fn new(ui: &ClientUi, lines: LineChannel, stop: &Cancel) -> Result<Self, RpcError> {
        let io = io::Io::new(lines, ui, stop).ok_or(RpcError::Taken)?;
        Ok(Self { stop: io.stop().clone(), io, ui: ui.clone(), backlog: Backlog::default() })
    }

    /// Waits for a future, usually the creation of a session. Meanwhile extensions may ask the client's user; commands wait until
    /// [`RpcClient::serve`].
    pub async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> T {
        serve_during(&mut self.io, &self.ui, &mut self.backlog, work).await
    }

    /// Serves the client: see [`rpc`].
    ///
    /// # Errors
    /// [`RpcError::NobodyReads`].
    pub fn serve(self, runtime: &mut SessionRuntime) -> BoxFuture<'_, Result<(), RpcError>> {
        Box::pin(async move { idle::IdleServer::new(runtime, self).serve().await })
    }
}

impl fmt::Debug for RpcClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("n_postponed", &self.io.n_postponed()).finish_non_exhaustive()
    }
}

/// Maximum bytes of a client's line: enough for a prompt with a few large images.
pub const MAX_LINE: usize = 256 * 1024 * 1024;
