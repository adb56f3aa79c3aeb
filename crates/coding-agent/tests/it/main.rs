//! Behavior of the session layer as a whole.

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
#[cfg(feature = "extension-process")]
mod extension_component;
#[cfg(feature = "extension-process")]
mod extension_imports;
mod extension_loading;
mod extension_node;
#[cfg(feature = "extension-process")]
mod extension_process;
#[cfg(feature = "extension-process")]
mod extension_restart;
#[cfg(feature = "extension-process")]
mod extension_trust;
mod folders;
mod images;
mod in_memory;
#[cfg(feature = "packages")]
mod links;
mod login;
mod login_keys;
#[cfg(feature = "packages")]
mod packages;
mod prompt;
mod model_catalogs;
mod missing_directory;
mod models;
mod private;
mod refresh;
mod resource_switches;
mod resources;
mod rpc;
mod rpc_commands;
#[cfg(unix)]
mod rpc_load;
mod rpc_replaced;
mod rpc_sessions;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "search")]
mod security;
mod session;
mod session_tree;
mod shell_settings;
mod soup;
mod startup_moves;
mod settings;
mod tool_calls;
