//! Landlock rules and capabilities of a thread.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::view::SandboxView;

/// The newest rules that are asked for. Older kernels enforce what they know of them.
const NEWEST: ABI = ABI::V9;
/// Devices that have no effect elsewhere.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// What describes the machine and the process itself.
const STATE: [&str; 3] = ["/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"];

/// A thread could not be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    /// The kernel has no Landlock.
    #[error("the kernel does not enforce Landlock rules")]
    NotEnforced,
    /// A rule was refused.
    #[error("Landlock refused a rule: {0}")]
    Landlock(#[from] RulesetError),
    /// A filter of system calls was refused.
    #[error("seccomp refused the filter: {0}")]
    Seccomp(#[from] seccompiler::Error),
    /// A filter of system calls could not be built.
    #[error("the filter of system calls cannot be built: {0}")]
    Filter(#[from] seccompiler::BackendError),
    /// The system refused something else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a thread, and everything that it starts, may do with files, TCP and signals.
#[derive(Clone, Debug)]
pub(crate) struct KernelRules {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    allows_tcp: bool,
}

impl KernelRules {
    /// The rules for a view.
    pub(crate) fn new(view: &SandboxView, allows_tcp: bool) -> Self {
        let readable = view.readable.iter().cloned().chain(STATE.map(PathBuf::from)).collect();
        let writable = view.writable.iter().cloned().chain(DEVICES.map(PathBuf::from)).collect();
        Self { readable, writable, allows_tcp }
    }

    /// Confines the calling thread for ever.
    pub(crate) fn confine(&self) -> Result<(), ConfineError> {
        give_up_capabilities()?;
        let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
        if !self.allows_tcp {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let status = rules
            .create()?
            .add_rules(path_beneath_rules(&self.readable, AccessFs::from_read(NEWEST)))?
            .add_rules(path_beneath_rules(&self.writable, AccessFs::from_all(NEWEST)))?
            .restrict_self()?;
        match status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            true => Err(ConfineError::NotEnforced),
            false => Ok(()),
        }
    }
}

/// The version of Landlock in this kernel; 0 if it has none. A thread confines itself to learn it.
pub(crate) fn landlock_version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    let ask = || -> Result<u32, ConfineError> {
        let status = Ruleset::default().handle_access(AccessFs::Execute)?.create()?.restrict_self()?;
        match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi as u32),
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Ok(0),
        }
    };
    *VERSION.get_or_init(|| std::thread::spawn(ask).join().ok().and_then(Result::ok).unwrap_or(0))
}

/// Gives up what only root may do, except with files: Landlock decides about those. What is started later has no more than this, because
/// Landlock also forbids new privileges.
fn give_up_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::FSETID;
    let now = capabilities(None)?;
    let sets = CapabilitySets {
        effective: now.effective & kept,
        permitted: now.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)?;
    Ok(())
}
