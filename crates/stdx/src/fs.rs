//! Files written by several tasks and programs: whole-file replacement and locks.
//!
//! Everything here blocks unless its name says otherwise; files are small and local.

pub mod private;

mod keep;

mod in_place;

pub mod atomic;

pub mod executable;

pub mod special;

pub mod named;

pub mod stamp;

pub mod long;

pub mod lock;

pub mod dir_lock;

pub use atomic::{real_path, write_atomic, write_atomic_with};
pub use dir_lock::DirLock;
pub use executable::is_executable;
pub use lock::FileLock;
pub use long::read_long;
pub use named::{write_named, write_named_with, write_pinned};
pub use private::{Access, create_private_dir, creating_private, make_private};
pub use special::{open_listed, open_regular, read_listed, read_regular, skip_hole, write_special};
pub use stamp::FileStamp;
