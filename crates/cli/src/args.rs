//! The command line. Options of conversations are parsed by [`pinch_cli::options`].

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::commands::{agent, auth, chat, completions, demo, doctor, export, policy, sessions, skills};

/// An AI agent in your terminal and in your scripts
#[derive(Debug, Parser)]
#[command(name = "pinch", version, disable_help_subcommand = true)]
pub(crate) struct PinchCli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Commands that are parsed before anything else.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run an embedded agent once and print its replies
    Agent(agent::Args),
    /// Chat with an embedded agent in the terminal
    #[command(visible_alias = "terminal")]
    Chat(chat::Args),
    /// Log in and out, and check or print credentials
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    /// Show a whole run against a scripted local server: key rotation, compaction, tools, block replies
    Demo(demo::Args),
    /// Check directories, configuration files, API keys, servers, programs and sessions
    Doctor(doctor::Args),
    /// Explain which tools an embedded agent may use, and which rule decides
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// List the skills of embedded agents, and install the programs they need
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    /// Print shell completions or the manual page
    Completions(completions::Args),
    /// Maintain session files
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Export a session to a self-contained HTML page
    Export(export::Args),
}

impl CliCommand {
    /// Returns whether a first argument is a command and not a message.
    pub(crate) fn is_named(first: &str) -> bool {
        // Ask the whole parser, because the trait's names lack aliases.
        PinchCli::command()
            .get_subcommands()
            .any(|command| command.get_name() == first || command.get_all_aliases().any(|alias| alias == first))
    }
}
