//! Ids as types, so that a model id cannot be used as a provider id.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Declares a cheap-to-clone string newtype.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id from a text.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }

            /// Returns the text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(Self::from)
            }
        }
    };
}

id_type! {
    /// Provider name, e.g. `anthropic`, `openrouter`.
    ProviderId
}
id_type! {
    /// Model name as its provider spells it, e.g. `claude-sonnet-4-5`.
    ModelId
}
id_type! {
    /// Wire format name, e.g. `anthropic-messages`.
    ApiId
}
id_type! {
    /// Id of one tool call, chosen by the provider and unique only within its conversation.
    ToolCallId
}

impl ApiId {
    /// Anthropic's Messages format.
    pub const ANTHROPIC_MESSAGES: &'static str = "anthropic-messages";
    /// Amazon Bedrock, Converse.
    pub const BEDROCK_CONVERSE_STREAM: &'static str = "bedrock-converse-stream";
    /// OpenAI's Chat Completions format and its many variants.
    pub const OPENAI_COMPLETIONS: &'static str = "openai-completions";
    /// OpenAI's Responses format.
    pub const OPENAI_RESPONSES: &'static str = "openai-responses";
    /// OpenAI's Responses format at Azure.
    pub const AZURE_RESPONSES: &'static str = "azure-openai-responses";
    /// OpenAI's Responses format for ChatGPT subscriptions.
    pub const CODEX_RESPONSES: &'static str = "openai-codex-responses";
    /// Google's Generative Language format.
    pub const GOOGLE_GENERATIVE_AI: &'static str = "google-generative-ai";
    /// Google's Generative Language format on Google Cloud.
    pub const GOOGLE_VERTEX: &'static str = "google-vertex";
    /// Google's format in the envelope of Cloud Code Assist.
    pub const CLOUD_CODE_ASSIST: &'static str = "google-gemini-cli";
    /// Mistral's chat format.
    pub const MISTRAL_CONVERSATIONS: &'static str = "mistral-conversations";
}
