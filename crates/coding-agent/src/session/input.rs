//! Input to a session.

use pinch_llm::message::{Block, Content, Image, Provenance, UserMessage};
use pinch_stdx::cancel::Cancel;

use crate::extension::InputSource;
use crate::resources::Commands;

/// A prompt from the user.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The text. `/name arguments` runs an extension's command, or is expanded to the prompt template of that name, or, as `/skill:name`,
    /// to the skill.
    pub text: String,
    /// Images after the text.
    pub images: Vec<Image>,
    /// Whether to send the text unchanged, without running commands or expanding templates.
    pub verbatim: bool,
    /// Origin of the prompt.
    pub source: InputSource,
    /// Who sent it in the user's name, if not the user; stored with the message.
    pub provenance: Option<Provenance>,
    /// Cancels the whole prompt with its retries and compactions.
    pub cancel: Cancel,
}

impl Prompt {
    /// Creates a prompt from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Expands a skill or template in a text. If a skill cannot be read, that is reported and the text is returned unchanged.
pub(super) fn expanded(commands: &Commands, text: &str) -> String {
    let expanded = commands.expand(text);
    if let Some(problem) = &expanded.problem {
        tracing::warn!(path = %problem.path.display(), why = problem.message, "could not expand a skill");
    }
    expanded.text.into_owned()
}

/// Creates a user message with the text, then the images.
pub(super) fn user_message(text: String, images: Vec<Image>, now: i64) -> UserMessage {
    let text = (!text.is_empty() || images.is_empty()).then(|| Block::text(text));
    let content = Content::Blocks(text.into_iter().chain(images.into_iter().map(Block::Image)).collect());
    UserMessage::new(content, now)
}
