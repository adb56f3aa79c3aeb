//! The `compat` object of models.json, with which users override a model's quirks.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Rates;
use super::dialect::{
    Affinity, AffinityFormat, Dialect, FallbackModel, MaxTokensField, PromptCacheKey, ThinkingFormat,
};
use crate::schema::clean::SchemaDialect;

/// Applies the members of a `compat` object on top of the detected quirks. Unknown members and members of a wrong type are ignored.
pub fn apply(dialect: &mut Dialect, compat: &Map<String, Value>) {
    for (name, value) in compat {
        if let Some(on) = value.as_bool() {
            apply_flag(dialect, name, on);
        } else {
            apply_value(dialect, name, value);
        }
    }
}

fn apply_flag(dialect: &mut Dialect, name: &str, on: bool) {
    let Dialect { wire, history, schema, replies } = dialect;
    let flag = match name {
        "supportsStore" => &mut wire.store,
        "supportsDeveloperRole" => &mut history.developer_role,
        "supportsReasoningEffort" => &mut wire.reasoning_effort,
        "supportsUsageInStreaming" => &mut wire.usage_in_streaming,
        "supportsFinishReason" => &mut replies.finish_reason,
        "requiresFinalTags" => &mut replies.final_tags,
        "requiresToolResultName" => &mut history.tool_result_name,
        "requiresAssistantAfterToolResult" => &mut history.assistant_after_tool_result,
        "requiresThinkingAsText" => &mut history.thinking_as_text,
        "requiresReasoningContentOnAssistantMessages" => &mut history.reasoning_content,
        "requiresNonNullAssistantContent" => &mut history.non_null_content,
        "requiresToolsWithToolHistory" => &mut history.tools_with_tool_history,
        "zaiToolStream" => &mut wire.zai_tool_stream,
        "supportsStrictMode" | "supportsStrictTools" => &mut schema.strict,
        "toolSchemaHints" => &mut schema.hints,
        "supportsOpenAIGrammarTools" => &mut schema.grammar_tools,
        "sendSessionAffinityHeaders" => &mut wire.affinity.send,
        "supportsLongCacheRetention" => &mut wire.long_cache_retention,
        "supportsEagerToolInputStreaming" => &mut wire.eager_tool_input,
        "forceAdaptiveThinking" => &mut wire.adaptive_thinking,
        "allowEmptySignature" => &mut history.allow_empty_signature,
        "supportsMaxOutputTokens" => &mut wire.max_output_tokens,
        "supportsExplicitPromptCacheMode" => &mut wire.explicit_cache_mode,
        "supportsTemperature" => &mut wire.temperature,
        "supportsCacheControlOnTools" => &mut wire.cache_control_on_tools,
        "supportsMidConvoEffort" => &mut wire.mid_convo_effort,
        "supportsMidConvoSystemMessages" => &mut wire.mid_convo_system,
        "supportsMidConvoToolChanges" => &mut wire.mid_convo_tools,
        "supportsAdditionalTools" => &mut wire.additional_tools,
        "supportsToolSearch" => &mut wire.tool_search,
        "supportsMidConvoToolAdditions" => &mut wire.mid_convo_tool_additions,
        "supportsPromptCacheKey" => {
            wire.prompt_cache_key = if on { PromptCacheKey::Enabled } else { PromptCacheKey::Disabled };
            return;
        }
        // The older way to omit one header.
        "sendSessionIdHeader" => {
            wire.affinity.format = if on { AffinityFormat::OpenAi } else { AffinityFormat::OpenAiNoSession };
            return;
        }
        // The older member, from when the field's name was fixed.
        "supportsThinkingTokenBudget" => {
            wire.thinking_budget_field = on.then(|| "thinking_token_budget".into());
            return;
        }
        _ => return,
    };
    *flag = on;
}

fn apply_value(dialect: &mut Dialect, name: &str, value: &Value) {
    let Dialect { wire, schema, history, .. } = dialect;
    let object = || value.as_object().filter(|map| !map.is_empty()).map(|map| Arc::new(map.clone()));
    match (name, value.as_str()) {
        ("maxTokensField", Some("max_tokens")) => wire.max_tokens_field = MaxTokensField::MaxTokens,
        ("maxTokensField", Some("max_completion_tokens")) => {
            wire.max_tokens_field = MaxTokensField::MaxCompletionTokens;
        }
        ("thinkingFormat", Some(format)) => {
            wire.thinking_format = ThinkingFormat::parse(format).unwrap_or(wire.thinking_format);
        }
        ("thinkingTokenBudgetField", Some(field)) => wire.thinking_budget_field = Some(field.to_owned()),
        ("toolSchemaKeywords", Some(family)) => schema.family = SchemaDialect::parse(family).unwrap_or(schema.family),
        ("cacheControlFormat", format) => wire.cache_markers = format == Some("anthropic"),
        ("promptCacheKeyMode", Some(mode)) => {
            wire.prompt_cache_key = match mode {
                "enabled" => PromptCacheKey::Enabled,
                "disabled" => PromptCacheKey::Disabled,
                _ => PromptCacheKey::Auto,
            };
        }
        ("sessionAffinityFormat", Some(format)) => {
            let format = match format {
                "openrouter" => AffinityFormat::OpenRouter,
                "openai-nosession" => AffinityFormat::OpenAiNoSession,
                _ => AffinityFormat::OpenAi,
            };
            wire.affinity = Affinity { format, ..wire.affinity };
        }
        ("openRouterRouting", _) => wire.open_router_routing = object(),
        ("vercelGatewayRouting", _) => wire.vercel_routing = object(),
        ("chatTemplateKwargs", _) => wire.chat_template_kwargs = object(),
        ("chatTemplateArgs", _) => wire.chat_template_args = object(),
        ("transcript", _) => {
            if let Some(members) = value.as_object() {
                history.transcript.apply(members);
            }
        }
        ("vllmPriority", _) => wire.vllm_priority = value.as_i64(),
        ("allowedFallbackModels", _) => {
            wire.fallbacks = value.as_array().into_iter().flatten().filter_map(fallback).collect();
        }
        _ => {}
    }
}

fn fallback(value: &Value) -> Option<FallbackModel> {
    let model = value.as_str().or_else(|| value["model"].as_str())?;
    Some(FallbackModel { model: model.to_owned(), rates: Rates::from_record(&value["cost"]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn over(compat: Value) -> Dialect {
        let mut dialect = Dialect::default();
        apply(&mut dialect, compat.as_object().unwrap());
        dialect
    }

    #[test]
    fn members_are_overridden_individually() {
        let dialect = over(json!({
            "supportsStore": false, "thinkingFormat": "qwen", "maxTokensField": "max_tokens", "requiresMistralToolIds": true,
            "sessionAffinityFormat": "openrouter", "allowedFallbackModels": [{"model": "b", "cost": {"input": 5}}]
        }));
        assert!(!dialect.wire.store);
        assert_eq!(dialect.wire.thinking_format, ThinkingFormat::Qwen);
        assert_eq!(dialect.wire.max_tokens_field, MaxTokensField::MaxTokens);
        assert_eq!(dialect.wire.affinity, Affinity { send: false, format: AffinityFormat::OpenRouter });
        assert_eq!(dialect.wire.fallbacks[0].rates.input, 5.0);
    }

    #[test]
    fn cache_settings_can_be_enabled_for_other_servers() {
        let takes = |compat: Value| {
            let mut dialect = Dialect::default();
            dialect.wire.cache_settings = false;
            apply(&mut dialect, compat.as_object().unwrap());
            dialect.wire.takes_cache_retention()
        };
        assert!(takes(json!({"supportsPromptCacheKey": true})) && takes(json!({"promptCacheKeyMode": "enabled"})));
        assert!(takes(json!({"cacheControlFormat": "anthropic"})) && !takes(json!({"supportsPromptCacheKey": false})));
    }

    #[test]
    fn invalid_members_are_ignored() {
        let odd = json!({"supportsStore": "no", "thinkingFormat": "telepathy", "maxTokensField": 7, "x": null});
        assert_eq!(over(odd), Dialect::default());
    }
}
