//! Limits the length of tool results.

use pinch_llm::message::Block;
use pinch_tools::results::ending;

/// Minimum of the limit in characters; each text keeps at least as many.
const MIN_KEPT: usize = 2_000;
/// Maximum of the limit in characters.
const MAX_KEPT: usize = 400_000;
/// A cut moves back to the end of a line if that costs no more than a fifth.
const LINE_SHARE: f64 = 0.8;

/// Share of a shortened text for its end, in percent.
const TAIL_PERCENT: usize = 30;
/// Number of last characters that show whether the end is worth keeping.
const TELLING_CHARS: usize = 2_000;

/// Returns the maximum length of a tool result in characters: three tenths of the context window at four characters per token. A window of
/// 0 is unknown.
pub fn per_result_limit(context_window: u64) -> usize {
    let window = usize::try_from(context_window).unwrap_or(usize::MAX);
    if window == 0 { MAX_KEPT } else { (window.saturating_mul(3) / 10).saturating_mul(4).clamp(MIN_KEPT, MAX_KEPT) }
}

/// Returns the content with each text truncated to its share of the limit, in characters; `None` if it fits. Images are kept.
pub fn shortened(content: &[Block], limit: usize) -> Option<Vec<Block>> {
    let texts = || content.iter().filter_map(Block::as_text);
    // Most results are short, also in bytes, which are not counted one by one.
    if texts().map(str::len).sum::<usize>() <= limit {
        return None;
    }
    let total: usize = texts().map(|text| text.chars().count()).sum();
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

/// Returns the beginning of a text of `n` characters, and its end if that says how something ended, with a notice about the rest. The notice counts towards the limit, unless the limit
/// is the minimum.
fn head(text: &str, n: usize, limit: usize) -> String {
    if n <= limit {
        return text.to_owned();
    }
    let notice =
        |n_cut: usize| format!("\n\n[… {n_cut} more characters were cut: the result was too long for the model …]");
    let n_kept = limit.saturating_sub(notice(n).chars().count()).max(MIN_KEPT);
    // The end of a result often says how it ended.
    let tail = match is_telling(text) {
        true => ending(text, n_kept * TAIL_PERCENT / 100, 0),
        false => "",
    };
    let n_kept = n_kept - tail.chars().count();
    let end = text.char_indices().nth(n_kept).map_or(text.len(), |(at, _)| at);
    let at_line = text[..end].rfind('\n').filter(|at| *at as f64 >= end as f64 * LINE_SHARE);
    let kept = &text[..at_line.unwrap_or(end)];
    let notice = notice(n - kept.chars().count() - tail.chars().count());
    if tail.is_empty() { format!("{kept}{notice}") } else { format!("{kept}{notice}\n\n{tail}") }
}

/// Returns whether the end of a text says how something ended: an error, a summary, or the end of a JSON text.
fn is_telling(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "error",
        "exception",
        "failed",
        "failure",
        "fatal",
        "panic",
        "traceback",
        "warning",
        "exit code",
        "total",
        "summary",
        "result",
        "passed",
        "finished",
    ];
    let end = ending(text.trim_end(), TELLING_CHARS, 0).to_lowercase();
    end.ends_with(['}', ']']) || WORDS.iter().any(|word| end.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_truncated_to_their_share() {
        assert!(shortened(&[Block::text("short")], 10_000).is_none());
        let long = "line\n".repeat(10_000);
        let cut = shortened(&[Block::text(long.as_str()), Block::text("x")], 10_000).unwrap();
        let text = cut[0].as_text().unwrap();
        assert!(text.chars().count() <= 10_000 && text.contains("more characters were cut"), "{}", text.len());
        assert_eq!(cut[1].as_text(), Some("x"));
    }

    #[test]
    fn an_end_that_says_how_something_ended_is_kept() {
        let log = format!("{}error: could not compile\n", "line\n".repeat(10_000));
        let cut = shortened(&[Block::text(log.as_str())], 10_000).unwrap();
        let text = cut[0].as_text().unwrap();
        assert!(
            text.starts_with("line\n") && text.ends_with("line\nerror: could not compile\n"),
            "{}",
            &text[text.len() - 60..]
        );
        assert!(text.chars().count() <= 10_000 && text.contains("more characters were cut"), "{}", text.len());
    }

    #[test]
    fn limits_depend_on_the_window() {
        assert_eq!([0, 1_000, 200_000, 1_000_000].map(per_result_limit), [400_000, 2_000, 240_000, 400_000]);
    }
}
