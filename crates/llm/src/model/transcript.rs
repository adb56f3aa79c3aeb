//! Requirements for the history of an agent before a model is called again.
//!
//! Sessions of agents live for months and move between models. These rules describe what a server rejects or misreads in such a history;
//! [`normalise::history`](crate::normalise::history) applies them. They are detected from wire format, provider and model, and
//! `compat.transcript` in models.json overrides them individually.

use serde_json::{Map, Value};

use crate::ids::ApiId;

/// A server's requirement for tool call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIdRule {
    /// Up to 40 letters and digits.
    Strict,
    /// Exactly nine letters and digits.
    Strict9,
}

impl CallIdRule {
    /// Returns the identifier used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Strict9 => "strict9",
        }
    }

    /// Parses the identifier.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Strict, Self::Strict9].into_iter().find(|rule| rule.as_str() == word)
    }
}

/// Requirements of one model for the history of an agent. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptRules {
    /// Remove blank texts and answers without content, in addition to broken images.
    pub clean_content: bool,
    /// The requirement for tool call ids; `None` accepts all of them.
    pub call_ids: Option<CallIdRule>,
    /// Drop results without a call, and move displaced ones after their call.
    pub pair_results: bool,
    /// Add a synthetic result to calls without one. Otherwise the wire format adds one when the request is encoded.
    pub synthetic_results: bool,
    /// Change no block, because the server verifies signatures over the exact sequence of blocks.
    pub keep_signatures: bool,
    /// Remove thought signatures that are not base64.
    pub base64_signatures: bool,
    /// Remove thinking without a valid signature, whatever follows it.
    pub signed_thinking: bool,
    /// Never replay thinking.
    pub drop_thinking: bool,
    /// Remove unsigned thinking, and thinking from before a compaction, because it is bound to the conversation it was signed in.
    pub bound_thinking: bool,
    /// Remove the thinking of earlier turns; that of the current turn stays.
    pub forget_thinking: bool,
    /// Keep reasoning items only together with the items they led to, because they refer to each other.
    pub reasoning_items: bool,
    /// Insert a user message before a history that starts with an answer.
    pub user_first: bool,
    /// Insert a user message also before a request that starts with an answer, which the server rejects; the history is not changed.
    pub opens_with_user: bool,
    /// Record a message that was inserted at the start of the conversation in the session.
    pub record_user_first: bool,
    /// Merge consecutive answers.
    pub merge_answers: bool,
    /// Merge consecutive user messages.
    pub merge_users: bool,
    /// Remove answers at the end of a conversation while the model thinks.
    pub no_prefill: bool,
}

const GOOGLE: &[&str] =
    &[ApiId::CLOUD_CODE_ASSIST, ApiId::GOOGLE_GENERATIVE_AI, ApiId::GOOGLE_VERTEX, "google-antigravity"];
const MISTRAL_MODELS: &[&str] = &["mistral", "mixtral", "codestral", "pixtral", "devstral", "ministral"];
/// Wire formats treated like OpenAI's own if no provider is named.
const OPENAI: &[&str] = &["openai", ApiId::OPENAI_COMPLETIONS, ApiId::OPENAI_RESPONSES, ApiId::CODEX_RESPONSES];

impl TranscriptRules {
    /// Returns the rules that follow from wire format, provider and model.
    pub fn detect(api: &str, provider: &str, id: &str) -> Self {
        let provider = provider.trim().to_lowercase();
        let id = id.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| id.contains(word));
        let routed = matches!(provider.as_str(), "openrouter" | "opencode" | "opencode-zen" | "kilocode");
        let google = GOOGLE.contains(&api);
        let bedrock = api == ApiId::BEDROCK_CONVERSE_STREAM || provider == "amazon-bedrock";
        let anthropic = api == ApiId::ANTHROPIC_MESSAGES || provider == "anthropic" || bedrock;
        let openai =
            matches!(provider.as_str(), "openai" | "openai-codex") || (provider.is_empty() && OPENAI.contains(&api));
        let mistral = api == ApiId::MISTRAL_CONVERSATIONS || provider == "mistral" || has(MISTRAL_MODELS);
        let minimax = matches!(provider.as_str(), "minimax" | "minimax-cn") || has(&["minimax"]);
        let routed_gemini = routed && has(&["gemini"]);
        let antigravity = (provider == "google-antigravity" || api == "google-antigravity") && has(&["claude"]);
        let completions = api == ApiId::OPENAI_COMPLETIONS;
        // Servers with OpenAI's format that are stricter about turns than OpenAI.
        let strict_turns =
            completions && !openai && !matches!(provider.as_str(), "openrouter" | "opencode" | "opencode-zen");
        let responses = matches!(api, ApiId::OPENAI_RESPONSES | ApiId::AZURE_RESPONSES | ApiId::CODEX_RESPONSES);
        Self {
            clean_content: !openai && (google || anthropic || mistral || routed_gemini),
            call_ids: match () {
                () if openai => None,
                () if mistral => Some(CallIdRule::Strict9),
                () if google || anthropic || minimax => Some(CallIdRule::Strict),
                () => None,
            },
            pair_results: true,
            synthetic_results: google || anthropic,
            keep_signatures: antigravity || anthropic,
            base64_signatures: google || routed_gemini,
            signed_thinking: antigravity,
            drop_thinking: provider == "github-copilot" && has(&["claude"]),
            bound_thinking: anthropic,
            forget_thinking: completions,
            reasoning_items: responses,
            user_first: google || strict_turns,
            opens_with_user: anthropic || mistral,
            record_user_first: google,
            merge_answers: google,
            // These models bind their cache to the messages as sent.
            merge_users: (anthropic || strict_turns || api == ApiId::MISTRAL_CONVERSATIONS)
                && !has(&["fable-5.1", "fable-5-1"]),
            no_prefill: anthropic || (routed && id.starts_with("anthropic/")),
        }
    }

    /// Applies the members of `compat.transcript`. Unknown members and those of a wrong type are ignored.
    pub(super) fn apply(&mut self, members: &Map<String, Value>) {
        for (name, value) in members {
            match (name.as_str(), value) {
                ("sanitizeMode", Value::String(mode)) => self.clean_content = mode == "full",
                ("toolCallIdMode", Value::String(mode)) => self.call_ids = CallIdRule::parse(mode),
                ("sanitizeToolCallIds", Value::Bool(false)) => self.call_ids = None,
                (name, Value::Bool(on)) => {
                    let Some(flag) = self.flag(name) else { continue };
                    *flag = *on;
                }
                _ => {}
            }
        }
    }

    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "repairToolUseResultPairing" => &mut self.pair_results,
            "allowSyntheticToolResults" => &mut self.synthetic_results,
            "preserveSignatures" => &mut self.keep_signatures,
            "sanitizeThoughtSignatures" => &mut self.base64_signatures,
            "normalizeAntigravityThinkingBlocks" => &mut self.signed_thinking,
            "dropThinkingBlocks" => &mut self.drop_thinking,
            "dropUnsignedThinking" => &mut self.bound_thinking,
            "dropEarlierThinking" => &mut self.forget_thinking,
            "applyGoogleTurnOrdering" => &mut self.user_first,
            "validateGeminiTurns" => &mut self.merge_answers,
            "validateAnthropicTurns" => &mut self.merge_users,
            "stripTrailingPrefill" => &mut self.no_prefill,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_that_speak_openais_format_get_stricter_turns_than_openai() {
        let of = |provider: &str| TranscriptRules::detect(ApiId::OPENAI_COMPLETIONS, provider, "m");
        assert!(of("local").merge_users && of("local").user_first && !of("local").record_user_first);
        assert!(!of("openai").merge_users && !of("").merge_users && !of(" OpenRouter ").merge_users);
    }

    #[test]
    fn members_are_overridden_individually() {
        let mut rules = TranscriptRules::detect(ApiId::ANTHROPIC_MESSAGES, "anthropic", "claude");
        assert_eq!(rules.call_ids, Some(CallIdRule::Strict));
        let members =
            json!({"toolCallIdMode": "strict9", "validateAnthropicTurns": false, "dropThinkingBlocks": 1, "x": true});
        rules.apply(members.as_object().unwrap());
        assert_eq!((rules.call_ids, rules.merge_users, rules.drop_thinking), (Some(CallIdRule::Strict9), false, false));
    }
}
