//! Sandboxes on this machine: what they allow in, and what they keep from getting out.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod bench;

mod child;
mod containers;
mod files;
mod processes;
mod runc;
mod sockets;
