//! The session selected by the flags: a new one, a stored one or a copy.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_cli::options::CliOptions;
use pinch_embed::coding_agent::entry::names;
use pinch_embed::coding_agent::extension::ui::Ui;
use pinch_embed::coding_agent::runtime::SessionTarget;
use pinch_embed::coding_agent::settings::Settings;
use pinch_embed::coding_agent::store::{JsonlStore, ListScope, SessionRef, SessionStore, SessionSummary};
use pinch_embed::stdx::host::Host;
use pinch_tui::app::{DirectoryChoice, MissingDirectory};

use crate::exit::{Blame, CommandFailure, tell, warn};
use crate::folders::{Folders, absolute, expand_home};
use crate::output;

/// Returns the session selected by the flags, looking up ids in the store.
pub(crate) async fn target(
    args: &CliOptions,
    store: &Arc<dyn SessionStore>,
    folders: &Folders,
    host: &Host,
) -> Result<SessionTarget, CommandFailure> {
    check_flags(args)?;
    Finder::new(Arc::clone(store), folders, host).target(args).await
}

/// Returns the file of a session for reading: a path, or the latest session with this id prefix, in this directory first, then anywhere.
pub(crate) async fn find_file(
    named: &str,
    session_dir: Option<PathBuf>,
    folders: &Folders,
    settings: &Settings,
    host: &Host,
) -> Result<PathBuf, CommandFailure> {
    let args = CliOptions { session_dir, ..CliOptions::default() };
    let dir = session_folder(&args, host).or_else(|| folder_of_settings(settings, host));
    let store = match dir {
        Some(dir) => JsonlStore::flat(folders.cwd.join(dir)),
        None => JsonlStore::by_cwd(folders.agent_dir.join("sessions")),
    };
    match Finder::new(Arc::new(store), folders, host).find(named).await? {
        NamedSession::Here(path) => Ok(path),
        NamedSession::Elsewhere(summary) => Ok(summary.path),
    }
}

/// Checks for conflicting flags, and values that no session can have.
fn check_flags(args: &CliOptions) -> Result<(), CommandFailure> {
    let session = (args.session.is_some(), "--session");
    let continued = (args.continue_last, "--continue");
    let ephemeral = (args.no_session, "--no-session");
    for (flag, is_given, others) in [
        ("--fork", args.fork.is_some(), &[session, continued, ephemeral][..]),
        ("--session-id", args.session_id.is_some(), &[session, continued]),
        ("--no-session", args.no_session, &[session, continued]),
        ("--session", args.session.is_some(), &[continued]),
    ] {
        let others: Vec<&str> = others.iter().filter(|(given, _)| *given).map(|(_, flag)| *flag).collect();
        if is_given && !others.is_empty() {
            return Err(CommandFailure::user(format!("{flag} cannot be combined with {}", others.join(", "))));
        }
    }
    if args.session_id.as_ref().is_some_and(|id| !names::is_session_id(id)) {
        return Err(CommandFailure::user(
            "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end \
             with an alphanumeric character",
        ));
    }
    if args.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err(CommandFailure::user("--name requires a non-empty value"));
    }
    Ok(())
}

/// Looks up sessions.
struct Finder<'a> {
    host: &'a Host,
    store: Arc<dyn SessionStore>,
    cwd: &'a Path,
    /// The working directory as stored in sessions.
    cwd_text: String,
}

/// A session named on the command line.
enum NamedSession {
    /// A path, or a session of this directory.
    Here(PathBuf),
    /// A session of another directory.
    Elsewhere(Box<SessionSummary>),
}

impl<'a> Finder<'a> {
    fn new(store: Arc<dyn SessionStore>, folders: &'a Folders, host: &'a Host) -> Self {
        Self { host, store, cwd: &folders.cwd, cwd_text: folders.cwd.to_string_lossy().into_owned() }
    }

    async fn target(&self, args: &CliOptions) -> Result<SessionTarget, CommandFailure> {
        let id = args.session_id.as_ref();
        if args.no_session {
            return Ok(SessionTarget::InMemory);
        }
        if let Some(named) = &args.fork {
            if let Some(id) = id
                && self.here(id).await?.is_some()
            {
                return Err(CommandFailure::bare(Blame::User, format!("Session already exists with id '{id}'")));
            }
            let source = match self.find(named).await? {
                NamedSession::Here(path) => path,
                NamedSession::Elsewhere(summary) => summary.path,
            };
            return Ok(SessionTarget::Fork(SessionRef::Path(source)));
        }
        if let Some(named) = &args.session {
            return match self.find(named).await? {
                NamedSession::Here(path) => Ok(SessionTarget::Open(SessionRef::Path(path))),
                NamedSession::Elsewhere(summary) => {
                    ask_to_fork(named, &summary.cwd)?;
                    Ok(SessionTarget::Fork(SessionRef::Path(summary.path)))
                }
            };
        }
        if args.continue_last {
            return Ok(SessionTarget::MostRecent);
        }
        if let Some(id) = id {
            if let Some(path) = self.here(id).await? {
                return Ok(SessionTarget::Open(SessionRef::Path(path)));
            }
            warn(&format!("No project session found with id '{id}'; creating a new session with that id."));
        }
        Ok(SessionTarget::New)
    }

    /// Returns the session of this directory with exactly this id.
    async fn here(&self, id: &str) -> Result<Option<PathBuf>, CommandFailure> {
        let found = self.store.find_by_id(id, ListScope::Cwd(self.cwd_text.clone())).await?;
        Ok(found.into_iter().find(|summary| summary.id == id).map(|summary| summary.path))
    }

    /// Finds a path, or the latest session with this id prefix: in this directory first, then anywhere.
    async fn find(&self, named: &str) -> Result<NamedSession, CommandFailure> {
        if named.contains(['/', '\\']) || named.ends_with(".jsonl") {
            return Ok(NamedSession::Here(absolute(self.cwd, named, self.host)));
        }
        let here = self.store.find_by_id(named, ListScope::Cwd(self.cwd_text.clone())).await?;
        if let Some(found) = here.into_iter().next() {
            return Ok(NamedSession::Here(found.path));
        }
        match self.store.find_by_id(named, ListScope::All).await?.into_iter().next() {
            Some(found) => Ok(NamedSession::Elsewhere(Box::new(found))),
            None => Err(CommandFailure::bare(Blame::User, format!("No session found matching '{named}'"))),
        }
    }
}

/// Returns the session directory from the flag or the environment.
pub(crate) fn session_folder(args: &CliOptions, host: &Host) -> Option<PathBuf> {
    let env = host.env();
    let named = args
        .session_dir
        .clone()
        .or_else(|| env.non_empty("PINCH_SESSION_DIR").map(PathBuf::from))
        .or_else(|| env.non_empty("PI_CODING_AGENT_SESSION_DIR").map(PathBuf::from))?;
    Some(expand_home(&named, host))
}

/// Returns the session directory from the settings.
pub(crate) fn folder_of_settings(settings: &Settings, host: &Host) -> Option<PathBuf> {
    Some(expand_home(Path::new(settings.session_dir.as_ref()?), host))
}

/// Asks how to continue a session whose working directory no longer exists; `None`: not at all.
pub(crate) async fn without_directory(
    gone: &str,
    file: PathBuf,
    ui: &dyn Ui,
    folders: &Folders,
    host: &Host,
) -> Option<SessionTarget> {
    let at = SessionRef::Path(file);
    match MissingDirectory::new(gone, &folders.cwd, host.home()).ask(ui).await? {
        DirectoryChoice::Here => Some(SessionTarget::OpenHere(at)),
        DirectoryChoice::Copy => Some(SessionTarget::Fork(at)),
    }
}

/// Asks whether to copy a session of another directory into this one.
fn ask_to_fork(named: &str, cwd: &str) -> Result<(), CommandFailure> {
    let text = format!("Session found in different project: {cwd}");
    let mut answer = String::new();
    let input = std::io::stdin();
    if !input.is_terminal() || !std::io::stderr().is_terminal() {
        return Err(CommandFailure::user(format!("{text}\nhint: to copy it into this one, use --fork {named}")));
    }
    tell(&text);
    let _unread = write!(output::stderr(), "Fork this session into current directory? [y/N] ");
    let is_read = input.lock().read_line(&mut answer).is_ok();
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" if is_read => Ok(()),
        _ => Err(CommandFailure::bare(Blame::User, "Aborted.")),
    }
}
