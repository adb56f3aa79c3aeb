//! Behaviour of the session layer as a whole.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod auth;
mod child;
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
mod folders;
mod images;
mod links;
mod packages;
mod prompt;
mod models;
mod private;
mod refresh;
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
mod tool_calls;
