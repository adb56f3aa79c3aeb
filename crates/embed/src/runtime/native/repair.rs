//! Mending a conversation between two attempts. The log only grows: what is mended is said by further entries.

use pinch_coding_agent::compaction::CompactionReason;
use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::session::{AgentSession, CompactRequest};
use pinch_llm::message::{Block, Content, Message, block};
use pinch_stdx::cancel::Cancel;

use crate::run::decide::Repaired;

/// Characters of one tool result that are never gone below, and never above.
const MIN_KEPT: usize = 2_000;
const MAX_KEPT: usize = 400_000;
/// A cut moves back to a line's end when that costs no more than a fifth.
const LINE_SHARE: f64 = 0.8;

/// Characters one tool result may have: three tenths of the window at four characters a token.
pub(super) fn per_result_limit(context_window: u64) -> usize {
    let window = usize::try_from(context_window).unwrap_or(usize::MAX);
    if window == 0 { MAX_KEPT } else { (window.saturating_mul(3) / 10).saturating_mul(4).clamp(MIN_KEPT, MAX_KEPT) }
}

/// Puts a summary in the place of what is old.
pub(super) async fn compact(session: &mut AgentSession, reason: CompactionReason, cancel: &Cancel) -> Repaired {
    if let Err(error) = session.omit_failed().await {
        return Repaired::NotCompacted { why: error.to_string() };
    }
    let request = CompactRequest { reason, focus: None, cancel: cancel.clone() };
    match session.compact(request, &|_| {}).await {
        Ok(_) => Repaired::Compacted,
        Err(error) => Repaired::NotCompacted { why: error.to_string() },
    }
}

/// Shortens tool results that are larger than one may be: by edits of the context, the entries stay as they are.
pub(super) async fn truncate_tool_results(session: &mut AgentSession) -> Repaired {
    let limit = per_result_limit(session.model().context_window);
    let context = session.log().context();
    let too_long: Vec<(EntryId, Vec<Block>)> = (context.messages.iter().zip(&context.entry_ids))
        .filter_map(|(message, id)| match &**message {
            Message::ToolResult(result) => shortened(&result.content, limit).map(|content| (id.clone(), content)),
            _ => None,
        })
        .collect();
    let mut count = 0;
    for (target_id, content) in too_long {
        let edit = EntryBody::ContextEdit { target_id, replacement: Some(Content::Blocks(content)) };
        if let Err(error) = session.log_mut().append(edit).await {
            tracing::error!(%error, "a tool result could not be shortened");
            break;
        }
        count += 1;
    }
    session.reload();
    if count == 0 { Repaired::NotTruncated } else { Repaired::Truncated { count } }
}

/// The content with its texts cut to their shares of the limit; `None` when it fits.
fn shortened(content: &[Block], limit: usize) -> Option<Vec<Block>> {
    let total = block::join_text(content, "").chars().count();
    if total <= limit {
        return None;
    }
    let cut = |block: &Block| match block {
        Block::Text(text) => {
            let n = text.text.chars().count();
            let share = (limit as f64 * n as f64 / total as f64) as usize;
            Block::text(head(&text.text, n, share.max(MIN_KEPT)))
        }
        other => other.clone(),
    };
    Some(content.iter().map(cut).collect())
}

fn head(text: &str, n: usize, limit: usize) -> String {
    if n <= limit {
        return text.to_owned();
    }
    let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
    let at_line = text[..end].rfind('\n').filter(|at| *at as f64 >= end as f64 * LINE_SHARE);
    let kept = &text[..at_line.unwrap_or(end)];
    format!(
        "{kept}\n\n[… {} more characters were cut: the result was too long for the model …]",
        n - kept.chars().count()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_to_their_share() {
        assert!(shortened(&[Block::text("short")], 10_000).is_none());
        let long = "line\n".repeat(10_000);
        let cut = shortened(&[Block::text(long.as_str()), Block::text("x")], 10_000).unwrap();
        let text = cut[0].as_text().unwrap();
        assert!(text.chars().count() < 10_200 && text.contains("more characters were cut"), "{}", text.len());
        assert_eq!(cut[1].as_text(), Some("x"));
    }

    #[test]
    fn limits_follow_the_window() {
        assert_eq!([0, 1_000, 200_000, 1_000_000].map(per_result_limit), [400_000, 2_000, 240_000, 400_000]);
    }
}
