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

/// The latest Landlock ABI used. Older kernels enforce the subset they support.
const NEWEST: ABI = ABI::V9;
/// Devices without side effects.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Information about the machine and the process itself.
const STATE: [&str; 3] = ["/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"];

/// Why a thread could not be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    /// The kernel does not support Landlock.
    #[error("this kernel does not support Landlock")]
    NotEnforced,
    /// A rule was rejected.
    #[error("Landlock rejected a rule: {0}")]
    Landlock(#[from] RulesetError),
    /// A system call filter was rejected.
    #[error("seccomp rejected the filter: {0}")]
    Seccomp(#[from] seccompiler::Error),
    /// A system call filter could not be built.
    #[error("cannot build the system call filter: {0}")]
    Filter(#[from] seccompiler::BackendError),
    /// Another system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a thread, and everything it starts, may do with files, TCP and signals.
#[derive(Clone, Debug)]
pub(crate) struct KernelRules {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    allows_tcp: bool,
}

impl KernelRules {
    /// Creates the rules for a view.
    pub(crate) fn new(view: &SandboxView, allows_tcp: bool) -> Self {
        let readable = view.readable.iter().cloned().chain(STATE.map(PathBuf::from)).collect();
        let writable = view.writable.iter().cloned().chain(DEVICES.map(PathBuf::from)).collect();
        Self { readable, writable, allows_tcp }
    }

    /// Confines the calling thread permanently.
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

/// Returns the Landlock ABI version of this kernel; 0 if it has none. Confines a thread to find out.
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

/// Drops root's capabilities, except those concerning files, which Landlock restricts. Programs started later cannot regain them, because
/// Landlock requires `no_new_privs`.
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
