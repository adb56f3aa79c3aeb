//! Tests of the engine as a whole: real HTTP on the loopback, real session files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod caching;
mod channels;
mod chats;
mod client_tools;
mod commands;
#[cfg(unix)]
mod cli_agents;
mod compaction;
mod configured;
mod control;
mod delivery;
mod dropped;
mod empty_answers;
mod ending;
mod every_hook;
mod failover;
mod faults;
mod guardrails;
mod history_limits;
mod host;
mod keys;
#[cfg(unix)]
mod layers;
mod listeners;
mod long;
mod logins;
mod loops;
mod memories;
mod messengers;
mod meta;
mod modes;
mod overflow;
mod plugins;
mod plugin_approvals;
#[cfg(all(unix, feature = "extension-process"))]
mod plugin_processes;
mod ports;
mod pruning;
mod processes;
mod prompts;
mod questions;
mod recent;
mod replies;
mod requested;
#[cfg(unix)]
mod resent;
mod rest;
mod results;
mod rotation;
#[cfg(feature = "test-util")]
mod runtimes;
mod sandboxes;
mod sessions;
mod subagents;
mod tool_search;
mod tools;
mod tools_of_extensions;
mod transcript;
mod turns;
mod wording;
mod world;
