//! The page around the entries: policy, style, head, sidebar and script.

use std::io;

use pinch_llm::message::Message;

use super::entry::{self, ShownResult};
use super::out::{Own, PageWriter};
use super::outline::EntryOutline;
use super::survey::{EntryKind, Survey};
use super::theme::{ColorScheme, PageTheme};
use super::words::{dollars, grouped, moment};
use pinch_session::entry::Entry;
use pinch_session::session_log::SessionLog;

/// Rows of the sidebar laid out as a unit. Browsers skip the layout of invisible units, as long as there are not so many that tracking them
/// costs more.
const ROWS_OF_PART: usize = 32;
/// The same for articles.
const ARTICLES_OF_PART: usize = 16;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes everything before the entries.
pub(super) fn begin(
    out: &mut PageWriter<'_>,
    log: &SessionLog,
    theme: &PageTheme,
    survey: &Survey,
    outline: &EntryOutline,
) -> io::Result<()> {
    let style = Own::new(format!(":root{{{}}}\n{STYLE}", theme.variables()));
    out.html("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")?;
    out.html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src '")?;
    out.checked(&style.hash())?;
    out.html("'; script-src '")?;
    out.checked(&script().hash())?;
    out.html("'; base-uri 'none'; form-action 'none'\">\n")?;
    out.html("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")?;
    out.html("<meta name=\"color-scheme\" content=\"light dark\">\n<title>")?;
    out.text(&survey.title)?;
    out.html("</title>\n<style>")?;
    out.own(&style)?;
    out.html("</style>\n</head>\n<body>\n")?;
    schemes(out, theme)?;
    out.html("<header>\n<h1>")?;
    out.text(&survey.title)?;
    out.html("</h1>\n")?;
    facts(out, log, survey)?;
    controls(out)?;
    out.html("</header>\n")?;
    tree(out, log, survey, outline)
}

/// Writes what precedes an article that comes after `n_before` others.
pub(super) fn part(out: &mut PageWriter<'_>, n_before: usize) -> io::Result<()> {
    match n_before {
        0 => out.html("<section>\n"),
        n if n % ARTICLES_OF_PART == 0 => out.html("</section>\n<section>\n"),
        _ => Ok(()),
    }
}

/// Writes everything after the entries.
pub(super) fn end(out: &mut PageWriter<'_>, n_articles: usize) -> io::Result<()> {
    out.html(if n_articles == 0 { "" } else { "</section>\n" })?;
    out.html("</main>\n<script>")?;
    out.own(&script())?;
    out.html("</script>\n</body>\n</html>\n")
}

fn script() -> Own {
    Own::new(SCRIPT.to_owned())
}

/// Writes the facts about the whole session.
fn facts(out: &mut PageWriter<'_>, log: &SessionLog, survey: &Survey) -> io::Result<()> {
    let spent = &survey.spent;
    let count = |n: usize| if n > 0 { n.to_string() } else { String::new() };
    let mut tokens = format!("↑{} ↓{}", grouped(spent.input), grouped(spent.output));
    if spent.cache_read > 0 || spent.cache_write > 0 {
        tokens.push_str(&format!(
            " · cache {} read, {} written",
            grouped(spent.cache_read),
            grouped(spent.cache_write)
        ));
    }
    let models: Vec<&str> = survey.models.iter().map(String::as_str).collect();
    let cost = if spent.cost > 0.0 { dollars(spent.cost) } else { String::new() };
    out.html("<dl>\n")?;
    for (name, value) in [
        ("Session", log.id().as_str()),
        ("Begun", &moment(&log.header().timestamp)),
        ("Folder", log.cwd()),
        ("Model", &models.join(", ")),
        ("Prompts", &count(survey.n_prompts)),
        ("Answers", &count(survey.n_answers)),
        ("Tool calls", &count(survey.n_calls)),
        ("Tokens", &tokens),
        ("Cost", &cost),
    ] {
        if !value.is_empty() {
            out.html("<div><dt>")?;
            out.html(name)?;
            out.html("</dt><dd>")?;
            out.text(value)?;
            out.html("</dd></div>\n")?;
        }
    }
    out.html("</dl>\n")
}

/// Color schemes: value and label.
const SCHEMES: [(&str, &str); 3] = [("system", "System"), ("light", "Light"), ("dark", "Dark")];

/// Writes the color scheme switch, which works without scripts. Its inputs come first in the page, so that the style finds them without
/// searching it; the visible part is in the header.
fn schemes(out: &mut PageWriter<'_>, theme: &PageTheme) -> io::Result<()> {
    let begun_with = match theme.scheme {
        ColorScheme::System => "system",
        ColorScheme::Light => "light",
        ColorScheme::Dark => "dark",
    };
    for (id, _) in SCHEMES {
        out.html("<input type=\"radio\" name=\"scheme\" autocomplete=\"off\" id=\"scheme-")?;
        out.html(id)?;
        out.html(if id == begun_with { "\" checked>\n" } else { "\">\n" })?;
    }
    Ok(())
}

/// Writes the controls that need a script; they are hidden until it runs.
fn controls(out: &mut PageWriter<'_>) -> io::Result<()> {
    out.html("<div class=\"controls\"><div class=\"schemes\">Colors\n")?;
    for (id, label) in SCHEMES {
        out.html("<label for=\"scheme-")?;
        out.html(id)?;
        out.html("\">")?;
        out.html(label)?;
        out.html("</label>\n")?;
    }
    out.html("</div>\n<div class=\"scripted\"><button type=\"button\" id=\"unfold\">Expand all</button> ")?;
    out.html("<button type=\"button\" id=\"all\">Show all branches</button></div></div>\n")
}

/// Writes the sidebar of all entries with their branches. It is not an HTML list, because browsers take quadratic time to number list
/// items.
fn tree(out: &mut PageWriter<'_>, log: &SessionLog, survey: &Survey, outline: &EntryOutline) -> io::Result<()> {
    out.html("<nav aria-label=\"Entries\">\n<div class=\"scripted\"><input type=\"search\" id=\"search\" placeholder=\"Search\" aria-label=\"Search\">\n")?;
    out.html("<select id=\"filter\" aria-label=\"Shown entries\"><option value=\"talk\">Conversation</option>")?;
    out.html("<option value=\"no-tools\">Without tools</option><option value=\"user\">Prompts</option>")?;
    out.html(
        "<option value=\"labelled\">Labelled</option><option value=\"everything\">Everything</option></select></div>\n",
    )?;
    out.html("<div id=\"tree\">\n")?;
    let ids: Vec<_> = log.entry_ids().collect();
    for (nth, row) in outline.rows().into_iter().enumerate() {
        if nth % ROWS_OF_PART == 0 {
            out.html(if nth == 0 { "<div>\n" } else { "</div><div>\n" })?;
        }
        let line = &survey.lines[row.at];
        let label = log.label(ids[row.at]);
        out.html("<a id=\"t")?;
        out.number(row.at)?;
        out.html("\" class=\"d")?;
        out.number(row.indent)?;
        out.html(" ")?;
        out.html(class(line.kind))?;
        out.html(if outline.is_active(row.at) { " on" } else { "" })?;
        out.html(if label.is_some() { " labelled" } else { "" })?;
        if let Some(parent) = outline.parent(row.at) {
            out.html("\" data-p=\"")?;
            out.number(parent)?;
        }
        out.html("\" href=\"#e")?;
        out.number(row.at)?;
        out.html("\">")?;
        if let Some(label) = label {
            out.html("<b class=\"label\">")?;
            out.text(&label.text)?;
            out.html("</b> ")?;
        }
        out.text(&line.preview)?;
        out.html("</a>\n")?;
    }
    out.html(if ids.is_empty() { "</div>\n" } else { "</div></div>\n" })?;
    out.html("</nav>\n<main>\n")
}

fn class(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::User => "user",
        EntryKind::Assistant => "assistant",
        EntryKind::Calls => "assistant calls",
        EntryKind::Tool => "result",
        EntryKind::FailedTool => "result failed",
        EntryKind::Bash => "bash",
        EntryKind::System => "system",
        EntryKind::Summary => "summary",
        EntryKind::Custom => "custom",
        EntryKind::Note => "noted",
    }
}

/// Writes an entry, with the results of its calls.
pub(super) fn article(
    out: &mut PageWriter<'_>,
    (at, entry): (usize, &Entry),
    answers: &[ShownResult],
    survey: &Survey,
    is_active: bool,
    label: Option<&str>,
) -> io::Result<()> {
    out.html("<article id=\"e")?;
    out.number(at)?;
    out.html("\" class=\"")?;
    out.html(class(survey.lines[at].kind))?;
    out.html(if is_active { "\">" } else { " off\">" })?;
    out.html("<p class=\"head\">")?;
    if let Some(author_label) = author_label(entry) {
        out.html("<b>")?;
        out.text(&author_label)?;
        out.html("</b> ")?;
    }
    if let Some(label) = label {
        out.html("<b class=\"label\">")?;
        out.text(label)?;
        out.html("</b> ")?;
    }
    if !entry.timestamp.is_empty() {
        out.html("<time datetime=\"")?;
        out.text(&entry.timestamp)?;
        out.html("\">")?;
        out.text(&moment(&entry.timestamp))?;
        out.html("</time> ")?;
    }
    out.html("<a class=\"anchor\" href=\"#e")?;
    out.number(at)?;
    out.html("\" title=\"Link to this entry\">#</a></p>\n")?;
    entry::body(out, entry, answers)?;
    out.html("</article>\n")
}

/// Returns the label of an entry's author.
fn author_label(entry: &Entry) -> Option<String> {
    match &**entry.body.as_message()? {
        Message::User(_) => Some("User".to_owned()),
        Message::Assistant(answer) => {
            let level =
                answer.thinking_level.map(|level| format!(" · thinking {}", level.as_str())).unwrap_or_default();
            Some(format!("{}/{}{level}", answer.provider, answer.model))
        }
        _ => None,
    }
}

/// Marks the start of another branch.
pub(super) fn fork(out: &mut PageWriter<'_>, parent: Option<usize>) -> io::Result<()> {
    match parent {
        None => out.html("<p class=\"fork\">Another root</p>\n"),
        Some(parent) => {
            out.html("<p class=\"fork\">Another branch, after <a href=\"#e")?;
            out.number(parent)?;
            out.html("\">this entry</a></p>\n")
        }
    }
}
