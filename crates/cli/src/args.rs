//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::{agent, auth, demo};

/// An AI agent in your terminal and in your scripts.
#[derive(Debug, Parser)]
#[command(name = "pinch", version, args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) chat: ChatArgs,
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
}

/// A conversation in this folder.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ChatArgs {
    /// Prints the answer to the messages and ends.
    #[arg(short, long, value_name = "MESSAGE", num_args = 0..=1, default_missing_value = "", allow_hyphen_values = false)]
    pub(crate) print: Option<String>,

    /// How the answer is shown.
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    pub(crate) mode: Option<Mode>,

    /// Provider of the model, e.g. anthropic.
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) provider: Option<String>,

    /// Model: an id, a part of it, or provider/id; a thinking level may follow after a colon.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) model: Option<String>,

    /// API key for the model's provider, for this run only.
    #[arg(long, value_name = "KEY", requires = "model")]
    pub(crate) api_key: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<String>,

    /// Takes this session up: a file, or the beginning of an id.
    #[arg(long, value_name = "PATH|ID")]
    pub(crate) session: Option<String>,

    /// Takes the session of this folder with exactly this id up, or begins one with it.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) session_id: Option<String>,

    /// Copies a session, with all its branches, into a new one of this folder: a file, or the beginning of an id. --session-id names it.
    #[arg(long, value_name = "PATH|ID")]
    pub(crate) fork: Option<String>,

    /// Takes the newest session of this folder up.
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,

    /// Keeps the session in memory only.
    #[arg(long)]
    pub(crate) no_session: bool,

    /// Gives the session a name.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Keeps sessions in this folder, and looks for them there.
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<PathBuf>,

    /// Tools the model may use, separated by commas: read, bash, edit, write (these by default), grep, find, ls; * for all. +NAME and
    /// -NAME change the default.
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) tools: Option<Vec<String>>,

    /// Tools the model may not use, separated by commas; also -xt.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) exclude_tools: Option<Vec<String>>,

    /// No tools at all; also -nt.
    #[arg(long, conflicts_with = "tools")]
    pub(crate) no_tools: bool,

    /// System prompt in place of the default one: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) system_prompt: Option<String>,

    /// Text behind the system prompt, or a file that holds it; may be given several times.
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append_system_prompt: Vec<String>,

    /// Leaves AGENTS.md and CLAUDE.md files alone.
    #[arg(long)]
    pub(crate) no_context_files: bool,

    /// Folder of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent).
    #[arg(long, value_name = "DIR")]
    pub(crate) agent_dir: Option<PathBuf>,

    /// Messages, sent one after another; @path stands for a file's content.
    #[arg(value_name = "MESSAGE|@FILE")]
    pub(crate) messages: Vec<String>,
}

/// Short flags of two letters, and the long ones they stand for.
const TWO_LETTERS: [(&str, &str); 3] =
    [("-nc", "--no-context-files"), ("-nt", "--no-tools"), ("-xt", "--exclude-tools")];

/// Spells flags of two letters out, which clap takes for two flags of one letter. What stands behind `--` is no flag.
pub(crate) fn spell_out(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut is_flag = true;
    let spell = |arg: OsString| {
        is_flag &= arg != "--";
        let Some(text) = arg.to_str().filter(|_| is_flag) else { return arg };
        let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        let Some((_, long)) = TWO_LETTERS.iter().find(|(short, _)| *short == flag) else { return arg };
        value.map_or_else(|| (*long).into(), |value| format!("{long}={value}").into())
    };
    args.into_iter().map(spell).collect()
}

/// How an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The text of the last answer.
    Text,
    /// Every event as a line of JSON.
    Json,
}

fn parse_mode(word: &str) -> Result<Mode, String> {
    match word {
        "text" => Ok(Mode::Text),
        "json" => Ok(Mode::Json),
        "rpc" => Err("RPC mode is not part of this version".into()),
        _ => Err(format!("Invalid mode \"{word}\". Valid values: text, json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        let spelled = spell_out(given.split(' ').map(OsString::from));
        assert_eq!(spelled, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
    }

    #[test]
    fn flags_of_two_letters_are_spelled_out() {
        check("pinch -nt -p x", "pinch --no-tools -p x");
        check("pinch -xt write,edit -nc", "pinch --exclude-tools write,edit --no-context-files");
        check("pinch -xt=write", "pinch --exclude-tools=write");
        check("pinch -p -- -nt", "pinch -p -- -nt");
        check("pinch -ntx -n -t -pnt", "pinch -ntx -n -t -pnt");
    }

    #[test]
    fn they_are_understood() {
        let cli = Cli::try_parse_from(spell_out(["pinch", "-nt", "-xt", "write", "-p", "x"].map(OsString::from)));
        let chat = cli.unwrap().chat;
        assert!(chat.no_tools);
        assert_eq!((chat.exclude_tools, chat.print), (Some(vec!["write".to_owned()]), Some("x".to_owned())));
        let cli = Cli::try_parse_from(["pinch", "-t", "-bash,+ls", "-p", "x"]).unwrap();
        assert_eq!(cli.chat.tools, Some(vec!["-bash".to_owned(), "+ls".to_owned()]));
    }
}
