//! Limits on how much of a model's context a tool result takes.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolGateway, ToolOutput, ToolSpec};
use pinch_llm::message::Block;

/// Maximum characters of a result by minimum context window in tokens, largest first.
const LIMITS: [(u64, usize); 3] = [(200_000, 64_000), (100_000, 32_000), (0, 16_000)];

/// Share of a long result's budget for its beginning; the rest is for its end.
const HEAD_SHARE: (usize, usize) = (3, 4);

/// Returns the maximum characters of a tool result for a model with this context window, in tokens. A window of 0 means unknown.
pub fn result_limit(context_window: u64) -> usize {
    LIMITS.iter().find(|(window, _)| context_window >= *window).map_or(0, |(_, limit)| *limit)
}

/// Share of the context window, in bytes per token, that one call of `read` may take, and bounds for it.
const READ_SHARE: (u64, u64) = (4, 10);
const READ_BYTES: (u64, u64) = (32 * 1024, 128 * 1024);
/// Bytes left for the notice at the end of a text that was cut.
const NOTICE_BYTES: usize = 256;

/// Returns the maximum bytes of text that one call of `read` returns, for a model with this context window in tokens (0: unknown): a tenth of
/// the window, as far as the result is not [limited](result_limit) again.
pub fn read_budget(context_window: u64) -> usize {
    let share = context_window.saturating_mul(READ_SHARE.0) / READ_SHARE.1;
    let share = usize::try_from(share.clamp(READ_BYTES.0, READ_BYTES.1)).unwrap_or(usize::MAX);
    share.min(result_limit(context_window) - NOTICE_BYTES)
}

/// Shortens a content to `limit` characters of text in total: keeps the beginning and the end, cut at nearby line breaks, with a note in
/// between. Images are kept. Returns `None` if it is short enough.
pub fn limited(content: &[Block], limit: usize) -> Option<Vec<Block>> {
    let texts = || content.iter().filter_map(Block::as_text);
    // The length in bytes is free to compute and never less than the number of characters.
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
    // Characters left, from the current block on.
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
        // The part of this block that belongs to the end.
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

/// Returns the first characters of a text, up to a line break if there is one in their last fifth.
fn beginning(text: &str, n: usize) -> &str {
    let end = text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    if end == text.len() {
        return text;
    }
    let at_line = text[..end].rfind('\n').filter(|at| *at >= end / 5 * 4);
    &text[..at_line.map_or(end, |at| at + 1)]
}

/// Returns the last `n` characters of a text, at most those after the position `from`, starting at a line if one starts in their first
/// fifth.
pub fn ending(text: &str, n: usize, from: usize) -> &str {
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

/// A tool with limited results.
struct LimitedTool {
    inner: Arc<dyn Tool>,
    limit: usize,
}

/// Limits a tool's results, failures included. Details are unchanged.
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

    fn gateway(&self) -> Option<&dyn ToolGateway> {
        self.inner.gateway()
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
    fn the_limit_depends_on_the_window() {
        let limits = [0, 8_000, 99_999, 100_000, 199_999, 200_000, 1_000_000].map(result_limit);
        assert_eq!(limits, [16_000, 16_000, 16_000, 32_000, 32_000, 64_000, 64_000]);
    }

    #[test]
    fn a_file_is_read_as_far_as_its_text_is_not_cut_again() {
        let budgets = [0, 100_000, 120_000, 200_000, 1_000_000].map(read_budget);
        assert_eq!(budgets, [15_744, 31_744, 31_744, 63_744, 63_744]);
    }

    #[test]
    fn a_long_result_keeps_whole_lines_of_its_beginning_and_end() {
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
        fn a_limited_result_fits_and_keeps_the_original_beginning_and_end(
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
