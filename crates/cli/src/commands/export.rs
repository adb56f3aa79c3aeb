//! `pinch export SESSION [OUT]`: exports a session as an HTML page, or its branch as a session file.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use pinch_embed::coding_agent::document;
use pinch_embed::coding_agent::entry::VERSION;
use pinch_embed::coding_agent::export::html::{self, ExportError, PageTheme};
use pinch_embed::coding_agent::export::{fixed_page_theme, page_theme};
use pinch_embed::coding_agent::resources::themes::Theme;
use pinch_embed::coding_agent::session_log::SessionLog;
use pinch_embed::coding_agent::settings::Settings;
use pinch_embed::coding_agent::store::jsonl::read_header;
use pinch_embed::coding_agent::store::{JsonlStore, MemoryStore, SessionRef, SessionStore, StoreError};
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::text::with_causes;

use crate::exit::{CommandFailure, unwritten, warn};
use crate::folders::{Folders, absolute, expand_home};
use crate::open_log::find_file;
use crate::output;

/// Arguments of `pinch export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session to export: a path, or a prefix of its id
    pub(crate) session: String,

    /// Output file; .jsonl writes the active branch as a session file, - writes to stdout (default: pinch-session-NAME.html)
    pub(crate) out: Option<String>,

    /// Colors of the page: dark, light, a custom theme, or a theme file (default: the theme in settings.json, dark or light according to
    /// the reader's system)
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<String>,

    /// Directory of the sessions
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<PathBuf>,

    /// Directory of settings, sessions and themes (default: ~/.pinch/agent)
    #[arg(long, value_name = "DIR")]
    pub(crate) agent_dir: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let folders = Folders::find(args.agent_dir.as_deref(), &host)?;
    let (settings, _) = Settings::load(&folders.agent_dir.join("settings.json"));
    let theme = theme(args.theme.as_deref(), &folders, &host)?;
    let page_theme = if args.theme.is_some() { fixed_page_theme(&theme) } else { page_theme(&theme) };
    let session = find_file(&args.session, args.session_dir, &folders, &settings, &host).await?;
    let log = open(&session, &folders, &host).await?;
    let path = match args.out.as_deref() {
        Some("-") => return print(&log, &page_theme),
        Some(out) if out.ends_with(".jsonl") => {
            let path = expand_home(Path::new(out), &host);
            let target = absolute(&folders.cwd, out, &host);
            if is_same(&target, &session) {
                return Err(CommandFailure::user(format!("the session would overwrite itself: {}", target.display())));
            }
            log.export_to(&target)?;
            path
        }
        out => {
            let path =
                out.map_or_else(|| html::file_name_for(&session).into(), |out| expand_home(Path::new(out), &host));
            if is_same(&folders.cwd.join(&path), &session) {
                return Err(CommandFailure::user(format!(
                    "the output would overwrite the session: {}",
                    session.display()
                )));
            }
            html::export(&log, &page_theme, Some(&path), &folders.cwd).map_err(failure)?
        }
    };
    writeln!(output::stdout(), "Exported to: {}", path.display()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn print(log: &SessionLog, page_theme: &PageTheme) -> Result<ExitCode, CommandFailure> {
    let mut out = BufWriter::new(output::stdout());
    html::write(log, page_theme, &mut out).map_err(failure)?;
    out.flush().map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens a session for reading. A file of an older version is migrated only in memory, because an export does not change the session.
async fn open(path: &Path, folders: &Folders, host: &Host) -> Result<SessionLog, CommandFailure> {
    let unread = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => CommandFailure::user(format!("session not found: {}", path.display())),
        _ => CommandFailure::user(format!("cannot read {}: {error}", path.display())),
    };
    if std::fs::metadata(path).map_err(unread)?.len() == 0 {
        return Err(CommandFailure::user(format!("the session is empty: {}", path.display())));
    }
    let Some(header) = read_header(path) else {
        return Err(StoreError::NotASession { path: path.to_owned(), problem: None }.into());
    };
    let at = SessionRef::Path(path.to_owned());
    let mut store: Arc<dyn SessionStore> = Arc::new(JsonlStore::flat(path.parent().unwrap_or(Path::new(""))));
    if header.version < VERSION {
        let text = std::fs::read(path).map_err(unread)?;
        store = Arc::new(MemoryStore::new());
        store.open(&at).await?.append(text.into(), 0).await?;
    }
    Ok(SessionLog::open(host, store, &at, &folders.cwd.to_string_lossy()).await?)
}

/// Returns whether two paths are the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Returns the requested theme, else that of the settings, else the built-in one.
fn theme(asked: Option<&str>, folders: &Folders, host: &Host) -> Result<Theme, CommandFailure> {
    if let Some(file) = asked.filter(|name| name.contains(['/', '\\']) || name.ends_with(".json")) {
        let path = absolute(&folders.cwd, file, host);
        return Theme::read(&path)
            .map_err(|problem| CommandFailure::user(format!("{}: {}", path.display(), problem.message)));
    }
    let mut themes = Theme::builtin();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folders.agent_dir.join("themes"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    // A broken file matters only if it is requested; its name is then not found.
    let own: Vec<Theme> = files.iter().filter_map(|path| Theme::read(path).ok()).collect();
    // A user's theme replaces a built-in one of the same name.
    themes.splice(0..0, own);
    let find = |name: &str| themes.iter().find(|theme| theme.name == name).cloned();
    if let Some(name) = asked {
        let names: Vec<&str> = themes.iter().map(|theme| theme.name.as_str()).collect();
        return find(name).ok_or_else(|| {
            CommandFailure::user(format!("unknown theme {name}\nhint: available themes are {}", names.join(", ")))
        });
    }
    let set = document::read_object(&folders.agent_dir.join("settings.json")).ok();
    let set = set.as_ref().and_then(|settings| settings.get("theme")?.as_str());
    if let Some(name) = set.filter(|name| find(name).is_none()) {
        warn(&format!("theme not found: {name} (set in settings.json)"));
    }
    let usual = || CommandFailure::internal("the built-in themes are broken");
    set.and_then(find).or_else(|| find("dark")).ok_or_else(usual)
}

fn failure(error: ExportError) -> CommandFailure {
    match error {
        ExportError::Read(error) => error.into(),
        ExportError::Refused(error) => unwritten(&error),
        error => CommandFailure::internal(with_causes(&error)),
    }
}
