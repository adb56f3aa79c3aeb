//! The program's log: enabled by `PINCH_LOG`, on stderr or in a file, without secrets from the environment.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use pinch_embed::llm::redact::Secrets;
use pinch_embed::stdx::fs::private::{create_private_dir, creating_private, make_private};
use pinch_embed::stdx::host::Host;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter, format::FmtSpan};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::CommandFailure;
use crate::folders::{Folders, absolute};

/// The filter: levels, or per-crate levels, such as `warn,pinch_embed=debug`.
const FILTER: &str = "PINCH_LOG";
/// The log file.
const FILE: &str = "PINCH_LOG_FILE";

/// Whether stderr shows something that a log would disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardError<'a> {
    /// The log may use it.
    Free,
    /// It is a screen: the log goes to `pinch.log` in the agent directory unless a file is named.
    Screen {
        /// The agent directory, if it is not the default.
        agent_dir: Option<&'a Path>,
    },
}

/// Starts the log if the environment enables it.
pub(crate) fn start(host: &Host, stderr: StandardError<'_>) -> Result<(), CommandFailure> {
    let Some(filter) = host.env().non_empty(FILTER) else { return Ok(()) };
    let filter = targets(filter).map_err(|why| {
        CommandFailure::configuration(format!(
            "{FILTER}={filter}: {why}\nhint: name a level (error, warn, info, debug, trace), or parts with levels: {FILTER}=warn,pinch_embed=debug"
        ))
    })?;
    let file = log_file(host, stderr)?;
    let output =
        LogOutput { file: file.map(|file| Arc::new(Mutex::new(file))), secrets: Arc::new(Secrets::in_env(host.env())) };
    let lines = fmt::layer().with_ansi(false).with_span_events(FmtSpan::CLOSE).with_writer(output);
    let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
    started.map_err(|error| CommandFailure::internal(format!("cannot start the log: {error}")))
}

/// Parses a filter. A single word is a level or a pinch crate: other names would be accepted as crates that log nothing.
fn targets(filter: &str) -> Result<Targets, String> {
    let is_known = |word: &&str| word.contains('=') || word.starts_with("pinch") || word.parse::<LevelFilter>().is_ok();
    match filter.split(',').map(str::trim).find(|word| !is_known(word)) {
        Some(word) => Err(format!("{word:?} is not a level")),
        None => Targets::from_str(filter).map_err(|error| error.to_string()),
    }
}

fn log_file(host: &Host, stderr: StandardError<'_>) -> Result<Option<File>, CommandFailure> {
    let path = match (host.env().non_empty(FILE), stderr) {
        (Some(named), _) => absolute(&crate::folders::working_directory()?, named, host),
        (None, StandardError::Screen { agent_dir }) => Folders::find(agent_dir, host)?.agent_dir.join("pinch.log"),
        (None, StandardError::Free) => return Ok(None),
    };
    let failed = |error: io::Error, path: &Path| {
        CommandFailure::configuration(format!(
            "cannot write the log to {}: {error}\nhint: name a file in {FILE}",
            path.display()
        ))
    };
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    create_private_dir(&parent).map_err(|error| failed(error, &parent))?;
    let file = creating_private(OpenOptions::new().create(true).append(true)).open(&path);
    let file = file.map_err(|error| failed(error, &path))?;
    make_private(&file);
    Ok(Some(file))
}

/// Destination of log lines.
struct LogOutput {
    file: Option<Arc<Mutex<File>>>,
    secrets: Arc<Secrets>,
}

impl MakeWriter<'_> for LogOutput {
    type Writer = LogLine;

    fn make_writer(&self) -> LogLine {
        LogLine { file: self.file.clone(), secrets: Arc::clone(&self.secrets), text: Vec::new() }
    }
}

/// A log line, which is written once it is complete.
struct LogLine {
    file: Option<Arc<Mutex<File>>>,
    secrets: Arc<Secrets>,
    text: Vec<u8>,
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        let text = self.secrets.hidden_in(&text).unwrap_or(text);
        match &self.file {
            Some(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes()),
            None => crate::output::stderr().write_all(text.as_bytes()),
        }
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        if !self.text.is_empty() && self.flush().is_err() {
            // Nobody is left to report this to.
        }
    }
}
