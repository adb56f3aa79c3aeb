//! Parser for the patch format.

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePatch {
    /// Creates a file.
    Add {
        /// Its path.
        path: String,
        /// Its content.
        content: String,
    },
    /// Deletes a file.
    Delete {
        /// Its path.
        path: String,
    },
    /// Changes parts of a file, and possibly its path.
    Update {
        /// Its path.
        path: String,
        /// Its new path.
        move_to: Option<String>,
        /// The chunks, in order.
        chunks: Vec<PatchChunk>,
    },
}

/// A changed section of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchChunk {
    /// A line that precedes it.
    pub context: Option<String>,
    /// Its lines.
    pub lines: Vec<PatchLine>,
    /// Whether it is at the end of the file.
    pub is_at_end: bool,
}

/// A line of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchLine {
    /// Unchanged.
    Keep(String),
    /// Added.
    Add(String),
    /// Removed.
    Remove(String),
}

/// Why a patch could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchSyntaxError {
    /// It is empty.
    #[error("Invalid patch: input is empty.")]
    Empty,
    /// The start marker is missing.
    #[error("The first line of the patch must be '*** Begin Patch'")]
    NoBegin,
    /// The end marker is missing.
    #[error("The last line of the patch must be '*** End Patch'")]
    NoEnd,
    /// A line is invalid.
    #[error("Invalid patch hunk at line {line}: {text}")]
    Line {
        /// Line number, starting at 1.
        line: usize,
        /// What is wrong.
        text: String,
    },
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";
/// Minimum lines of a patch wrapped in a here-document.
const WRAPPED_LINES: usize = 4;

impl FilePatch {
    /// Parses a patch, which may be wrapped in a here-document.
    ///
    /// # Errors
    /// Describes the error and its line.
    pub fn parse(patch: &str) -> Result<Vec<Self>, PatchSyntaxError> {
        let patch = patch.trim();
        if patch.is_empty() {
            return Err(PatchSyntaxError::Empty);
        }
        let all: Vec<&str> = patch.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        let body = body(&all).or_else(|error| match all.as_slice() {
            [first, inner @ .., last]
                if all.len() >= WRAPPED_LINES
                    && ["<<EOF", "<<'EOF'", "<<\"EOF\""].contains(first)
                    && last.ends_with("EOF") =>
            {
                body(inner)
            }
            _ => Err(error),
        })?;
        let mut reader = PatchReader { lines: body, at: 0 };
        let mut files = Vec::new();
        while let Some(line) = reader.peek() {
            files.push(reader.file(line)?);
        }
        Ok(files)
    }
}

/// Returns the lines between the first and the last.
fn body<'a, 'b>(lines: &'a [&'b str]) -> Result<&'a [&'b str], PatchSyntaxError> {
    match lines {
        [first, ..] if first.trim() != BEGIN => Err(PatchSyntaxError::NoBegin),
        [_, body @ .., last] if last.trim() == END => Ok(body),
        _ => Err(PatchSyntaxError::NoEnd),
    }
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Returns the current line number in the patch, counting the start marker.
    fn number(&self) -> usize {
        self.at + 2
    }

    fn file(&mut self, header: &str) -> Result<FilePatch, PatchSyntaxError> {
        let number = self.number();
        let line = header.trim();
        self.at += 1;
        if let Some(path) = line.strip_prefix(ADD) {
            let mut content = String::new();
            while let Some(added) = self.peek().and_then(|line| line.strip_prefix('+')) {
                content.push_str(added);
                content.push('\n');
                self.at += 1;
            }
            return Ok(FilePatch::Add { path: path.to_owned(), content });
        }
        if let Some(path) = line.strip_prefix(DELETE) {
            return Ok(FilePatch::Delete { path: path.to_owned() });
        }
        let Some(path) = line.strip_prefix(UPDATE) else {
            let text = format!(
                "'{header}' is not a valid hunk header. Valid hunk headers: '{ADD}{{path}}', '{DELETE}{{path}}', '{UPDATE}{{path}}'"
            );
            return Err(PatchSyntaxError::Line { line: number, text });
        };
        let move_to = self.peek().and_then(|line| line.trim().strip_prefix(MOVE)).map(str::to_owned);
        self.at += usize::from(move_to.is_some());
        let mut chunks = Vec::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("***")) {
            if line.trim().is_empty() {
                self.at += 1;
            } else {
                chunks.push(self.chunk(chunks.is_empty())?);
            }
        }
        if chunks.is_empty() {
            let text = format!("Update file hunk for path '{path}' is empty");
            return Err(PatchSyntaxError::Line { line: number, text });
        }
        Ok(FilePatch::Update { path: path.to_owned(), move_to, chunks })
    }

    /// Parses a chunk. Only the first one of a file may omit its marker.
    fn chunk(&mut self, is_first: bool) -> Result<PatchChunk, PatchSyntaxError> {
        let number = self.number();
        let first = self.peek().unwrap_or_default();
        let mut chunk = PatchChunk::default();
        if first == "@@" {
            self.at += 1;
        } else if let Some(context) = first.strip_prefix("@@ ") {
            chunk.context = Some(context.to_owned()).filter(|context| !context.is_empty());
            self.at += 1;
        } else if !is_first {
            let text = format!("Expected update hunk to start with a @@ context marker, got: '{first}'");
            return Err(PatchSyntaxError::Line { line: number, text });
        }
        let no_lines =
            || PatchSyntaxError::Line { line: number + 1, text: "Update hunk does not contain any lines".to_owned() };
        while let Some(line) = self.peek() {
            if line == END_OF_FILE {
                if chunk.lines.is_empty() {
                    return Err(no_lines());
                }
                chunk.is_at_end = true;
                self.at += 1;
                break;
            }
            let text = line.get(1..).unwrap_or_default().to_owned();
            chunk.lines.push(match line.bytes().next() {
                None => PatchLine::Keep(String::new()),
                Some(b' ') => PatchLine::Keep(text),
                Some(b'+') => PatchLine::Add(text),
                Some(b'-') => PatchLine::Remove(text),
                Some(_) if chunk.lines.is_empty() => {
                    let text = format!(
                        "Unexpected line found in update hunk: '{line}'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
                    );
                    return Err(PatchSyntaxError::Line { line: number + 1, text });
                }
                Some(_) => break,
            });
            self.at += 1;
        }
        if chunk.lines.is_empty() { Err(no_lines()) } else { Ok(chunk) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(body: &str, expect: &str) {
        let error = FilePatch::parse(&format!("*** Begin Patch\n{body}\n*** End Patch")).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn an_invalid_line_is_named() {
        refused(
            "*** Update File: a\n@@\nx",
            "Invalid patch hunk at line 4: Unexpected line found in update hunk: 'x'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)",
        );
        refused("*** Update File: a\n@@", "Invalid patch hunk at line 4: Update hunk does not contain any lines");
        refused(
            "*** Update File: a\n-a\n@ b",
            "Invalid patch hunk at line 4: Expected update hunk to start with a @@ context marker, got: '@ b'",
        );
        refused(
            "*** Add File: a\n\n",
            "Invalid patch hunk at line 3: '' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'",
        );
    }

    #[test]
    fn a_here_document_is_unwrapped() {
        let patch = "<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF";
        assert_eq!(FilePatch::parse(patch), Ok(vec![FilePatch::Delete { path: "a".into() }]));
        assert_eq!(FilePatch::parse("<<EOF\nx\nEOF"), Err(PatchSyntaxError::NoBegin));
        assert_eq!(FilePatch::parse(" \n"), Err(PatchSyntaxError::Empty));
        assert_eq!(FilePatch::parse("*** Begin Patch"), Err(PatchSyntaxError::NoEnd));
    }
}
