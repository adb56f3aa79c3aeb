//! The backend `landlock`: Landlock and seccomp, without another program and without user namespaces.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use pinch_machine::Machine;

use crate::confined::{
    ConfineError, ConfinedMachine, ConfinedThread, KernelRules, Rlimits, SandboxView, SyscallRules, WrappedCommand,
    Wrapper, block_syscalls, landlock_version, prune_directories, try_out,
};
use crate::confinement::{Confinement, NetworkAccess, SandboxGuarantees};
use crate::contract::{Sandbox, SandboxProbe, SandboxUnavailable};

const NAME: &str = "landlock";
/// First ABI version that restricts truncation by path.
const TRUNCATE: u32 = 3;
/// First ABI version that restricts signals.
const SIGNALS: u32 = 6;

/// The Landlock and seccomp backend. Commands see the processes outside, but cannot read their memory nor, from Landlock ABI 6 on, send
/// them signals. Unix sockets cannot be opened, because Landlock does not check where they lead; socket pairs and pipes can.
#[derive(Clone, Copy, Debug, Default)]
pub struct LandlockSandbox;

impl LandlockSandbox {
    fn guarantees(version: u32) -> SandboxGuarantees {
        SandboxGuarantees {
            files: true,
            // Landlock does not check changes of these.
            attributes: false,
            network: true,
            domains: false,
            processes: false,
            signals: version >= SIGNALS,
        }
    }

    fn unavailable(reason: impl ToString) -> SandboxUnavailable {
        let remedy = "use kernel 5.13 or later with `landlock` in its `lsm=` list, or install bubblewrap";
        SandboxUnavailable::new(NAME, reason.to_string(), remedy)
    }

    fn version() -> Result<u32, SandboxUnavailable> {
        match landlock_version() {
            0 => Err(Self::unavailable(ConfineError::NotEnforced)),
            version => Ok(version),
        }
    }

    /// Confines a throwaway thread to see whether that works.
    fn check() -> Result<SandboxProbe, SandboxUnavailable> {
        let version = Self::version()?;
        let view = SandboxView::new(&Confinement::new("/usr").read_only()).map_err(Self::unavailable)?;
        launcher(&view, &NetworkAccess::Off).map_err(Self::unavailable)?;
        Ok(SandboxProbe::new(format!("Landlock version {version} and seccomp"), Self::guarantees(version)))
    }

    async fn machine(asked: &Confinement) -> Result<Arc<dyn Machine>, SandboxUnavailable> {
        if let Some(what) = Self::guarantees(Self::version()?).lacks(asked) {
            let remedy = "use bubblewrap, or drop this requirement";
            return Err(SandboxUnavailable::new(NAME, format!("it cannot {what}"), remedy));
        }
        let view = SandboxView::new(asked).map_err(|error| {
            let reason = format!("cannot use {}: {error}", asked.workspace.display());
            SandboxUnavailable::new(NAME, reason, "check the sandbox's directories")
        })?;
        let files = file_thread(&view).map_err(Self::unavailable)?;
        let launcher = launcher(&view, &asked.network).map_err(Self::unavailable)?;
        let limits = Rlimits::of(&asked.limits)
            .map_err(|error| SandboxUnavailable::new(NAME, error.to_string(), error.remedy()))?;
        let machine = ConfinedMachine::new(view, files, launcher);
        let Some(limits) = limits else { return Ok(Arc::new(machine)) };
        let wrapper: Wrapper = Arc::new(move |command| {
            Ok(WrappedCommand { command: limits.limited(command), at_end: None, egress: None })
        });
        let machine = machine.wrapped(wrapper);
        try_out(&machine, &asked.workspace).await.map_err(|reason| {
            SandboxUnavailable::new(NAME, format!("its limits cannot be set: {reason}"), "change the limits")
        })?;
        Ok(Arc::new(machine))
    }
}

impl Sandbox for LandlockSandbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn has_own_programs(&self) -> bool {
        false
    }

    fn probe(&self) -> BoxFuture<'_, Result<SandboxProbe, SandboxUnavailable>> {
        std::future::ready(Self::check()).boxed()
    }

    fn enter<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Result<Arc<dyn Machine>, SandboxUnavailable>> {
        Self::machine(confinement).boxed()
    }

    fn prune(&self) -> BoxFuture<'_, ()> {
        prune_directories().boxed()
    }
}

/// Starts the thread for tools, which open no sockets.
pub(crate) fn file_thread(view: &SandboxView) -> Result<ConfinedThread, ConfineError> {
    let rules = KernelRules::new(view, false);
    ConfinedThread::start("sandbox-files", move || rules.confine())
}

/// Starts the thread that launches commands.
fn launcher(view: &SandboxView, network: &NetworkAccess) -> Result<ConfinedThread, ConfineError> {
    let rules = KernelRules::new(view, *network == NetworkAccess::On);
    let mut sockets = vec![libc::AF_NETLINK];
    if *network == NetworkAccess::On {
        sockets.extend([libc::AF_INET, libc::AF_INET6]);
    }
    let syscalls = SyscallRules { sockets, blocks_truncate: landlock_version() < TRUNCATE, shares_namespaces: true };
    ConfinedThread::start("sandbox-launcher", move || {
        rules.confine()?;
        block_syscalls(&syscalls)
    })
}
