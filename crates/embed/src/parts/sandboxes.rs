//! Sandboxes of all runs. Runs of one scope share a sandbox, including its temporary files, until it has been idle for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pinch_sandbox::choose::{self, EnteredSandbox, SandboxBackend};
use pinch_sandbox::config::SandboxPrune;
use pinch_sandbox::confinement::Confinement;
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::contract::SandboxUnavailable;

/// Maximum number of idle sandboxes kept for later runs.
const MAX_IDLE: usize = 64;
const HOUR_MS: f64 = 3_600_000.0;

/// Requirements for the sandbox of a run.
pub(crate) struct RequiredSandbox<'a> {
    /// Runs with the same key share a sandbox.
    pub(crate) key: String,
    pub(crate) backend: SandboxBackend,
    pub(crate) confinement: Confinement,
    pub(crate) containers: ContainerOptions,
    /// Value of `PATH`.
    pub(crate) path: &'a str,
    pub(crate) prune: SandboxPrune,
    pub(crate) now_ms: i64,
}

/// Sandboxes of all runs.
#[derive(Clone, Default)]
pub(crate) struct Sandboxes {
    known: Arc<Mutex<BTreeMap<String, Slot>>>,
}

/// Runs that need the same sandbox wait for the one that enters it.
type Slot = Arc<tokio::sync::Mutex<Option<KnownSandbox>>>;

struct KnownSandbox {
    backend: SandboxBackend,
    confinement: Confinement,
    containers: ContainerOptions,
    entered: EnteredSandbox,
    entered_at_ms: i64,
    used_at_ms: i64,
}

impl KnownSandbox {
    /// Returns whether the sandbox meets the requirements.
    fn fits(&self, asked: &RequiredSandbox<'_>) -> bool {
        let mut containers = asked.containers.clone();
        containers.now_ms = self.containers.now_ms;
        (self.backend, &self.confinement, &self.containers) == (asked.backend, &asked.confinement, &containers)
    }

    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.entered.machine) == 1
    }

    /// Returns whether it has been idle for so long, or is so old, that it should be removed. 0 disables a rule.
    fn is_due(&self, prune: SandboxPrune, now_ms: i64) -> bool {
        let is_over = |since: i64, hours: f64| hours > 0.0 && (now_ms - since) as f64 > hours * HOUR_MS;
        self.is_idle()
            && (is_over(self.used_at_ms, prune.idle_hours) || is_over(self.entered_at_ms, prune.max_age_days * 24.0))
    }
}

impl Sandboxes {
    /// Returns the sandbox for a run: the existing one of its scope if it meets the requirements, else a new one.
    pub(crate) async fn enter(&self, asked: RequiredSandbox<'_>) -> Result<EnteredSandbox, SandboxUnavailable> {
        let slot = self.slot(&asked);
        let mut slot = slot.lock().await;
        if let Some(known) = slot.as_mut()
            && known.fits(&asked)
        {
            known.used_at_ms = asked.now_ms;
            return Ok(known.entered.clone());
        }
        let entered = choose::enter(asked.backend, asked.path, &asked.containers, &asked.confinement).await?;
        let known = slot.insert(KnownSandbox {
            backend: asked.backend,
            confinement: asked.confinement,
            containers: asked.containers,
            entered,
            entered_at_ms: asked.now_ms,
            used_at_ms: asked.now_ms,
        });
        Ok(known.entered.clone())
    }

    /// Returns the slot of a sandbox, and removes expired sandboxes.
    fn slot(&self, asked: &RequiredSandbox<'_>) -> Slot {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<(i64, String)> = Vec::new();
        known.retain(|key, slot| {
            // A sandbox that is being entered is in use.
            let Ok(slot) = slot.try_lock() else { return true };
            let Some(sandbox) = &*slot else { return false };
            if sandbox.is_idle() && *key != asked.key {
                idle.push((sandbox.used_at_ms, key.clone()));
            }
            !sandbox.is_due(asked.prune, asked.now_ms)
        });
        idle.sort_unstable();
        for (_, key) in idle.iter().take(idle.len().saturating_sub(MAX_IDLE)) {
            known.remove(key);
        }
        Arc::clone(known.entry(asked.key.clone()).or_default())
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use std::io::Write as _;

    use pinch_sandbox::config::ContainerConfig;

    use super::*;

    fn asked(key: &str, workspace: &std::path::Path, now_ms: i64) -> RequiredSandbox<'static> {
        RequiredSandbox {
            key: key.to_owned(),
            backend: SandboxBackend::Landlock,
            confinement: Confinement::new(workspace),
            containers: ContainerOptions::new(ContainerConfig::default(), key),
            path: "",
            prune: SandboxPrune { idle_hours: 1.0, max_age_days: 1.0, copy_days: 0.0 },
            now_ms,
        }
    }

    /// Enters a first sandbox if the kernel supports it.
    async fn first(sandboxes: &Sandboxes, workspace: &std::path::Path) -> Option<EnteredSandbox> {
        let entered = sandboxes.enter(asked("a", workspace, 0)).await;
        entered.inspect_err(|error| drop(writeln!(std::io::stderr(), "skipped: {error}"))).ok()
    }

    #[tokio::test]
    async fn runs_of_one_scope_share_a_sandbox_until_it_expires() {
        let workspace = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::default();
        let temp = |entered: &EnteredSandbox| entered.machine.temp_dir().unwrap().to_owned();
        let hour = 3_600_000;
        let Some(first) = first(&sandboxes, workspace.path()).await else { return };
        let same = sandboxes.enter(asked("a", workspace.path(), 10)).await.unwrap();
        let other = sandboxes.enter(asked("b", workspace.path(), 10)).await.unwrap();
        assert_eq!(temp(&first), temp(&same));
        assert_ne!(temp(&first), temp(&other));
        // Still in use, however long it has been.
        let later = sandboxes.enter(asked("a", workspace.path(), 30 * hour)).await.unwrap();
        assert_eq!(temp(&first), temp(&later));
        let gone = temp(&first);
        drop((first, same, later));
        let anew = sandboxes.enter(asked("a", workspace.path(), 32 * hour)).await.unwrap();
        assert_ne!(temp(&anew), gone);
    }

    #[tokio::test]
    async fn a_sandbox_that_does_not_meet_the_requirements_is_not_reused() {
        let workspace = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::default();
        let Some(first) = first(&sandboxes, workspace.path()).await else { return };
        let mut narrower = asked("a", workspace.path(), 1);
        narrower.confinement = narrower.confinement.read_only();
        let second = sandboxes.enter(narrower).await.unwrap();
        assert_ne!(first.machine.temp_dir(), second.machine.temp_dir());
    }
}
