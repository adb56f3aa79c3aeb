//! Input to a session.

use pinch_llm::message::{Block, Content, Image, Message, UserMessage};
use pinch_stdx::cancel::Cancel;

use crate::extension::InputSource;
use crate::resources::Commands;

/// A prompt of the user.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The text. `/name arguments` runs a command of an extension, or is replaced by what the prompt template or, as `/skill:name`, the skill of
    /// that name says.
    pub text: String,
    /// Images behind the text.
    pub images: Vec<Image>,
    /// Send the text as it is: do not run commands and do not expand templates.
    pub verbatim: bool,
    /// Where it comes from.
    pub source: InputSource,
    /// Stops the whole prompt with its retries and compactions.
    pub cancel: Cancel,
}

impl Prompt {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A text with the skill or the template that it names put in. A skill that cannot be read is reported, and the text stays.
pub(super) fn expanded(commands: &Commands, text: &str) -> String {
    let expanded = commands.expand(text);
    if let Some(problem) = &expanded.problem {
        tracing::warn!(path = %problem.path.display(), why = problem.message, "a skill is not expanded");
    }
    expanded.text.into_owned()
}

/// A message of the user: the text, then the images.
pub(super) fn user_message(text: String, images: Vec<Image>, now: i64) -> Message {
    let text = (!text.is_empty() || images.is_empty()).then(|| Block::text(text));
    let content = Content::Blocks(text.into_iter().chain(images.into_iter().map(Block::Image)).collect());
    Message::User(UserMessage::new(content, now))
}
