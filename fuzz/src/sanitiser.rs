//! Text for people: cleaning clean text changes nothing, and nothing but scaffolding is removed.
//!
//! Options: whether the final tag is enforced.

use std::sync::Arc;

use pinch_embed::replies::scan::FinalTag;
use pinch_embed::replies::user_text::{sanitise, visible_text};
use pinch_embed::texts::TextTable;
use pinch_llm::message::Block;

use crate::input::{options, text};

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([enforced], content) = options(data);
    let content = text(content);
    let texts = TextTable::default();
    let once = sanitise(&content, &texts);
    assert_eq!(sanitise(&once, &texts), once, "cleaning clean text changes it");
    let final_tag = if enforced & 1 == 1 { FinalTag::Enforced } else { FinalTag::Optional };
    let block = Arc::new(Block::text(&*content));
    let visible = visible_text(std::slice::from_ref(&block), final_tag, &texts).into_owned();
    assert_eq!(sanitise(&visible, &texts), visible, "the visible text is not clean");
}
