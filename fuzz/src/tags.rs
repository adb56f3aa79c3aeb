//! Reasoning and final tags: what is visible does not depend on how the text arrives, and nothing but tags is removed.
//!
//! Options: whether the final tag is enforced; the cuts.

use pinch_embed::replies::piece::{Piece, Pieces};
use pinch_embed::replies::scan::{FinalTag, Scan, parts, visible};

use crate::input::{ALL_CUTS, options, text};

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([enforced, cuts], content) = options(data);
    let final_tag = if enforced & 1 == 1 { FinalTag::Enforced } else { FinalTag::Optional };
    let content = text(content);
    let [whole, single, random] = ALL_CUTS.map(|cut| scanned(&cut(cuts).text(&content), final_tag));
    assert_eq!(whole, single, "single characters give another text");
    assert_eq!(whole, random, "random chunks give another text");
    assert_eq!(whole, parts(&content, final_tag));
    assert_eq!(whole.0, visible(&content, final_tag));
    for part in [&whole.0, &whole.1] {
        let mut rest = content.chars();
        assert!(part.chars().all(|c| rest.any(|other| other == c)), "{part:?} is not in the input");
    }
    assert!(whole.0.len() + whole.1.len() <= content.len(), "a character is both visible and reasoning");
    if !content.contains('<') {
        assert_eq!(
            whole,
            if enforced & 1 == 1 { (String::new(), String::new()) } else { (content.into(), String::new()) }
        );
    }
}

/// Returns the visible text and the reasoning.
fn scanned(chunks: &[&str], final_tag: FinalTag) -> (String, String) {
    let (mut scan, mut out) = (Scan::new(final_tag), Pieces::new());
    chunks.iter().for_each(|chunk| scan.text(chunk, &mut out));
    scan.settle(&mut out);
    let (mut shown, mut thought) = (String::new(), String::new());
    for piece in out {
        match piece {
            Piece::Visible(text) => shown.push_str(&text),
            Piece::Thought(text) => thought.push_str(&text),
            _ => {}
        }
    }
    (shown, thought)
}
