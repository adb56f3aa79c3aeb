//! Validation of `compat` members. Invalid ones are reported, and the model is used nevertheless.

use serde_json::{Map, Value};

/// Members with one of several words as value.
const WORDS: &[(&str, &[&str])] = &[
    ("maxTokensField", &["max_completion_tokens", "max_tokens"]),
    (
        "thinkingFormat",
        &[
            "openai",
            "openrouter",
            "deepseek",
            "zai",
            "qwen",
            "qwen-chat-template",
            "together",
            "baseten",
            "chat-template",
            "string-thinking",
            "ant-ling",
        ],
    ),
    ("cacheControlFormat", &["anthropic"]),
    ("sessionAffinityFormat", &["openai", "openai-nosession", "openrouter"]),
    ("promptCacheKeyMode", &["auto", "enabled", "disabled"]),
    ("thinkingTokenBudgetField", &["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"]),
];

/// Members that are objects.
const OBJECTS: [&str; 5] =
    ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs", "reasoningEffortMap"];

/// Flags not recognizable by their names.
const FLAGS: [&str; 5] = [
    "zaiToolStream",
    "sendSessionAffinityHeaders",
    "sendSessionIdHeader",
    "forceAdaptiveThinking",
    "allowEmptySignature",
];

/// Members of routing preferences that are lists of names.
const LISTS: [&str; 4] = ["order", "only", "ignore", "quantizations"];

/// Returns the invalid paths below `at`, and the expected values.
pub(super) fn check(at: &str, compat: &Map<String, Value>) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for (name, value) in compat {
        let place = format!("{at}.{name}");
        match wanted(name, value) {
            Some(wanted) => wrong.push((place, wanted)),
            None if name.ends_with("Routing") => check_routing(&place, value, &mut wrong),
            None => {}
        }
    }
    wrong
}

/// Returns the expected value of a member, if it is invalid.
fn wanted(name: &str, value: &Value) -> Option<String> {
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == name) {
        let is_word = value.as_str().is_some_and(|word| words.contains(&word));
        return (!is_word).then(|| format!("must be {}", words.join(", ")));
    }
    let is_flag = FLAGS.contains(&name) || name.starts_with("supports") || name.starts_with("requires");
    if is_flag && !value.is_boolean() {
        return Some("must be boolean".to_owned());
    }
    if OBJECTS.contains(&name) && !value.is_object() {
        return Some("must be object".to_owned());
    }
    let is_list = name == "allowedFallbackModels" && !value.is_array();
    is_list.then(|| "must be array".to_owned())
}

fn check_routing(at: &str, routing: &Value, wrong: &mut Vec<(String, String)>) {
    for (name, value) in routing.as_object().into_iter().flatten() {
        let is_names = || value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        let what = match name.as_str() {
            "data_collection" if value != "deny" && value != "allow" => "must be deny, allow",
            "allow_fallbacks" | "require_parameters" | "zdr" | "enforce_distillable_text" if !value.is_boolean() => {
                "must be boolean"
            }
            name if LISTS.contains(&name) && !is_names() => "must be a list of strings",
            "sort" if !value.is_string() && !value.is_object() => "must be a string or an object",
            "max_price" if !value.is_object() => "must be object",
            "preferred_min_throughput" | "preferred_max_latency" if !value.is_number() && !value.is_object() => {
                "must be a number or an object"
            }
            _ => continue,
        };
        wrong.push((format!("{at}.{name}"), what.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_places(compat: &Value, places: &[&str]) {
        let wrong = check("c", compat.as_object().unwrap());
        assert_eq!(wrong.iter().map(|(at, _)| at.as_str()).collect::<Vec<_>>(), places);
    }

    #[test]
    fn invalid_members_are_named() {
        check_places(
            &json!({
                "supportsStore": "no", "maxTokensField": "tokens", "thinkingFormat": "qwen", "unknown": 1,
                "openRouterRouting": {"order": "a", "zdr": true, "data_collection": "maybe", "x": 1},
                "vercelGatewayRouting": [],
            }),
            &[
                "c.supportsStore",
                "c.maxTokensField",
                "c.openRouterRouting.order",
                "c.openRouterRouting.data_collection",
                "c.vercelGatewayRouting",
            ],
        );
        check_places(&json!({"supportsStore": true, "vllmPriority": 3}), &[]);
    }
}
