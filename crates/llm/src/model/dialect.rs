//! Everything peculiar about a model, as data.
//!
//! Wire formats ask this table and never the name of a provider or a host: what a server wants is found out once, when a model is read (see
//! [`detect`](super::detect)), and can be overridden in models.json (see [`compat`](super::compat)).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Rates;
use super::transcript::TranscriptRules;
use crate::schema::clean::SchemaDialect;

/// The peculiarities of one model: detected from its host and id, overridable in models.json (`compat`).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Dialect {
    /// What a request may and must contain.
    pub wire: WireFlags,
    /// How earlier messages are written.
    pub history: HistoryRules,
    /// How tools are declared.
    pub schema: SchemaRules,
    /// What replies look like.
    pub replies: ReplyTraits,
}

/// What a request may and must contain.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireFlags {
    /// Which header holds the key.
    pub key_header: KeyHeader,
    /// Wants to know who speaks and whether there are images, in GitHub's headers.
    pub copilot_headers: bool,
    /// The header that always names the conversation.
    pub session_header: Option<&'static str>,
    /// Has a word for not thinking in the Responses format.
    pub says_thinking_off: bool,
    /// Takes `store: false`.
    pub store: bool,
    /// Takes the effort of thinking as `reasoning_effort`.
    pub reasoning_effort: bool,
    /// Takes `stream_options.include_usage`.
    pub usage_in_streaming: bool,
    /// The field that limits the length of the answer.
    pub max_tokens_field: MaxTokensField,
    /// How thinking is requested in OpenAI's format.
    pub thinking_format: ThinkingFormat,
    /// Name of the member that holds a budget of thinking tokens.
    pub thinking_budget_field: Option<String>,
    /// Templates of `chat_template_kwargs`.
    pub chat_template_kwargs: Option<Arc<Map<String, Value>>>,
    /// Templates of `chat_template_args`.
    pub chat_template_args: Option<Arc<Map<String, Value>>>,
    /// Member `provider` of the body: OpenRouter's routing.
    pub open_router_routing: Option<Arc<Map<String, Value>>>,
    /// Member `providerOptions.gateway` of the body: Vercel's routing.
    pub vercel_routing: Option<Arc<Map<String, Value>>>,
    /// Wants `tool_stream: true` with tools.
    pub zai_tool_stream: bool,
    /// Member `priority` of the body: vLLM's scheduling.
    pub vllm_priority: Option<i64>,
    /// Takes cache markers as Anthropic does, in OpenAI's format.
    pub cache_markers: bool,
    /// Takes the long kind of cache retention.
    pub long_cache_retention: bool,
    /// When the conversation's name is sent as a cache key.
    pub prompt_cache_key: PromptCacheKey,
    /// Headers that keep a conversation on one machine.
    pub affinity: Affinity,
    /// Takes a temperature.
    pub temperature: bool,
    /// How thinking is requested in Google's format.
    pub google_thinking: GoogleThinking,
    /// Asks for thinking with `prompt_mode` in Mistral's format, even where levels have words.
    pub prompt_mode: bool,
    /// Thinks as it sees fit (`thinking.type: adaptive`) and takes an effort instead of a budget.
    pub adaptive_thinking: bool,
    /// Takes `eager_input_streaming` on tools.
    pub eager_tool_input: bool,
    /// Takes a cache marker on tools.
    pub cache_control_on_tools: bool,
    /// Models the provider may answer with instead, with their prices.
    pub fallbacks: Arc<[FallbackModel]>,
    /// Takes a limit of the answer in the Responses format.
    pub max_output_tokens: bool,
    /// Takes `prompt_cache_options` in place of `prompt_cache_retention`: OpenAI's models since GPT-5.6.
    pub prompt_cache_options: bool,
    /// Takes `prompt_cache_options.mode`, which turns caching off.
    pub explicit_cache_mode: bool,
    /// Takes an effort that changes within the conversation.
    pub mid_convo_effort: bool,
    /// Takes system messages within the conversation.
    pub mid_convo_system: bool,
    /// Takes additions and removals of tools within the conversation.
    pub mid_convo_tools: bool,
    /// Takes additions of tools within the conversation, but no removals.
    pub mid_convo_tool_additions: bool,
    /// Tools are declared by items of the conversation (Responses; needs changes of the prompt within it).
    pub additional_tools: bool,
    /// Tools that are added later come as results of a search that the client did (Responses; needs changes of the prompt within it).
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

/// Which header holds the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyHeader {
    /// The one of the wire format.
    #[default]
    Usual,
    /// `authorization`, as a bearer token, whatever the wire format.
    Bearer,
    /// `cf-aig-authorization`, as a bearer token: `authorization` belongs to the server behind the gateway.
    CloudflareGateway,
}

/// How earlier messages are written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryRules {
    /// The prompt of a thinking model has the role `developer`.
    pub developer_role: bool,
    /// Tool results carry the tool's name.
    pub tool_result_name: bool,
    /// A user message may not follow a tool result: an assistant message is put between.
    pub assistant_after_tool_result: bool,
    /// Thinking is replayed as text.
    pub thinking_as_text: bool,
    /// Every assistant message of a thinking model has `reasoning_content`, if only an empty one.
    pub reasoning_content: bool,
    /// An assistant message without text has the content `""` instead of `null`.
    pub non_null_content: bool,
    /// Thinking blocks without a signature are replayed as thinking.
    pub allow_empty_signature: bool,
    /// A request without tools whose history has calls needs an empty list of tools.
    pub tools_with_tool_history: bool,
    /// Calls and results carry the call's id in Google's format.
    pub google_call_ids: bool,
    /// In Google's format, images of a tool's result are part of it instead of following it.
    pub google_images_in_results: bool,
    /// Characters the id of a call may have in OpenAI's chat format; 0 = any number.
    pub max_call_id: usize,
    /// Calls have two ids in the Responses format: one of the call and one of its item.
    pub two_call_ids: bool,
    /// What the stored history of an agent has to look like.
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
    /// Holds tools to their schema (`strict`).
    pub strict: bool,
    /// Holds tools to a grammar.
    pub grammar_tools: bool,
    /// Which keywords it takes.
    pub family: SchemaDialect,
}

/// What replies look like.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplyTraits {
    /// Says why it stopped. Where not, the reason is inferred at the end of the stream.
    pub finish_reason: bool,
    /// Says what it cost.
    pub billed_cost: bool,
}

impl Default for ReplyTraits {
    fn default() -> Self {
        Self { finish_reason: true, billed_cost: false }
    }
}

/// The member for the limit of the answer in OpenAI's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The member's name.
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

    /// Reads the name used in models.json.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

/// How thinking is requested in Google's format, where the model's record does not spell its levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoogleThinking {
    /// By level: low and high.
    LowHigh,
    /// By level: minimal, low, medium and high.
    Four,
    /// By level: minimal and high; can be turned off.
    MinimalHigh,
    /// By tokens: for minimal, low, medium and high.
    Budgets([u64; 4]),
    /// By tokens: as many as the model sees fit.
    #[default]
    Dynamic,
}

/// When the conversation's name is sent as a cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCacheKey {
    /// To OpenAI itself, and to others when long retention is requested.
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
    /// Whether they are sent.
    pub send: bool,
    /// Which ones.
    pub format: AffinityFormat,
}

/// Which headers name a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AffinityFormat {
    /// `session_id`, `x-client-request-id` and `x-session-affinity`; in the Responses format `session-id` and `x-client-request-id`.
    #[default]
    OpenAi,
    /// The same without the first.
    OpenAiNoSession,
    /// `x-session-id`.
    OpenRouter,
}

/// A model the provider may answer with instead of the one that was asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FallbackModel {
    /// Its id.
    pub model: String,
    /// Its prices.
    pub rates: Rates,
}
