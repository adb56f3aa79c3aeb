//! A machine whose tools and commands are confined by the kernel.
//!
//! Landlock and seccomp confine threads, and what threads start inherits that. File tools therefore run on a thread of their own that has
//! confined itself, and so do the starts of commands: no other program is needed, the host stays as it is, and no path is checked before it is
//! opened, so that there is nothing to race with.

mod view;
mod kernel;
mod syscalls;
mod thread;
mod machine;

pub(crate) use kernel::{ConfineError, KernelRules, landlock_version};
pub(crate) use machine::{ConfinedMachine, WrappedCommand, Wrapper};
pub(crate) use syscalls::{SyscallRules, block_syscalls, filter_program};
pub(crate) use thread::ConfinedThread;
pub(crate) use view::SandboxView;
