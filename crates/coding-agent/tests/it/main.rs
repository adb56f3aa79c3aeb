//! Behaviour of the session layer as a whole.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod auth;
mod child;
mod compaction;
mod contention;
mod crash;
mod credentials;
mod discovered;
mod export;
mod extension_actions;
mod extension_boundary;
mod extension_failures;
mod extension_hooks;
mod extension_node;
mod extension_process;
mod extension_trust;
mod faults;
mod folders;
mod full_disk;
mod guard;
mod help;
mod images;
mod links;
mod long;
mod packages;
mod prompt;
mod models;
mod private;
mod properties;
mod refresh;
mod replay;
mod resources;
mod rpc;
#[cfg(unix)]
mod rpc_load;
mod rpc_sessions;
mod search;
mod security;
mod session;
mod session_tree;
mod shell_settings;
mod soup;
mod startup_moves;
mod settings;
mod stores;
mod summaries;
mod tool_calls;
mod tree;
mod writers;
