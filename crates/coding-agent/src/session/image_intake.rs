//! Adapting images to the model's limits when they enter the conversation, from any source.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pinch_agent_core::hooks::ToolPatch;
use pinch_agent_core::tool::ToolOutput;
use pinch_llm::message::{Block, Content, Message};
use pinch_llm::model::ImageLimits;

use super::control::SessionControl;
use crate::entry::CustomMessage;
use crate::extension::Draft;
use crate::images::{Admitted, RejectedImage};
use crate::session_log::roles;

impl SessionControl {
    /// Returns a message with its images adapted, or `None` if it is unchanged or the owner handles images.
    pub(super) async fn admitted(&self, message: &Message) -> Option<Arc<Message>> {
        let content = match message {
            Message::User(user) => Cow::Borrowed(&user.content),
            Message::ToolResult(result) => {
                return Some(Arc::new(with(message, self.admitted_blocks(&result.content).await?)));
            }
            Message::Other(other) if other.role() == roles::CUSTOM => Cow::Owned(roles::custom_content(other)),
            Message::Assistant(_) | Message::System(_) | Message::Other(_) => return None,
        };
        match &*content {
            Content::Text(_) => None,
            Content::Blocks(blocks) => Some(Arc::new(with(message, self.admitted_blocks(blocks).await?))),
        }
    }

    /// Returns a message with its images adapted as the session's images are, for messages that are appended to its log directly.
    pub async fn with_admitted_images(&self, message: Arc<Message>) -> Arc<Message> {
        self.admitted(&message).await.unwrap_or(message)
    }

    /// Returns the changes to a call's result that adapt its images.
    pub(super) async fn admitted_result(&self, output: &ToolOutput) -> Option<ToolPatch> {
        let content = self.admitted_blocks(&output.content).await?;
        let structured = output.structured.clone();
        Some(ToolPatch { content: Some(content), structured, ..ToolPatch::default() })
    }

    /// Adapts the images in an extension's entry.
    pub(super) async fn admitted_draft(&self, draft: Draft) -> Draft {
        match draft {
            Draft::Message(message) => {
                let content = self.admitted_content(message.content).await;
                Draft::Message(CustomMessage { content, ..message })
            }
            Draft::Edit { target, replacement: Some(content) } => {
                Draft::Edit { target, replacement: Some(self.admitted_content(content).await) }
            }
            other => other,
        }
    }

    async fn admitted_content(&self, content: Content) -> Content {
        match content {
            Content::Blocks(blocks) => Content::Blocks(self.admitted_blocks(&blocks).await.unwrap_or(blocks)),
            text @ Content::Text(_) => text,
        }
    }

    /// Prepares an image of a [sniffed](crate::images::sniff) type for a prompt, according to the current model's limits. It is not decoded
    /// again when the prompt is sent.
    ///
    /// # Errors
    /// [`RejectedImage`]; add its note to the prompt's text.
    pub async fn admit_image(&self, content: Bytes, mime_type: &'static str) -> Result<Admitted, RejectedImage> {
        self.images().admit(content, mime_type, &self.image_limits()).await
    }

    async fn admitted_blocks(&self, blocks: &[Block]) -> Option<Vec<Block>> {
        self.images().admit_blocks(blocks, &self.image_limits()).await
    }

    /// Returns the current model's limits.
    fn image_limits(&self) -> ImageLimits {
        self.peek(|state| state.now.model.image_limits())
    }
}

fn with(message: &Message, blocks: Vec<Block>) -> Message {
    roles::with_content(message, &Content::Blocks(blocks))
}
