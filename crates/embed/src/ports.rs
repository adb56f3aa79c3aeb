//! State that engines on several hosts can share: the traits of `pinch-ports`, and the default implementations.

pub use pinch_ports::*;

mod session_lock;
mod repair;
mod leases;
mod health;
mod index;

pub use health::{FileHealth, MemoryHealth};
pub use index::FileIndex;
pub use leases::LocalLeases;
pub use repair::{RepairError, repair_session_file};
