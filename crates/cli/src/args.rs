//! Commands: what can stand before everything else. Options of conversations are read by [`pinch_cli::options`].

use clap::{Parser, Subcommand};

use crate::commands::{agent, auth, completions, demo, doctor, export};

/// An AI agent in your terminal and in your scripts.
#[derive(Debug, Parser)]
#[command(name = "pinch", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is parsed before anything else.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an embedded agent once: profiles, failover, block replies; prints payloads.
    Agent(agent::Args),
    /// Says which credentials there are, prints them, removes them.
    #[command(subcommand)]
    Auth(auth::Auth),
    /// Shows a whole run on a scripted local server: rotation, compaction, tools, blocks.
    Demo(demo::Args),
    /// Looks at folders, documents, keys, servers, programs and sessions, and says what is missing or broken.
    Doctor(doctor::Args),
    /// Prints completions for a shell, or the manual.
    Completions(completions::Args),
    /// Makes one page of a session that can be read in any browser, without network.
    Export(export::Args),
}

impl Command {
    /// Whether a first argument is one of these, and no message.
    pub(crate) fn is_named(first: &str) -> bool {
        <Self as Subcommand>::has_subcommand(first)
    }
}
