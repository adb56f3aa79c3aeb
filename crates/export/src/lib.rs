#![doc = include_str!("../README.md")]
//!
//! ## Guarantees
//!
//! The page is written entry by entry, so memory use is bounded by the longest entry plus a line per entry. Equal sessions give equal
//! pages.
//!
//! Nothing in a session can become markup: all text goes through one escaping function, and a content security policy lets browsers run
//! only the page's own script and load nothing at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_stdx::fs::{Access, write_named_with};

mod out;
mod words;
mod theme;
mod languages;
mod syntax;
mod images;
mod markdown;
mod outline;
mod skill;
mod tool;
mod survey;
mod entry;
mod page;

use entry::ShownResult;
use out::PageWriter;
use outline::EntryOutline;
use pinch_session::entry::Entry;
use pinch_session::session_log::SessionLog;
use pinch_session::store::StoreError;
use survey::Survey;

pub use skill::SkillPrompt;
pub use theme::{ColorScheme, PageColor, PageTheme, Rgb};

/// Why a session could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session cannot be read any more.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The page cannot be written to its file.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the page.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The writer returned an error.
    #[error("cannot write the page")]
    Refused(#[from] io::Error),
}

/// Returns the default file name for a session's page: `pinch-session-` and the name of its file, or its id if it has none.
pub fn file_name(log: &SessionLog) -> String {
    file_name_for(log.path().unwrap_or(Path::new(log.id().as_str())))
}

/// Returns the default file name for the page of a session file.
pub fn file_name_for(session: &Path) -> String {
    let name = session.file_name().unwrap_or_default().to_string_lossy();
    format!("pinch-session-{}.html", name.strip_suffix(".jsonl").unwrap_or(&name))
}

/// Writes a session's page to a file, replacing it, and creates the directory if necessary. A new file is readable by the user only (0600);
/// devices and pipes are written to directly. Relative paths, and the default name used without a path, are resolved against `folder`.
/// Returns the path as given, or that of the file with the default name. Blocks.
///
/// # Errors
/// Fails if an entry cannot be read, the path is the session's own file, or the file cannot be written; existing content is left unchanged.
pub fn export(log: &SessionLog, theme: &PageTheme, path: Option<&Path>, folder: &Path) -> Result<PathBuf, ExportError> {
    let path = path.map_or_else(|| folder.join(file_name(log)), Path::to_owned);
    let target = folder.join(&path);
    let unwritten = |source| ExportError::Write { path: target.clone(), source };
    log.check_target(&target).map_err(unwritten)?;
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(unwritten)?;
    }
    let mut unread = None;
    let done = write_named_with(&target, Access::NewPrivate, |file| {
        let mut file = BufWriter::with_capacity(64 * 1024, file);
        match write(log, theme, &mut file) {
            Err(ExportError::Refused(error)) => Err(error),
            Err(error) => {
                unread = Some(error);
                Err(io::ErrorKind::Other.into())
            }
            Ok(()) => file.flush(),
        }
    });
    match unread {
        Some(error) => Err(error),
        None => done.map(|()| path).map_err(unwritten),
    }
}

/// Writes a session's page piece by piece, so `to` should be buffered. Blocks.
///
/// # Errors
/// Fails if an entry cannot be read, or `to` returns an error.
pub fn write(log: &SessionLog, theme: &PageTheme, to: &mut dyn Write) -> Result<(), ExportError> {
    let survey = Survey::of(log)?;
    let outline = EntryOutline::of(log);
    let ids: Vec<_> = log.entry_ids().collect();
    let mut out = PageWriter::new(to, survey.max_coloured);
    page::begin(&mut out, log, theme, &survey, &outline)?;
    let mut is_shown = vec![false; ids.len()];
    // The entry written last.
    let mut before = None;
    let mut n_articles = 0;
    for at in outline.reading_order() {
        if is_shown[at] {
            continue;
        }
        let entry = log.try_entry(at)?;
        page::part(&mut out, n_articles)?;
        n_articles += 1;
        if before.is_some() && outline.parent(at) != before {
            page::fork(&mut out, outline.parent(at))?;
        }
        let answers = answers(log, &outline, at, &entry)?;
        answers.iter().for_each(|(at, _)| is_shown[*at] = true);
        before = Some(answers.last().map_or(at, |(at, _)| *at));
        let label = log.label(ids[at]).map(|label| label.text.as_str());
        page::article(&mut out, (at, &entry), &answers, &survey, outline.is_active(at), label)?;
    }
    page::end(&mut out, n_articles)?;
    Ok(())
}

/// Returns the results that directly follow an answer's calls, up to the first other entry or fork: they are shown with their calls.
fn answers(log: &SessionLog, outline: &EntryOutline, at: usize, entry: &Entry) -> Result<Vec<ShownResult>, StoreError> {
    let Some(Message::Assistant(answer)) = entry.body.as_message().map(|message| &**message) else {
        return Ok(Vec::new());
    };
    let mut called: Vec<_> = answer.tool_calls().map(|call| &call.id).collect();
    let mut found: Vec<ShownResult> = Vec::new();
    let mut last = at;
    while !called.is_empty()
        && let Some(next) = outline.only_child(last)
    {
        let entry: Arc<Entry> = log.try_entry(next)?;
        let Some(result) = entry::result_of(&entry) else { break };
        let Some(call) = called.iter().position(|id| **id == result.tool_call_id) else { break };
        called.remove(call);
        last = next;
        found.push((next, entry));
    }
    Ok(found)
}
