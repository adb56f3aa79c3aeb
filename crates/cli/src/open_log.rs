//! The session that the flags name: begun, taken up or copied.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_cli::options::Options;
use pinch_embed::coding_agent::entry::names;
use pinch_embed::coding_agent::session_log::{NewSession, SessionLog};
use pinch_embed::coding_agent::settings::Settings;
use pinch_embed::coding_agent::store::{JsonlStore, ListScope, SessionRef, SessionStore, SessionSummary};
use pinch_embed::stdx::host::Host;

use crate::exit::{Failure, Kind, tell, warn};
use crate::folders::{Folders, absolute, expand_home};
use crate::output;

/// Opens the log that the flags name. One whose working directory is gone is refused.
pub(crate) async fn open_log(
    args: &Options,
    folders: &Folders,
    settings: &Settings,
    host: &Host,
) -> Result<SessionLog, Failure> {
    check_flags(args)?;
    let mut log = Opener::new(args, folders, settings, host).open(args).await?;
    let has_folder = log.cwd().is_empty() || folders.is_cwd(log.cwd()) || Path::new(log.cwd()).exists();
    if log.path().is_some() && !has_folder {
        return Err(gone(&log, &folders.cwd));
    }
    if let Some(name) = &args.name {
        log.append_name(name).await?;
    }
    Ok(log)
}

/// The file of a session that is only read: a path, or the latest session whose id begins like this, in this folder first, then anywhere.
pub(crate) async fn find_file(
    named: &str,
    session_dir: Option<PathBuf>,
    folders: &Folders,
    settings: &Settings,
    host: &Host,
) -> Result<PathBuf, Failure> {
    let args = Options { session_dir, ..Options::default() };
    match Opener::new(&args, folders, settings, host).find(named).await? {
        Found::Here(path) => Ok(path),
        Found::Elsewhere(summary) => Ok(summary.path),
    }
}

/// What flags must not be together, and values that no session can have.
fn check_flags(args: &Options) -> Result<(), Failure> {
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
            return Err(Failure::user(format!("{flag} cannot be combined with {}", others.join(", "))));
        }
    }
    if args.session_id.as_ref().is_some_and(|id| !names::is_session_id(id)) {
        return Err(Failure::user(
            "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end \
             with an alphanumeric character",
        ));
    }
    if args.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
        return Err(Failure::user("--name requires a non-empty value"));
    }
    Ok(())
}

/// The stored working directory does not exist any more. The text is pi's, for scripts that look for it.
fn gone(log: &SessionLog, cwd: &Path) -> Failure {
    let file = log.path().map_or_else(|| "(in memory)".into(), |path| path.display().to_string());
    let text = format!(
        "Stored session working directory does not exist: {}\nSession file: {file}\nCurrent working directory: {}",
        log.cwd(),
        cwd.display()
    );
    Failure::bare(Kind::User, text)
}

/// What opening a session takes.
struct Opener<'a> {
    host: &'a Host,
    store: Arc<dyn SessionStore>,
    folder: &'a Path,
    cwd: String,
}

/// A session that a text on the command line stands for.
enum Found {
    /// A path, or a session of this folder.
    Here(PathBuf),
    /// One of another folder.
    Elsewhere(Box<SessionSummary>),
}

impl<'a> Opener<'a> {
    fn new(args: &Options, folders: &'a Folders, settings: &Settings, host: &'a Host) -> Self {
        let store = match session_folder(args, settings, host) {
            Some(folder) => JsonlStore::flat(folders.cwd.join(folder)),
            None => JsonlStore::by_cwd(folders.agent_dir.join("sessions")),
        };
        let store = Arc::new(store.durability(settings.durability));
        Self { host, store, folder: &folders.cwd, cwd: folders.cwd.to_string_lossy().into_owned() }
    }

    fn begins_as(&self, id: Option<&String>) -> NewSession {
        NewSession { id: id.cloned(), ..NewSession::in_folder(&self.cwd) }
    }

    async fn open(&self, args: &Options) -> Result<SessionLog, Failure> {
        let id = args.session_id.as_ref();
        if args.no_session {
            return Ok(SessionLog::in_memory(self.host, self.begins_as(id)));
        }
        if let Some(named) = &args.fork {
            if let Some(id) = id
                && self.here(id).await?.is_some()
            {
                return Err(Failure::bare(Kind::User, format!("Session already exists with id '{id}'")));
            }
            let source = match self.find(named).await? {
                Found::Here(path) => path,
                Found::Elsewhere(summary) => summary.path,
            };
            return self.fork(source, id).await;
        }
        if let Some(named) = &args.session {
            return match self.find(named).await? {
                Found::Here(path) => self.take_up(path).await,
                Found::Elsewhere(summary) => {
                    ask_to_fork(named, &summary.cwd)?;
                    self.fork(summary.path, None).await
                }
            };
        }
        if args.continue_last {
            return Ok(SessionLog::continue_recent(self.host, Arc::clone(&self.store), &self.cwd).await?);
        }
        if let Some(id) = id {
            if let Some(path) = self.here(id).await? {
                return self.take_up(path).await;
            }
            warn(&format!("No project session found with id '{id}'; creating a new session with that id."));
        }
        Ok(SessionLog::create(self.host, Arc::clone(&self.store), self.begins_as(id)).await?)
    }

    async fn take_up(&self, path: PathBuf) -> Result<SessionLog, Failure> {
        Ok(SessionLog::open(self.host, Arc::clone(&self.store), &SessionRef::Path(path), &self.cwd).await?)
    }

    async fn fork(&self, source: PathBuf, id: Option<&String>) -> Result<SessionLog, Failure> {
        let source = SessionRef::Path(source);
        Ok(SessionLog::fork_from(self.host, Arc::clone(&self.store), &source, self.begins_as(id)).await?)
    }

    /// The session of this folder with exactly this id.
    async fn here(&self, id: &str) -> Result<Option<PathBuf>, Failure> {
        let found = self.store.find_by_id(id, ListScope::Cwd(self.cwd.clone())).await?;
        Ok(found.into_iter().find(|summary| summary.id == id).map(|summary| summary.path))
    }

    /// A path, or the latest session whose id begins like this: in this folder first, then anywhere.
    async fn find(&self, named: &str) -> Result<Found, Failure> {
        if named.contains(['/', '\\']) || named.ends_with(".jsonl") {
            return Ok(Found::Here(absolute(self.folder, named, self.host)));
        }
        let here = self.store.find_by_id(named, ListScope::Cwd(self.cwd.clone())).await?;
        if let Some(found) = here.into_iter().next() {
            return Ok(Found::Here(found.path));
        }
        match self.store.find_by_id(named, ListScope::All).await?.into_iter().next() {
            Some(found) => Ok(Found::Elsewhere(Box::new(found))),
            None => Err(Failure::bare(Kind::User, format!("No session found matching '{named}'"))),
        }
    }
}

pub(crate) fn session_folder(args: &Options, settings: &Settings, host: &Host) -> Option<PathBuf> {
    let env = host.env();
    let named = args
        .session_dir
        .clone()
        .or_else(|| env.non_empty("PINCH_SESSION_DIR").map(PathBuf::from))
        .or_else(|| env.non_empty("PI_CODING_AGENT_SESSION_DIR").map(PathBuf::from))
        .or_else(|| settings.session_dir.as_ref().map(PathBuf::from))?;
    Some(expand_home(&named, host))
}

/// A session of another folder is only copied into this one, and only when somebody is there to say so.
fn ask_to_fork(named: &str, cwd: &str) -> Result<(), Failure> {
    let text = format!("Session found in different project: {cwd}");
    let mut answer = String::new();
    let input = std::io::stdin();
    if !input.is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::user(format!("{text}. To copy it into this one: --fork {named}")));
    }
    tell(&text);
    let _unread = write!(output::stderr(), "Fork this session into current directory? [y/N] ");
    let is_read = input.lock().read_line(&mut answer).is_ok();
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" if is_read => Ok(()),
        _ => Err(Failure::bare(Kind::User, "Aborted.")),
    }
}
