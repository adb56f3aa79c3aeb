//! Tool results, for formats that need text in every result.

use crate::message::block::{Image, join_text};
use crate::message::{Block, ToolResult};

/// Text of a result that consists of images.
pub(crate) const SEE_IMAGE: &str = "(see attached image)";
/// Text of an empty result.
pub(crate) const NO_OUTPUT: &str = "(no tool output)";

/// Returns the text of a result, or a note that there is none: servers reject or misread results without text.
pub fn output_text(result: &ToolResult) -> String {
    let text = join_text(&result.content, "\n");
    match (text.trim().is_empty(), images(result).next().is_some()) {
        (false, _) => text,
        (true, true) => SEE_IMAGE.to_owned(),
        (true, false) => NO_OUTPUT.to_owned(),
    }
}

/// Returns the images of a result.
pub fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    result.content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}
