//! A model's quirks, as data.
//!
//! Wire formats consult this table and never the name of a provider or a host: quirks are detected once, when a model is loaded (see
//! [`detect`](super::detect)), and can be overridden in models.json (see [`compat`](super::compat)).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Rates;
use super::transcript::TranscriptRules;
use crate::schema::clean::SchemaDialect;

/// A model's quirks: detected from its host and id, overridable in models.json (`compat`).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Dialect {
    /// What requests may and must contain.
    pub wire: WireFlags,
    /// How earlier messages are encoded.
    pub history: HistoryRules,
    /// How tools are declared.
    pub schema: SchemaRules,
    /// Properties of replies.
    pub replies: ReplyTraits,
}

/// What requests may and must contain.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireFlags {
    /// The header for the key.
    pub key_header: KeyHeader,
    /// Whether GitHub's headers for initiator and images are required.
    pub copilot_headers: bool,
    /// A header that always contains the conversation's id.
    pub session_header: Option<&'static str>,
    /// Whether the Responses format has a value for no thinking.
    pub says_thinking_off: bool,
    /// Whether `store: false` is accepted.
    pub store: bool,
    /// Whether the thinking effort is sent as `reasoning_effort`.
    pub reasoning_effort: bool,
    /// Whether `stream_options.include_usage` is accepted.
    pub usage_in_streaming: bool,
    /// The field for the maximum length of the answer.
    pub max_tokens_field: MaxTokensField,
    /// How thinking is requested in OpenAI's format.
    pub thinking_format: ThinkingFormat,
    /// Name of the member for the thinking token budget.
    pub thinking_budget_field: Option<String>,
    /// Templates of `chat_template_kwargs`.
    pub chat_template_kwargs: Option<Arc<Map<String, Value>>>,
    /// Templates of `chat_template_args`.
    pub chat_template_args: Option<Arc<Map<String, Value>>>,
    /// Member `provider` of the body: OpenRouter's routing.
    pub open_router_routing: Option<Arc<Map<String, Value>>>,
    /// Member `providerOptions.gateway` of the body: Vercel's routing.
    pub vercel_routing: Option<Arc<Map<String, Value>>>,
    /// Whether `tool_stream: true` is required with tools.
    pub zai_tool_stream: bool,
    /// Member `priority` of the body: vLLM's scheduling.
    pub vllm_priority: Option<i64>,
    /// Whether Anthropic's cache markers are accepted in OpenAI's format.
    pub cache_markers: bool,
    /// Whether long cache retention is accepted.
    pub long_cache_retention: bool,
    /// Whether the server is known to accept settings for its prompt cache.
    pub cache_settings: bool,
    /// Whether agents cache prompts unless configured otherwise.
    pub caches_by_default: bool,
    /// Whether the server loads the model with the context window that an agent names in `options.num_ctx`.
    pub num_ctx: bool,
    /// When the conversation's id is sent as a cache key.
    pub prompt_cache_key: PromptCacheKey,
    /// Headers that keep a conversation on one machine.
    pub affinity: Affinity,
    /// Whether a temperature is accepted.
    pub temperature: bool,
    /// How thinking is requested in Google's format.
    pub google_thinking: GoogleThinking,
    /// Whether thinking is requested with `prompt_mode` in Mistral's format, even if levels are mapped to words.
    pub prompt_mode: bool,
    /// Whether the model decides how much to think (`thinking.type: adaptive`) and takes an effort instead of a budget.
    pub adaptive_thinking: bool,
    /// Whether `eager_input_streaming` is accepted on tools.
    pub eager_tool_input: bool,
    /// Whether a cache marker is accepted on tools.
    pub cache_control_on_tools: bool,
    /// Models that the provider may answer with instead, with their prices.
    pub fallbacks: Arc<[FallbackModel]>,
    /// Whether a limit of the answer is accepted in the Responses format.
    pub max_output_tokens: bool,
    /// Whether `prompt_cache_options` replaces `prompt_cache_retention`: OpenAI's models since GPT-5.6.
    pub prompt_cache_options: bool,
    /// Whether `prompt_cache_options.mode` is accepted, which disables caching.
    pub explicit_cache_mode: bool,
    /// Whether the effort may change within the conversation.
    pub mid_convo_effort: bool,
    /// Whether system messages are accepted within the conversation.
    pub mid_convo_system: bool,
    /// Whether tools may be added and removed within the conversation.
    pub mid_convo_tools: bool,
    /// Whether tools may be added, but not removed, within the conversation.
    pub mid_convo_tool_additions: bool,
    /// Whether tools are declared by items of the conversation (Responses; requires prompt changes within it).
    pub additional_tools: bool,
    /// Whether tools added later are results of a client-side search (Responses; requires prompt changes within it).
    pub tool_search: bool,
}

impl Default for WireFlags {
    fn default() -> Self {
        Self {
            key_header: KeyHeader::Usual,
            copilot_headers: false,
            session_header: None,
            says_thinking_off: true,
            store: true,
            reasoning_effort: true,
            usage_in_streaming: true,
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            thinking_format: ThinkingFormat::OpenAi,
            thinking_budget_field: None,
            chat_template_kwargs: None,
            chat_template_args: None,
            open_router_routing: None,
            vercel_routing: None,
            zai_tool_stream: false,
            vllm_priority: None,
            cache_markers: false,
            long_cache_retention: true,
            cache_settings: true,
            caches_by_default: true,
            num_ctx: false,
            prompt_cache_key: PromptCacheKey::Auto,
            affinity: Affinity::default(),
            temperature: true,
            google_thinking: GoogleThinking::default(),
            prompt_mode: false,
            adaptive_thinking: false,
            eager_tool_input: true,
            cache_control_on_tools: true,
            fallbacks: Arc::default(),
            max_output_tokens: true,
            prompt_cache_options: false,
            explicit_cache_mode: false,
            mid_convo_effort: false,
            mid_convo_system: false,
            mid_convo_tools: false,
            mid_convo_tool_additions: false,
            additional_tools: false,
            tool_search: false,
        }
    }
}

impl WireFlags {
    /// Returns whether a configured cache retention is for this server.
    pub fn takes_cache_retention(&self) -> bool {
        self.cache_settings || self.cache_markers || self.prompt_cache_key == PromptCacheKey::Enabled
    }
}

/// The header for the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHeader {
    /// The usual header of the wire format.
    #[default]
    Usual,
    /// `authorization`, as a bearer token, whatever the wire format.
    Bearer,
    /// `cf-aig-authorization`, as a bearer token: `authorization` belongs to the server behind the gateway.
    CloudflareGateway,
}

/// How earlier messages are encoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryRules {
    /// Whether the prompt of a thinking model has the role `developer`.
    pub developer_role: bool,
    /// Whether tool results contain the tool's name.
    pub tool_result_name: bool,
    /// Whether a user message must not follow a tool result, so that an assistant message is inserted.
    pub assistant_after_tool_result: bool,
    /// Whether thinking is replayed as text.
    pub thinking_as_text: bool,
    /// Whether every assistant message of a thinking model has `reasoning_content`, even an empty one.
    pub reasoning_content: bool,
    /// Whether an assistant message without text has the content `""` instead of `null`.
    pub non_null_content: bool,
    /// Whether thinking blocks without a signature are replayed as thinking.
    pub allow_empty_signature: bool,
    /// Whether a request without tools needs an empty tool list if its history has calls.
    pub tools_with_tool_history: bool,
    /// Whether calls and results contain the call's id in Google's format.
    pub google_call_ids: bool,
    /// Whether images of a tool result are part of it in Google's format instead of following it.
    pub google_images_in_results: bool,
    /// Maximum length of a call id in OpenAI's chat format; 0 means unlimited.
    pub max_call_id: usize,
    /// Whether calls have two ids in the Responses format: one of the call and one of its item.
    pub two_call_ids: bool,
    /// Requirements for the stored history of an agent.
    pub transcript: TranscriptRules,
}

impl Default for HistoryRules {
    fn default() -> Self {
        Self {
            developer_role: true,
            tool_result_name: false,
            assistant_after_tool_result: false,
            thinking_as_text: false,
            reasoning_content: false,
            non_null_content: false,
            allow_empty_signature: false,
            tools_with_tool_history: false,
            google_call_ids: false,
            google_images_in_results: true,
            max_call_id: 0,
            two_call_ids: false,
            transcript: TranscriptRules::default(),
        }
    }
}

/// How tools are declared.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SchemaRules {
    /// Whether tools can be held to their schema (`strict`).
    pub strict: bool,
    /// Whether tools can be held to a grammar.
    pub grammar_tools: bool,
    /// The accepted JSON Schema keywords.
    pub family: SchemaDialect,
    /// Whether limits whose keywords are not accepted are told in descriptions.
    pub hints: bool,
}

/// Properties of replies.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplyTraits {
    /// Whether replies contain a finish reason. If not, it is inferred at the end of the stream.
    pub finish_reason: bool,
    /// Whether replies contain their cost.
    pub billed_cost: bool,
    /// Whether an agent asks for its answer inside `<final>` tags, because the model writes its reasoning as text.
    pub final_tags: bool,
    /// Whether texts in the arguments of tool calls may contain HTML entities instead of characters.
    pub html_entities: bool,
}

impl Default for ReplyTraits {
    fn default() -> Self {
        Self { finish_reason: true, billed_cost: false, final_tags: false, html_entities: false }
    }
}

/// The member for the maximum length of the answer in OpenAI's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// Returns the member's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// How thinking is requested in OpenAI's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingFormat {
    /// `reasoning_effort`
    OpenAi,
    /// `reasoning: {effort}`
    OpenRouter,
    /// `thinking: {type}` and `reasoning_effort`
    DeepSeek,
    /// `thinking: {type, clear_thinking}`
    Zai,
    /// `enable_thinking`
    Qwen,
    /// `chat_template_kwargs: {enable_thinking, preserve_thinking}`
    QwenChatTemplate,
    /// `reasoning: {enabled}` and `reasoning_effort`
    Together,
    /// `chat_template_args: {enable_thinking}` and `reasoning_effort`
    Baseten,
    /// `chat_template_kwargs` or `chat_template_args` from templates
    ChatTemplate,
    /// `thinking: "high"`
    StringThinking,
    /// `reasoning: {effort}`, only for mapped levels
    AntLing,
}

impl ThinkingFormat {
    const NAMES: [(&'static str, Self); 11] = [
        ("openai", Self::OpenAi),
        ("openrouter", Self::OpenRouter),
        ("deepseek", Self::DeepSeek),
        ("zai", Self::Zai),
        ("qwen", Self::Qwen),
        ("qwen-chat-template", Self::QwenChatTemplate),
        ("together", Self::Together),
        ("baseten", Self::Baseten),
        ("chat-template", Self::ChatTemplate),
        ("string-thinking", Self::StringThinking),
        ("ant-ling", Self::AntLing),
    ];

    /// Parses the name used in models.json.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

/// How thinking is requested in Google's format, if the model's record does not map its levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoogleThinking {
    /// By level: low and high.
    LowHigh,
    /// By level: minimal, low, medium and high.
    Four,
    /// By level: minimal and high; can be turned off.
    MinimalHigh,
    /// By token budget: for minimal, low, medium and high.
    Budgets([u64; 4]),
    /// By token budget: chosen by the model.
    #[default]
    Dynamic,
}

/// When the conversation's id is sent as a cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCacheKey {
    /// Sent to OpenAI itself, and to others if long retention is requested.
    #[default]
    Auto,
    /// Always.
    Enabled,
    /// Never.
    Disabled,
}

/// Headers that keep a conversation on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Affinity {
    /// Whether to send them.
    pub send: bool,
    /// Which ones to send.
    pub format: AffinityFormat,
}

/// The headers that identify a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AffinityFormat {
    /// `session_id`, `x-client-request-id` and `x-session-affinity`; in the Responses format `session-id` and `x-client-request-id`.
    #[default]
    OpenAi,
    /// Like [`Self::OpenAi`], without the first header.
    OpenAiNoSession,
    /// `x-session-id`.
    OpenRouter,
}

/// A model that the provider may answer with instead of the requested one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FallbackModel {
    /// Its id.
    pub model: String,
    /// Its prices.
    pub rates: Rates,
}
