//! Reply directives: growing text, blocks and the whole text agree about them.
//!
//! Options: the cuts.

use pinch_embed::replies::directives::{Accumulator, ChunkKind, Parsed, parse};
use pinch_embed::replies::partial::PartialText;
use pinch_embed::replies::piece::Growth;

use crate::input::{ALL_CUTS, options, text};

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([cuts], content) = options(data);
    let content = text(content);
    let whole = parse(&content, Some("current"));
    check_parsed(&whole, &content);
    // A line that turns out to name media is taken back when the text grows again.
    let content = if content.contains("MEDIA:") { format!("{content}\nend.") } else { content.into_owned() };
    let whole = parse(&content, Some("current"));
    let [at_once, single, random] = ALL_CUTS.map(|cut| grown(&cut(cuts).text(&content)));
    assert_eq!(at_once, single, "single characters give another text");
    assert_eq!(at_once, random, "random chunks give another text");
    if !whole.is_silent {
        assert_eq!(lines(&at_once.0), lines(&whole.text), "a growing text ends as another one");
    }
    assert_eq!(at_once.1, whole.media_urls);
    let blocks = accumulated(&ALL_CUTS[2](cuts).text(&content));
    for block in &blocks {
        assert!(block.is_renderable());
        check_parsed(block, &content);
    }
}

/// If nothing was removed, blank lines keep their white space in one form and become empty in the other.
fn lines(text: &str) -> Vec<&str> {
    text.trim().split('\n').map(|line| if line.trim().is_empty() { "" } else { line }).collect()
}

/// Returns the text and the media of a growing answer, by what it reports.
fn grown(chunks: &[&str]) -> (String, Vec<String>) {
    let (mut partial, mut text, mut media) = (PartialText::default(), String::new(), Vec::new());
    let mut apply = |growth: Option<Growth>| {
        if let Some(growth) = growth {
            text.truncate(text.floor_char_boundary(growth.at));
            text.extend([growth.restored, growth.delta]);
            media.extend(growth.media_urls);
        }
    };
    chunks.iter().for_each(|chunk| apply(partial.push(chunk)));
    apply(partial.settle());
    (text, media)
}

/// Returns the blocks of an answer.
fn accumulated(chunks: &[&str]) -> Vec<Parsed> {
    let mut accumulator = Accumulator::default();
    let mut blocks: Vec<Parsed> =
        chunks.iter().filter_map(|chunk| accumulator.consume(chunk, ChunkKind::Partial)).collect();
    blocks.extend(accumulator.consume("", ChunkKind::Final));
    blocks
}

fn check_parsed(parsed: &Parsed, content: &str) {
    let mut rest = content.chars();
    assert!(
        parsed.text.chars().all(|c| c.is_whitespace() || rest.any(|other| other == c)),
        "a text is not in the input"
    );
    for url in &parsed.media_urls {
        // Tags are removed first, also from the middle of a path, where a space is left.
        let mut rest = content.chars();
        let is_kept = content.contains("[[") && url.chars().all(|c| c == ' ' || rest.any(|other| other == c));
        assert!(!url.trim().is_empty() && (is_kept || content.contains(url.as_str())), "{url:?} is not in the input");
        assert!(!url.contains("..") || url.contains("://"), "{url:?} leaves its directory");
    }
    if let Some(id) = &parsed.reply_to_id {
        assert!(id == "current" || content.contains(id.as_str()), "{id:?} is not in the input");
        assert!(parsed.reply_to_tag || parsed.reply_to_current);
    }
    if parsed.is_silent {
        assert!(parsed.text.is_empty());
    }
}
