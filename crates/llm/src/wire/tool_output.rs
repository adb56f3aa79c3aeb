//! What a tool returned, for formats that want text from every tool.

use crate::message::block::{Image, join_text};
use crate::message::{Block, ToolResult};

/// Stands in for the text of a result that is an image.
pub(crate) const SEE_IMAGE: &str = "(see attached image)";
/// Stands in for the text of a result that has nothing.
pub(crate) const NO_OUTPUT: &str = "(no tool output)";

/// The text of a result; where there is none, words that say so: servers refuse or misread results without text.
pub(crate) fn output_text(result: &ToolResult) -> String {
    let text = join_text(&result.content, "\n");
    match (text.trim().is_empty(), images(result).next().is_some()) {
        (false, _) => text,
        (true, true) => SEE_IMAGE.to_owned(),
        (true, false) => NO_OUTPUT.to_owned(),
    }
}

/// The images of a result.
pub(crate) fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}
