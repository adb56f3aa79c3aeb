//! What a tool returned, for formats that want text from every tool.

use crate::message::block::{Image, join_text};
use crate::message::{Block, ToolResult};

/// The text of a result; where there is none, words that say so: servers refuse or misread results without text.
pub(crate) fn output_text(result: &ToolResult) -> String {
    let text = join_text(&result.content, "\n");
    match (text.trim().is_empty(), images(result).next().is_some()) {
        (false, _) => text,
        (true, true) => "(see attached image)".to_owned(),
        (true, false) => "(no tool output)".to_owned(),
    }
}

/// The images of a result.
pub(crate) fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}
