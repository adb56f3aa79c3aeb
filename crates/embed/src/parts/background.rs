//! Work that an engine does by itself, without a host that polls it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::Parts;

/// The tasks of an engine, which end with it. The engine owns them; tasks and tools only refer to them.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    tasks: Mutex<JoinSet<()>>,
    /// The parts of the engine with its current configuration.
    current: Mutex<Weak<Parts>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BackgroundTasks {
    /// Sets the parts that new work uses.
    pub(crate) fn set_parts(&self, parts: &Arc<Parts>) {
        *locked(&self.current) = Arc::downgrade(parts);
    }

    /// Returns the current parts; `None` if the engine is gone.
    pub(crate) fn parts(&self) -> Option<Arc<Parts>> {
        locked(&self.current).upgrade()
    }

    /// Starts a task. Must be called inside a runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Waits until all tasks have ended, and stops those that take longer than the limit. They end by themselves once the gate is closed.
    pub(crate) async fn stop(&self, limit: Duration) {
        let mut tasks = std::mem::take(&mut *locked(&self.tasks));
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            tasks.shutdown().await;
        }
    }
}
