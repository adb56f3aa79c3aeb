//! A machine whose tools and commands are confined by the kernel.
//!
//! Landlock and seccomp confine threads and everything those start. File tools therefore run on a dedicated thread that has confined
//! itself, and commands are started from another one: no other program is needed, the host process stays unconfined, and no path is checked
//! before it is opened, so there are no races.

mod view;
mod kernel;
mod syscalls;
mod thread;
mod machine;
mod limits;

pub(crate) use kernel::{ConfineError, KernelRules, landlock_version};
pub(crate) use limits::Rlimits;
pub(crate) use machine::{ConfinedMachine, WrappedCommand, Wrapper, last_will, try_out};
pub(crate) use syscalls::{SyscallRules, block_syscalls, filter_program};
pub(crate) use thread::ConfinedThread;
pub(crate) use view::{KERNEL_FILES, SandboxView, prune_directories};
