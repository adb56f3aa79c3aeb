//! A thread that confines itself and then runs work for others.

use std::io;
use std::sync::mpsc::sync_channel;

use pinch_stdx::process::start_watchdog;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::kernel::ConfineError;

/// A confined thread. Ends when this is dropped; its pending work is cancelled.
pub(crate) struct ConfinedThread {
    handle: Handle,
    _until_dropped: oneshot::Sender<()>,
}

impl ConfinedThread {
    /// Starts a thread that runs `confine` first. Threads it starts later are confined as well.
    pub(crate) fn start(
        name: &str,
        confine: impl FnOnce() -> Result<(), ConfineError> + Send + 'static,
    ) -> Result<Self, ConfineError> {
        // Started by a confined thread, it could not end commands outside of the sandbox.
        start_watchdog();
        let (ready_tx, ready) = sync_channel(1);
        let (until_dropped, dropped) = oneshot::channel::<()>();
        let work = move || {
            let built =
                confine().and_then(|()| Ok(tokio::runtime::Builder::new_current_thread().enable_time().build()?));
            let runtime = match built {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready_tx.send(Err(error))),
            };
            if ready_tx.send(Ok(runtime.handle().clone())).is_ok() {
                drop(runtime.block_on(dropped));
            }
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        let handle = ready.recv().map_err(|_| io::Error::other("the thread ended before it was confined"))??;
        Ok(Self { handle, _until_dropped: until_dropped })
    }

    /// Runs a future on the thread. Dropping the returned future cancels it.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
        let (mut tx, rx) = oneshot::channel();
        let task = self.handle.spawn(async move {
            tokio::select! {
                done = work => drop(tx.send(done)),
                () = tx.closed() => {}
            }
        });
        let done = rx.await;
        drop(task);
        done.map_err(|_| io::Error::other("the sandbox has ended"))
    }

    /// Starts a detached future on the thread.
    pub(crate) fn start_task(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }
}
