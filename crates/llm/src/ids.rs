//! Ids as types, so that a model id cannot be used as a provider id.

use pinch_stdx::string_id;

string_id! {
    /// Provider name, e.g. `anthropic`, `openrouter`.
    ProviderId
}
string_id! {
    /// Model name as its provider spells it, e.g. `claude-sonnet-4-5`.
    ModelId
}
string_id! {
    /// Wire format name, e.g. `anthropic-messages`.
    ApiId
}
string_id! {
    /// Id of one tool call, chosen by the provider and unique only within its conversation.
    ToolCallId
}

string_id! {
    /// Id of a session: letters, digits, `-`, `_` and `.` in files of pinch and pi, any text in embedded runs. Providers receive it to keep
    /// a conversation's prompt in the same cache.
    SessionId
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
