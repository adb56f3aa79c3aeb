//! Locating the chunks of a patch in a file, and applying them.

use super::parse::{PatchChunk, PatchLine};
use super::search::{LineSearch, SearchStop, WorkLimit};

/// Why a chunk could not be located. The caller adds the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaceError {
    Context(String),
    Lines(String),
    /// The search ended early.
    Stopped(SearchStop),
}

impl From<SearchStop> for PlaceError {
    fn from(stop: SearchStop) -> Self {
        Self::Stopped(stop)
    }
}

/// A line of a file: its text, and whether it ends with CR LF.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileLine {
    text: String,
    has_cr: bool,
}

/// A range of lines to replace.
struct Replacement {
    at: usize,
    n_old: usize,
    new: Vec<FileLine>,
}

/// Returns the text of a file after a patch. It ends with a line break unless it is empty.
pub(super) fn patched(content: &str, chunks: &[PatchChunk], limit: &mut WorkLimit) -> Result<String, PlaceError> {
    limit.spend(content.len())?;
    let mut lines: Vec<FileLine> = content
        .split('\n')
        .map(|line| {
            let text = line.strip_suffix('\r');
            FileLine { text: text.unwrap_or(line).to_owned(), has_cr: text.is_some() }
        })
        .collect();
    if lines.last().is_some_and(|last| last.text.is_empty() && !last.has_cr) {
        lines.pop();
    }
    let n_cr = lines.iter().filter(|line| line.has_cr).count();
    let uses_cr = n_cr * 2 > lines.len();
    let mut search = LineSearch::new(lines.iter().map(|line| line.text.as_str()).collect());
    let mut replacements = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        let after_context = match &chunk.context {
            None => None,
            Some(context) => {
                let found = search.find(&[context], cursor, false, limit)?;
                cursor = found.ok_or_else(|| PlaceError::Context(context.clone()))? + 1;
                Some(cursor)
            }
        };
        let change = |at: usize, body: &[PatchLine]| replace(&lines, at, body, uses_cr);
        let mut body = chunk.lines.clone();
        if old_lines(&body).is_empty() {
            let at = match after_context {
                Some(at) if !chunk.is_at_end => at,
                _ => lines.len() - usize::from(lines.last().is_some_and(|last| last.text.is_empty())),
            };
            replacements.push(change(at, &body));
            continue;
        }
        let mut found = search.find(&old_lines(&body), cursor, chunk.is_at_end, limit)?;
        if found.is_none() && drop_empty_end(&mut body) {
            found = search.find(&old_lines(&body), cursor, chunk.is_at_end, limit)?;
        }
        let at = found.ok_or_else(|| PlaceError::Lines(old_lines(&chunk.lines).join("\n")))?;
        cursor = at + old_lines(&body).len();
        replacements.push(change(at, &body));
    }
    // A stable sort: chunks are found in order, and insertions at the same position keep theirs.
    replacements.sort_by_key(|replacement| replacement.at);
    let mut new: Vec<FileLine> = Vec::with_capacity(lines.len());
    let mut at = 0;
    for replacement in replacements {
        new.extend(lines.get(at..replacement.at).unwrap_or_default().iter().cloned());
        at = at.max(replacement.at + replacement.n_old);
        new.extend(replacement.new);
    }
    new.extend(lines.get(at..).unwrap_or_default().iter().cloned());
    let mut text = String::with_capacity(content.len() + 64);
    let n = new.len();
    for (at, line) in new.into_iter().enumerate() {
        text.push_str(&line.text);
        // A last line without a line break gets the file's usual one.
        let has_cr = line.has_cr || (at + 1 == n && uses_cr);
        text.push_str(if has_cr { "\r\n" } else { "\n" });
    }
    Ok(text)
}

/// Returns the lines that must be present.
fn old_lines(body: &[PatchLine]) -> Vec<&str> {
    let old = |line: &PatchLine| matches!(line, PatchLine::Keep(_) | PatchLine::Remove(_));
    body.iter().filter(|line| old(line)).map(text_of).collect()
}

fn text_of(line: &PatchLine) -> &str {
    match line {
        PatchLine::Keep(text) | PatchLine::Add(text) | PatchLine::Remove(text) => text,
    }
}

/// Drops a trailing empty old line, along with a trailing empty new line: many patches count the end of the file as a line.
fn drop_empty_end(body: &mut Vec<PatchLine>) -> bool {
    let Some(at) = body.iter().rposition(|line| !matches!(line, PatchLine::Add(_))) else { return false };
    match &body[at] {
        PatchLine::Keep(text) if text.is_empty() => body[at] = PatchLine::Add(String::new()),
        PatchLine::Remove(text) if text.is_empty() => drop(body.remove(at)),
        _ => return false,
    }
    if matches!(body.last(), Some(PatchLine::Add(text)) if text.is_empty()) {
        body.pop();
    }
    !old_lines(body).is_empty()
}

fn replace(lines: &[FileLine], at: usize, body: &[PatchLine], uses_cr: bool) -> Replacement {
    let mut n_old = 0;
    let mut new = Vec::new();
    for line in body {
        match line {
            PatchLine::Remove(_) => n_old += 1,
            PatchLine::Add(text) => new.push(FileLine { text: text.clone(), has_cr: uses_cr }),
            PatchLine::Keep(text) => {
                // Keep the file's own line; only its trailing spaces follow the patch.
                let own = lines.get(at + n_old);
                let kept = own.filter(|own| own.text.trim_end() != text.trim_end()).map_or(text, |own| &own.text);
                new.push(FileLine { text: kept.clone(), has_cr: own.map_or(uses_cr, |own| own.has_cr) });
                n_old += 1;
            }
        }
    }
    Replacement { at, n_old, new }
}

#[cfg(test)]
mod tests {
    use pinch_stdx::cancel::Cancel;

    use super::super::parse::FilePatch;
    use super::*;

    #[track_caller]
    fn check(content: &str, body: &str, expect: &str) {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        let files = FilePatch::parse(&patch).unwrap();
        let [FilePatch::Update { chunks, .. }] = &files[..] else { panic!("{files:?}") };
        let found = patched(content, chunks, &mut WorkLimit::new(Cancel::new()));
        assert_eq!(found.as_deref().map_err(|error| format!("{error:?}")), Ok(expect), "{body}");
    }

    #[test]
    fn line_endings_of_the_file_are_kept() {
        check("a\r\nb\r\n", "@@\n-a\n+A\n+B\n b", "A\r\nB\r\nb\r\n");
        check("a\r\nb\r\nc", "@@\n-c\n+C", "a\r\nb\r\nC\r\n");
        check("a\r\nb\nc\nd\n", "@@\n a\n-b\n+B", "a\r\nB\nc\nd\n");
    }

    #[test]
    fn an_insertion_follows_its_context() {
        check("a\nb\nc\n", "@@ a\n+x\n@@ b\n+y", "a\nx\nb\ny\nc\n");
        check("a\nb\n\n", "@@\n+x", "a\nb\nx\n\n");
        check("", "@@\n+x", "x\n");
        check("a\n", "@@\n-a", "");
    }

    #[test]
    fn loose_matches_keep_the_files_own_lines() {
        check("    if “x”:\n      y\n", "@@\n if \"x\":\n-y\n+z", "    if “x”:\nz\n");
        check("a\nb", "@@\n-b\n+c\n ", "a\nc\n");
        check("a\n\nb\n", "@@\n a\n \n-b", "a\n\n");
    }

    #[test]
    fn many_equal_lines_are_not_compared_one_with_another() {
        let n = 100_000;
        let file = format!("{}last\n", "  same\n".repeat(2 * n));
        let body = format!("@@\n{}-last\n+new", " same\n".repeat(n));
        check(&file, &body, &format!("{}new\n", "  same\n".repeat(2 * n)));
    }
}
