//! Images are made to fit when they enter the conversation, whichever way they come.

use std::borrow::Cow;
use std::sync::Arc;

use pinch_agent_core::hooks::ToolPatch;
use pinch_agent_core::tool::ToolOutput;
use pinch_llm::message::{Block, Content, Message};

use super::control::SessionControl;
use crate::images;
use crate::session_log::roles;

impl SessionControl {
    /// A message with images as models take them; `None`: it is as it should be, or the owner looks after images.
    pub(super) async fn fitted(&self, message: &Message) -> Option<Arc<Message>> {
        let resize = self.fit_images()?;
        let content = match message {
            Message::User(user) => Cow::Borrowed(&user.content),
            Message::ToolResult(result) => {
                return Some(Arc::new(with(message, fitted_blocks(&result.content, resize).await?)));
            }
            Message::Other(other) if other.role() == roles::CUSTOM => Cow::Owned(roles::custom_content(other)),
            Message::Assistant(_) | Message::System(_) | Message::Other(_) => return None,
        };
        match &*content {
            Content::Text(_) => None,
            Content::Blocks(blocks) => Some(Arc::new(with(message, fitted_blocks(blocks, resize).await?))),
        }
    }

    /// What changes in the result of a call so that its images are as models take them.
    pub(super) async fn fitted_result(&self, output: &ToolOutput) -> Option<ToolPatch> {
        let content = fitted_blocks(&output.content, self.fit_images()?).await?;
        let structured = output.structured.clone();
        Some(ToolPatch { content: Some(content), structured, ..ToolPatch::default() })
    }
}

fn with(message: &Message, blocks: Vec<Block>) -> Message {
    roles::with_content(message, &Content::Blocks(blocks))
}

async fn fitted_blocks(blocks: &[Block], resize: bool) -> Option<Vec<Block>> {
    images::admit_blocks(blocks, resize).await
}
