//! Sandboxes of this machine: what gets in, and what does not get out.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod bench;
mod containers;

mod files;
mod processes;
mod sockets;
