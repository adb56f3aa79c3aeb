//! Limits what one result of a tool may take of a model's context.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::message::Block;

/// Characters of a result, by the tokens of the smallest context window that they are for; the largest first.
const LIMITS: [(u64, usize); 3] = [(200_000, 64_000), (100_000, 32_000), (0, 16_000)];

/// The share of a long result that is kept of its beginning; the rest is kept of its end.
const HEAD_SHARE: (usize, usize) = (3, 4);

/// How many characters a result of a tool may have for a model with this context window, in tokens. A window of 0 is unknown.
pub fn result_limit(context_window: u64) -> usize {
    LIMITS.iter().find(|(window, _)| context_window >= *window).map_or(0, |(_, limit)| *limit)
}

/// A content whose texts have at most so many characters in total: the beginning and the end, cut at line ends where these are near, with a note
/// in between. Images stay. `None`: it is short enough.
pub fn limited(content: &[Block], limit: usize) -> Option<Vec<Block>> {
    let texts = || content.iter().filter_map(Block::as_text);
    // The length in bytes is known without looking, and never below that in characters.
    if texts().map(str::len).sum::<usize>() <= limit {
        return None;
    }
    let total: usize = texts().map(|text| text.chars().count()).sum();
    if total <= limit {
        return None;
    }
    let kept = limit.saturating_sub(note(total, total).chars().count());
    let mut head = kept * HEAD_SHARE.0 / HEAD_SHARE.1;
    let tail = kept - head;
    // Characters that are still to come, from the block at hand on.
    let mut left = total;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (mut n_kept, mut lines) = (0, 0);
    for block in content {
        let Some(text) = block.as_text() else {
            if after.is_empty() {
                before.push(block.clone())
            } else {
                after.push(block.clone())
            }
            continue;
        };
        let n = text.chars().count();
        let begin = beginning(text, head.min(n));
        // What the end may have of this block.
        let end = ending(text, n.saturating_sub(left.saturating_sub(tail)).min(n), begin.len());
        left -= n;
        head = if begin.len() == text.len() { head - n } else { 0 };
        n_kept += begin.chars().count() + end.chars().count();
        lines += text[begin.len()..text.len() - end.len()].matches('\n').count();
        before.extend((!begin.is_empty()).then(|| Block::text(begin)));
        after.extend((!end.is_empty()).then(|| Block::text(end)));
    }
    before.push(Block::text(note(total - n_kept, lines)));
    before.extend(after);
    Some(before)
}

fn note(n_chars: usize, n_lines: usize) -> String {
    format!(
        "[… {n_chars} characters ({n_lines} lines) were left out here, because the result was too long. Ask for a smaller part to see them. …]"
    )
}

/// The first characters of a text, up to the end of a line if there is one in their last fifth.
fn beginning(text: &str, n: usize) -> &str {
    let end = text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    if end == text.len() {
        return text;
    }
    let at_line = text[..end].rfind('\n').filter(|at| *at >= end / 5 * 4);
    &text[..at_line.map_or(end, |at| at + 1)]
}

/// The last characters of what follows a place in a text, from the beginning of a line if there is one in their first fifth.
fn ending(text: &str, n: usize, from: usize) -> &str {
    if n == 0 {
        return "";
    }
    let start = text.char_indices().rev().nth(n - 1).map_or(0, |(at, _)| at).max(from);
    let found = &text[start..];
    if start == from {
        return found;
    }
    found.find('\n').filter(|at| *at <= found.len() / 5).map_or(found, |at| &found[at + 1..])
}

/// A tool whose results are limited.
struct LimitedTool {
    inner: Arc<dyn Tool>,
    limit: usize,
}

/// Limits the results of a tool, failures included. Their details stay.
pub fn with_limit(tool: Arc<dyn Tool>, limit: usize) -> Arc<dyn Tool> {
    Arc::new(LimitedTool { inner: tool, limit })
}

impl Tool for LimitedTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        self.inner.prepare(raw)
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut output = self.inner.run(input, cx).await?;
            if let Some(content) = limited(&output.content, self.limit) {
                output.content = content;
            }
            Ok(output)
        })
    }
}

#[cfg(test)]
mod tests {
    use pinch_llm::message::Image;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_limit_follows_the_window() {
        let limits = [0, 8_000, 99_999, 100_000, 199_999, 200_000, 1_000_000].map(result_limit);
        assert_eq!(limits, [16_000, 16_000, 16_000, 32_000, 32_000, 64_000, 64_000]);
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_result_are_kept_in_whole_lines() {
        assert_eq!(limited(&[Block::text("é".repeat(1000))], 1000), None);
        let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let kept = limited(&[Block::text(text.as_str())], 1000).unwrap();
        let kept: Vec<&str> = kept.iter().filter_map(Block::as_text).collect();
        assert!(kept[0].starts_with("line 0\n") && kept[0].ends_with('\n'), "{kept:?}");
        assert!(kept[2].starts_with("line 9") && kept[2].ends_with("line 999\n"), "{kept:?}");
        let n_shown = kept[0].lines().count() + kept[2].lines().count();
        assert!(kept[1].contains(&format!("({} lines)", 1000 - n_shown)), "{kept:?}");
    }

    proptest! {
        #[test]
        fn a_limited_result_is_within_the_limit_and_begins_and_ends_like_the_whole(
            texts in proptest::collection::vec("[a-zé\n]{0,400}", 0..5), image_at in 0_usize..5, limit in 300_usize..900,
        ) {
            let mut content: Vec<Block> = texts.iter().map(|text| Block::text(text.as_str())).collect();
            let image = Block::Image(Image { data: "AAAA".into(), mime_type: "image/png".into() });
            content.insert(image_at.min(content.len()), image.clone());
            let whole: String = texts.concat();
            match limited(&content, limit) {
                None => prop_assert!(whole.chars().count() <= limit),
                Some(kept) => {
                    let shown: Vec<&str> = kept.iter().filter_map(Block::as_text).collect();
                    prop_assert!(shown.iter().map(|text| text.chars().count()).sum::<usize>() <= limit);
                    prop_assert_eq!(kept.iter().filter(|block| **block == image).count(), 1);
                    let at = shown.iter().position(|text| text.starts_with("[…")).unwrap();
                    let (head, tail) = (shown[..at].concat(), shown[at + 1..].concat());
                    prop_assert!(whole.starts_with(&head) && whole.ends_with(&tail));
                    let cut = whole.chars().count() - head.chars().count() - tail.chars().count();
                    prop_assert!(shown[at].contains(&format!(" {cut} characters ")), "{}", shown[at]);
                }
            }
        }
    }
}
