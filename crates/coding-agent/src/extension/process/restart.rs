//! Starting a process anew for the session that replaces the current one.

use std::sync::{Arc, PoisonError};

use pinch_stdx::host::Host;
use tokio::task::JoinSet;

use super::link::Link;
use super::{ProcessExtension, ProcessSpec};
use crate::extension::{Extension, ExtensionError};

/// A process with those whose place it took, oldest first. They live as long as their tasks.
pub(super) struct Processes(Vec<(Arc<Link>, JoinSet<()>)>);

impl Processes {
    pub(super) fn of(link: &Arc<Link>, tasks: JoinSet<()>) -> Self {
        Self(vec![(Arc::clone(link), tasks)])
    }

    pub(super) fn links(&self) -> Vec<Arc<Link>> {
        self.0.iter().map(|(link, _)| Arc::clone(link)).collect()
    }

    /// Takes those that have not ended.
    fn take_living(&mut self) -> Self {
        Self(std::mem::take(&mut self.0).into_iter().filter(|(link, _)| link.gone().is_none()).collect())
    }
}

impl ProcessExtension {
    /// Makes the process end with its session, and another one take its place in the next session, so that nothing of its state is left. A
    /// process that serves several sessions is not restarted.
    #[must_use]
    pub fn restarting(mut self, spec: ProcessSpec, host: Host) -> Self {
        self.restart = Some((spec, host));
        self
    }
}

/// Implements [`Extension::restart`]. A process that runs a command, such as the one that replaces the session, ends with its last command;
/// until then it reaches the next session with the contexts that it was given for it only.
pub(super) async fn restart(extension: &ProcessExtension) -> Result<Option<Arc<dyn Extension>>, ExtensionError> {
    let Some((spec, host)) = &extension.restart else { return Ok(None) };
    let former = extension.processes.lock().unwrap_or_else(PoisonError::into_inner).take_living();
    let link = &extension.link;
    let closing = async {
        if link.retire() {
            link.close().await;
        }
    };
    let ((), started) = tokio::join!(closing, ProcessExtension::start(spec.clone(), host));
    let mut next = started?.restarting(spec.clone(), host.clone());
    if let Some(listener) = &extension.listener {
        next = next.printing_to(listener.clone());
    }
    let processes = next.processes.get_mut().unwrap_or_else(PoisonError::into_inner);
    processes.0.splice(0..0, former.0.into_iter().filter(|(link, _)| link.gone().is_none()));
    Ok(Some(Arc::new(next)))
}
