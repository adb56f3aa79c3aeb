//! The program from the outside: arguments and files in; output, messages and exit codes out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod agent;
mod approval;
mod auth;
mod chat;
mod chat_context;
mod chat_login;
mod chat_questions;
mod completions;
mod demo;
mod doctor;
mod export;
mod extension_component;
mod extension_drawing;
mod extension_keys;
mod extension_screen;
mod extensions;
mod faults;
mod first_login;
mod help;
mod hostile;
mod images;
mod interactive;
mod interactive_opening;
mod kill;
mod logging;
mod missing_directory;
mod packages;
mod policy;
mod proxies;
mod rpc;
mod sandbox;
mod secrets;
mod security;
mod sessions;
mod share_as_file;
#[cfg(unix)]
mod signals;
mod skills;
mod terminal;
mod terminal_program;
mod themes;
mod timeouts;
mod tmux;
mod tools;
