//! Truncating long text at line breaks, in the same way for every tool.

use serde_json::{Value, json};

/// Maximum lines that a tool returns.
pub const MAX_LINES: usize = 2000;
/// Maximum bytes that a tool returns.
pub const MAX_BYTES: usize = 51_200;
/// The line limit reported for results with only a byte limit: JavaScript's largest safe integer, as in other programs.
const NO_LINE_LIMIT: u64 = 9_007_199_254_740_991;

/// The result of truncating.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// The remaining text.
    pub content: String,
    /// The limit that was reached; `None` if nothing was cut.
    pub by: Option<Limit>,
    /// Lines of the complete text; a final line feed does not start another one.
    pub total_lines: usize,
    /// Bytes of the complete text.
    pub total_bytes: usize,
    /// Lines of the remaining text.
    pub output_lines: usize,
    /// Whether the last line alone was too long, so that only its end remains.
    pub last_line_partial: bool,
    /// Whether the first line alone is too long, so that nothing remains.
    pub first_line_exceeds_limit: bool,
    /// The line limit that applied.
    pub max_lines: usize,
    /// The byte limit that applied.
    pub max_bytes: usize,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The line limit.
    Lines,
    /// The byte limit.
    Bytes,
}

impl Truncation {
    /// Returns the object that tools include in their details. `content` is left empty, since it is already in the result's text.
    pub fn to_details(&self) -> Value {
        json!({
            "content": "",
            "truncated": self.by.is_some(),
            "truncatedBy": match self.by {
                None => Value::Null,
                Some(Limit::Lines) => "lines".into(),
                Some(Limit::Bytes) => "bytes".into(),
            },
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.content.len(),
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": if self.max_lines == usize::MAX { NO_LINE_LIMIT } else { self.max_lines as u64 },
            "maxBytes": self.max_bytes,
        })
    }
}

/// Keeps whole lines from the start.
pub fn truncate_head(text: &str, max_lines: usize, max_bytes: usize) -> Truncation {
    let total_lines = n_lines(text);
    if total_lines <= max_lines && text.len() <= max_bytes {
        return whole(text, total_lines, max_lines, max_bytes);
    }
    let mut end = 0;
    let mut n = 0;
    let mut by = Limit::Lines;
    for line in lines(text).split('\n') {
        if n >= max_lines {
            break;
        }
        let after = if n == 0 { line.len() } else { end + 1 + line.len() };
        if after > max_bytes {
            by = Limit::Bytes;
            break;
        }
        end = after;
        n += 1;
    }
    Truncation {
        content: text[..end].to_owned(),
        by: Some(by),
        total_lines,
        total_bytes: text.len(),
        output_lines: n,
        last_line_partial: false,
        first_line_exceeds_limit: n == 0,
        max_lines,
        max_bytes,
    }
}

/// Collects lines one by one, keeping the first ones up to the limits of a result and counting the others.
#[derive(Debug, Default)]
pub struct HeadLines {
    kept: String,
    n_kept: usize,
    n_lines: usize,
    n_bytes: usize,
}

impl HeadLines {
    /// Adds a line.
    pub fn push(&mut self, line: &str) {
        let feed = usize::from(self.n_lines > 0);
        self.n_lines += 1;
        self.n_bytes += feed + line.len();
        if self.n_bytes <= MAX_BYTES {
            self.n_kept = self.n_lines;
            if feed > 0 {
                self.kept.push('\n');
            }
            self.kept.push_str(line);
        }
    }

    /// Returns whether there was no line.
    pub fn is_empty(&self) -> bool {
        self.n_lines == 0
    }

    /// Returns the truncated lines.
    pub fn finish(self) -> Truncation {
        let is_whole = self.n_bytes <= MAX_BYTES;
        Truncation {
            content: self.kept,
            by: (!is_whole).then_some(Limit::Bytes),
            total_lines: self.n_lines,
            total_bytes: self.n_bytes,
            output_lines: self.n_kept,
            last_line_partial: false,
            first_line_exceeds_limit: self.n_kept == 0 && !is_whole,
            max_lines: usize::MAX,
            max_bytes: MAX_BYTES,
        }
    }
}

/// Keeps whole lines from the end, or the end of the last line if it is too long.
pub fn truncate_tail(text: &str, max_lines: usize, max_bytes: usize) -> Truncation {
    let total_lines = n_lines(text);
    if total_lines <= max_lines && text.len() <= max_bytes {
        return whole(text, total_lines, max_lines, max_bytes);
    }
    let kept = lines(text);
    let mut start = kept.len();
    let mut n = 0;
    let mut by = Limit::Lines;
    let mut partial = false;
    for line in kept.rsplit('\n') {
        if n >= max_lines {
            break;
        }
        let size = kept.len() - start + line.len() + usize::from(n > 0);
        if size > max_bytes {
            by = Limit::Bytes;
            if n == 0 {
                start = kept.len() - max_bytes;
                while !kept.is_char_boundary(start) {
                    start += 1;
                }
                partial = true;
                n = 1;
            }
            break;
        }
        start = kept.len() - size;
        n += 1;
    }
    Truncation {
        content: kept[start..].to_owned(),
        by: Some(by),
        total_lines,
        total_bytes: text.len(),
        output_lines: n,
        last_line_partial: partial,
        first_line_exceeds_limit: false,
        max_lines,
        max_bytes,
    }
}

fn whole(text: &str, total_lines: usize, max_lines: usize, max_bytes: usize) -> Truncation {
    Truncation {
        content: text.to_owned(),
        by: None,
        total_lines,
        total_bytes: text.len(),
        output_lines: total_lines,
        last_line_partial: false,
        first_line_exceeds_limit: false,
        max_lines,
        max_bytes,
    }
}

fn n_lines(text: &str) -> usize {
    let n_feeds = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    n_feeds + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Strips the final line feed from a text.
fn lines(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Formats a size for people: `512B`, `50.0KB`, `1.5MB`.
pub fn format_size(bytes: usize) -> String {
    const KB: f64 = 1024.0;
    let size = bytes as f64;
    if size < KB {
        format!("{bytes}B")
    } else if size < KB * KB {
        format!("{:.1}KB", size / KB)
    } else {
        format!("{:.1}MB", size / (KB * KB))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_kept_whole() {
        assert_eq!(truncate_head("a\nb", 2, 3).by, None);
        assert_eq!(truncate_tail("a\nb", 2, 3).content, "a\nb");
    }

    #[test]
    fn heads_and_tails_end_at_line_breaks() {
        let head = truncate_head("one\ntwo\nthree", 2, 100);
        assert_eq!((head.content.as_str(), head.by, head.output_lines), ("one\ntwo", Some(Limit::Lines), 2));
        let head = truncate_head("one\ntwo\nthree", 9, 8);
        assert_eq!((head.content.as_str(), head.by), ("one\ntwo", Some(Limit::Bytes)));
        let tail = truncate_tail("one\ntwo\nthree", 9, 9);
        assert_eq!((tail.content.as_str(), tail.by, tail.output_lines), ("two\nthree", Some(Limit::Bytes), 2));
    }

    #[test]
    fn a_final_line_feed_does_not_start_a_line() {
        assert_eq!(truncate_head("a\nb\n", 2, 100).by, None);
        let tail = truncate_tail("a\nb\nc\n", 2, 100);
        assert_eq!((tail.content.as_str(), tail.total_lines, tail.output_lines), ("b\nc", 3, 2));
        let head = truncate_head("a\nb\nc\n", 2, 100);
        assert_eq!((head.content.as_str(), head.total_lines), ("a\nb", 3));
    }

    #[test]
    fn a_single_overlong_line_is_cut() {
        assert!(truncate_head("xxxxxxxxxx\nb", 9, 5).first_line_exceeds_limit);
        let tail = truncate_tail("b\néééé", 9, 5);
        assert_eq!((tail.content.as_str(), tail.last_line_partial), ("éé", true));
    }

    #[test]
    fn collected_lines_are_truncated_like_text() {
        for n in [0, 1, 3, 500, 5_000] {
            let lines: Vec<String> = (0..n).map(|i| format!("line {i:>20}")).collect();
            let mut head = HeadLines::default();
            lines.iter().for_each(|line| head.push(line));
            assert_eq!(head.is_empty(), n == 0);
            assert_eq!(head.finish(), truncate_head(&lines.join("\n"), usize::MAX, MAX_BYTES));
        }
    }

    #[test]
    fn sizes_are_formatted_for_people() {
        assert_eq!([format_size(1023), format_size(51_200), format_size(1_572_864)], ["1023B", "50.0KB", "1.5MB"]);
    }
}
