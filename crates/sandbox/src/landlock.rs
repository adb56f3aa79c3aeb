//! The backend `landlock`: Landlock and seccomp of the kernel, without another program and without user namespaces.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use pinch_machine::Machine;

use crate::confined::{
    ConfineError, ConfinedMachine, ConfinedThread, KernelRules, SandboxView, SyscallRules, block_syscalls,
    landlock_version,
};
use crate::confinement::{Confinement, NetworkAccess, SandboxGuarantees};
use crate::contract::{Sandbox, SandboxProbe, SandboxUnavailable};

const NAME: &str = "landlock";
/// The version from which on files are not cut by path past the rules.
const TRUNCATE: u32 = 3;
/// The version from which on signals stay inside.
const SIGNALS: u32 = 6;

/// Landlock and seccomp. Commands see the processes outside, but can neither read their memory nor, from version 6 of Landlock on, send them
/// signals. Unix sockets cannot be opened, because Landlock does not look at where they lead; pairs of sockets and pipes can.
#[derive(Clone, Copy, Debug, Default)]
pub struct LandlockSandbox;

impl LandlockSandbox {
    fn guarantees(version: u32) -> SandboxGuarantees {
        SandboxGuarantees { files: true, network: true, processes: false, signals: version >= SIGNALS }
    }

    fn unavailable(reason: impl ToString) -> SandboxUnavailable {
        let remedy = "use a kernel from 5.13 on with `landlock` in its `lsm=` list, or install bubblewrap";
        SandboxUnavailable::new(NAME, reason.to_string(), remedy)
    }

    fn version() -> Result<u32, SandboxUnavailable> {
        match landlock_version() {
            0 => Err(Self::unavailable(ConfineError::NotEnforced)),
            version => Ok(version),
        }
    }

    /// Confines a thread for nothing, to see whether that works.
    fn check() -> Result<SandboxProbe, SandboxUnavailable> {
        let version = Self::version()?;
        let view = SandboxView::new(&Confinement::new("/usr").read_only()).map_err(Self::unavailable)?;
        launcher(&view, NetworkAccess::Off).map_err(Self::unavailable)?;
        Ok(SandboxProbe::new(format!("Landlock version {version} and seccomp"), Self::guarantees(version)))
    }

    fn machine(asked: &Confinement) -> Result<Arc<dyn Machine>, SandboxUnavailable> {
        if let Some(what) = Self::guarantees(Self::version()?).lacks(asked) {
            let remedy = "use another backend, or do not ask for it";
            return Err(SandboxUnavailable::new(NAME, format!("it cannot {what}"), remedy));
        }
        let view = SandboxView::new(asked).map_err(|error| {
            let reason = format!("cannot use {}: {error}", asked.workspace.display());
            SandboxUnavailable::new(NAME, reason, "check the directories of the sandbox")
        })?;
        let files = file_thread(&view).map_err(Self::unavailable)?;
        let launcher = launcher(&view, asked.network).map_err(Self::unavailable)?;
        Ok(Arc::new(ConfinedMachine::new(view, files, launcher)))
    }
}

impl Sandbox for LandlockSandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>> {
        std::future::ready(Self::check()).boxed()
    }

    fn enter<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>> {
        std::future::ready(Self::machine(confinement)).boxed()
    }
}

/// The thread for tools. They open no sockets.
pub(crate) fn file_thread(view: &SandboxView) -> Result<ConfinedThread, ConfineError> {
    let rules = KernelRules::new(view, false);
    ConfinedThread::start("sandbox-files", move || rules.confine())
}

/// The thread that starts commands.
fn launcher(view: &SandboxView, network: NetworkAccess) -> Result<ConfinedThread, ConfineError> {
    let rules = KernelRules::new(view, network == NetworkAccess::On);
    let mut sockets = vec![libc::AF_NETLINK];
    if network == NetworkAccess::On {
        sockets.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let syscalls = SyscallRules { sockets, blocks_truncate: landlock_version() < TRUNCATE };
    ConfinedThread::start("sandbox-launcher", move || {
        rules.confine()?;
        block_syscalls(&syscalls)
    })
}
