//! Requests for models with quirks.

use std::sync::Arc;

use pinch_llm::message::ToolDecl;
use pinch_llm::request::{CacheRetention, SystemPrompt, ThinkingChoice, ToolChoice};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use crate::support::{APIS, body, encode, messages, model_with, request, tool};

/// Returns a conversation in which prompt and tools change.
fn changing() -> Value {
    let schema = json!({"type": "object", "properties": {}, "required": []});
    let declare = |name: &str| json!({"name": name, "description": "d", "parameters": schema});
    json!([
        {"role": "system", "content": "", "sections": {"rules": "be kind"}, "toolsAdded": [declare("read")], "timestamp": 0},
        {"role": "user", "content": "one", "timestamp": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "x", "provider": "p", "model": "m",
         "stopReason": "stop", "providerThinkingLevel": "high", "timestamp": 2},
        {"role": "system", "content": "", "sections": {"rules": "be brief"}, "toolsRemoved": [{"name": "read"}],
         "toolsAdded": [declare("grep")], "timestamp": 3},
        {"role": "user", "content": "two", "timestamp": 4},
    ])
}

fn roles(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn changes_are_folded_into_the_head_for_models_without_support() {
    for api in APIS {
        let mut request = request(model_with(api, "http://localhost", json!({"reasoning": false})));
        request.messages = messages(changing());
        let body = body(&request);
        let names: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
        if api == APIS[0] {
            assert_eq!(body["system"][0]["text"], "be brief");
            assert_eq!((roles(&body), names), (vec!["user", "assistant", "user"], vec![&json!("grep")]));
        } else {
            assert_eq!(body["messages"][0], json!({"role": "system", "content": "be brief"}));
            assert_eq!(roles(&body), ["system", "user", "assistant", "user"]);
        }
    }
}

#[test]
fn anthropic_takes_changes_in_place() {
    let compat = json!({"compat": {"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}});
    let mut request = request(model_with(APIS[0], "http://localhost", compat));
    request.messages = messages(changing());
    let made = encode(&request);
    assert_eq!(made.body["system"][0]["text"], "be kind");
    assert_eq!(roles(&made.body), ["user", "assistant", "user", "system"]);
    assert_eq!(
        made.body["messages"][3]["content"],
        json!([
            {"type": "text", "text": "Updated system prompt section \"rules\":\n\nbe brief"},
            {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}},
            {"type": "tool_addition", "cache_control": {"type": "ephemeral"}, "tool": {"type": "tool_definition", "definition": {
                "name": "grep", "description": "d", "eager_input_streaming": true,
                "input_schema": {"type": "object", "properties": {}, "required": []}}}},
        ])
    );
    let tools: Vec<&Value> = made.body["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(tools, ["read", "__pi_deferred_placeholder__"]);
    assert_eq!(made.headers["anthropic-beta"], "inline-tools-2026-09-15");
}

#[test]
fn the_cached_prefix_ends_before_what_changes_between_conversations() {
    let marks = json!({"compat": {"cacheControlFormat": "anthropic"}});
    for (api, more) in [(APIS[0], json!({})), (APIS[1], marks), (APIS[1], json!({}))] {
        let mut request = request(model_with(api, "http://localhost", more.clone()));
        request.messages = messages(json!([
            {"role": "system", "content": "", "sections": {"a": "A", "now": "N", "b": "B"}, "timestamp": 0},
            {"role": "user", "content": "one", "timestamp": 1},
        ]));
        request.system = SystemPrompt::volatile(["now".to_owned()]);
        let body = body(&request);
        let stable = json!({"type": "text", "text": "A\n\nB", "cache_control": {"type": "ephemeral"}});
        let blocks = json!([stable, {"type": "text", "text": "N"}]);
        match (api == APIS[0], more == json!({})) {
            (true, _) => assert_eq!(body["system"], blocks),
            (_, false) => assert_eq!(body["messages"][0]["content"], blocks),
            (_, true) => assert_eq!(body["messages"][0]["content"], "A\n\nB\n\nN"),
        }
        request.system = SystemPrompt::volatile(["a".to_owned(), "b".to_owned(), "now".to_owned()]);
        let first = match api == APIS[0] {
            true => self::body(&request)["system"].clone(),
            false => self::body(&request)["messages"][0]["content"].clone(),
        };
        assert!(!first.to_string().contains("cache_control"), "{first}");
    }
}

#[test]
fn efforts_are_part_of_the_conversation() {
    let compat = json!({"compat": {"supportsMidConvoEffort": true, "forceAdaptiveThinking": true}});
    let mut request = request(model_with(APIS[0], "http://localhost", compat));
    request.messages = messages(changing());
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Medium);
    request.options.cache_retention = Some(CacheRetention::None);
    let body = body(&request);
    assert_eq!(body["output_config"], json!({"effort": "low"}));
    assert_eq!(roles(&body), ["user", "system", "assistant", "user", "system"]);
    assert_eq!(body["messages"][1]["output_config"], json!({"effort": "high"}));
    assert_eq!(body["messages"][4]["output_config"], json!({"effort": "medium"}));
    assert_eq!(body["thinking"]["block_binding"], json!({"prefix_mismatch_behavior": "drop_block"}));
}

#[test]
fn completions_take_additions_in_place_and_fold_the_rest() {
    let flags = json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true});
    let mut request = request(model_with(APIS[1], "http://localhost", json!({"reasoning": false, "compat": flags})));
    let mut list = changing();
    request.messages = messages(list.clone());
    assert_eq!(roles(&body(&request)), ["system", "user", "assistant", "user"], "a removal folds");
    list[3].as_object_mut().unwrap().remove("toolsRemoved");
    request.messages = messages(list);
    let body = body(&request);
    assert_eq!(roles(&body), ["system", "user", "assistant", "system", "user"]);
    assert_eq!(body["messages"][3]["tools"][0]["function"]["name"], "grep");
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn a_tool_choice_is_kept_without_tools() {
    for api in [APIS[1], "openai-responses", "mistral-conversations"] {
        let mut request = request(model_with(api, "http://localhost", json!({})));
        request.options.tool_choice = Some(ToolChoice::None);
        let body = body(&request);
        assert_eq!((body.get("tools"), &body["tool_choice"]), (None, &json!("none")), "{api}");
    }
}

#[test]
fn thinking_is_encoded_in_each_servers_terms() {
    let check = |compat: Value, on: Value, off: Value| {
        let known = [
            "reasoning_effort",
            "reasoning",
            "thinking",
            "enable_thinking",
            "chat_template_kwargs",
            "chat_template_args",
            "thinking_budget",
        ];
        for (level, expected) in [(ThinkingLevel::High, on), (ThinkingLevel::Off, off)] {
            let mut request = request(model_with(APIS[1], "http://localhost", json!({"compat": compat})));
            request.options.thinking = ThinkingChoice::Level(level);
            let body = body(&request);
            let said = body.as_object().unwrap().iter().filter(|(name, _)| known.contains(&name.as_str()));
            let said: serde_json::Map<_, _> = said.map(|(name, value)| (name.clone(), value.clone())).collect();
            assert_eq!(Value::Object(said), expected, "{compat} {level}");
        }
    };
    let format = |name: &str| json!({"thinkingFormat": name});
    check(json!({}), json!({"reasoning_effort": "high"}), json!({}));
    check(format("openrouter"), json!({"reasoning": {"effort": "high"}}), json!({"reasoning": {"effort": "none"}}));
    let on = json!({"enable_thinking": true, "reasoning_effort": "high"});
    check(format("qwen"), on, json!({"enable_thinking": false}));
    let on = json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "high"});
    check(format("zai"), on, json!({"thinking": {"type": "disabled"}}));
    check(
        json!({"thinkingFormat": "qwen", "supportsReasoningEffort": false}),
        json!({"enable_thinking": true}),
        json!({"enable_thinking": false}),
    );
    check(format("string-thinking"), json!({"thinking": "high"}), json!({"thinking": "none"}));
    check(format("ant-ling"), json!({}), json!({}));
    check(
        format("together"),
        json!({"reasoning": {"enabled": true}, "reasoning_effort": "high"}),
        json!({"reasoning": {"enabled": false}}),
    );
    check(
        json!({"thinkingFormat": "chat-template", "thinkingTokenBudgetField": "thinking_budget",
               "chatTemplateKwargs": {"think": {"$var": "thinking.enabled"}, "n": {"$var": "thinking.budget"},
                                      "e": {"$var": "thinking.effort", "omitWhenOff": true}, "fixed": 1}}),
        // The model's answers have at most 8 000 tokens, of which 1 024 are kept.
        json!({"thinking_budget": 6976, "chat_template_kwargs": {"think": true, "n": 6976, "e": "high", "fixed": 1}}),
        json!({"chat_template_kwargs": {"think": false, "fixed": 1}}),
    );
    check(format("baseten"), json!({"reasoning_effort": "high"}), json!({}));
    check(
        json!({"thinkingFormat": "baseten", "supportsReasoningEffort": false,
               "chatTemplateArgs": {"enable_thinking": {"$var": "thinking.enabled", "omitWhenOff": true}}}),
        json!({"chat_template_args": {"enable_thinking": true}}),
        json!({}),
    );
}

#[test]
fn sampling_parameters_come_last() {
    let more = json!({"samplingParams": {"temperature": 0.1, "top_p": 0.5},
                      "samplingParamsByThinkingLevel": {"off": {"top_p": 0.6}, "high": {"top_p": 0.7}}});
    let mut request = request(model_with(APIS[1], "http://localhost", more));
    request.options.temperature = Some(1.0);
    request.options.sampling_params = json!({"seed": 1}).as_object().cloned();
    let body = body(&request);
    assert_eq!((&body["temperature"], &body["top_p"], &body["seed"]), (&json!(0.1), &json!(0.6), &json!(1)));
}

#[test]
fn the_answer_limit_is_the_remaining_room() {
    let mut request = request(model_with(APIS[1], "http://localhost", json!({"contextWindow": 20_000})));
    assert_eq!(body(&request)["max_completion_tokens"], 8_000);
    request.system = SystemPrompt::text("x".repeat(35_000));
    assert_eq!(body(&request)["max_completion_tokens"], 20_000 - 10_001 - 4_096);
    request.system = SystemPrompt::text("x".repeat(350_000));
    assert_eq!(body(&request)["max_completion_tokens"], 1);
    request.options.omit_output_limit = true;
    assert_eq!(body(&request).get("max_completion_tokens"), None);
}

#[test]
fn small_windows_leave_a_usable_answer() {
    for (window, characters, limit) in [
        (4_096, 35, 4_096 - 512 - 11),
        (4_096, 13_300, 147),
        (2_048, 35, 2_048 - 256 - 11),
        (4_096, 350_000, 1),
        (8_192, 17_500, 1_024),
        (8_192, 24_500, 596),
    ] {
        let mut request = request(model_with(APIS[1], "http://localhost", json!({"contextWindow": window})));
        request.messages.clear();
        request.system = SystemPrompt::text("x".repeat(characters - 3));
        request.messages = messages(json!([{"role": "user", "content": "abc", "timestamp": 1}]));
        let sent = body(&request)["max_completion_tokens"].as_u64().unwrap();
        assert!(sent.abs_diff(limit) <= 2, "{window} {characters}: {sent} {limit}");
    }
}

#[test]
fn budgets_too_small_for_anthropic_turn_thinking_off() {
    let mut request = request(model_with(APIS[0], "http://localhost", json!({"maxTokens": 1_500})));
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::High);
    assert_eq!(body(&request)["thinking"], json!({"type": "disabled"}));
}

#[test]
fn headers_of_the_caller_take_precedence_and_null_removes_one() {
    let mut request =
        request(model_with(APIS[0], "http://localhost", json!({"headers": {"x-a": "model", "x-b": "b"}})));
    request.options.headers =
        vec![("X-A".into(), Some("caller".into())), ("x-b".into(), None), ("x-api-key".into(), None)];
    let headers = encode(&request).headers;
    assert_eq!(headers["x-a"], "caller");
    assert!(!headers.contains_key("x-b") && !headers.contains_key("x-api-key"));
}

#[test]
fn required_strictness_without_a_strict_form_fails() {
    let compat = json!({"compat": {"supportsStrictMode": true}});
    let mut tool = tool("t");
    tool.constrained_sampling = Some(json!({"type": "json_schema", "strict": "require"}));
    let mut request = request(model_with(APIS[1], "http://localhost", compat));
    request.tools = Arc::new([tool.clone()]);
    assert_eq!(body(&request)["tools"][0]["function"]["strict"], true);
    tool.parameters = json!({"type": "object", "properties": {}, "additionalProperties": true}).into();
    request.tools = Arc::new([tool]);
    let call = pinch_llm::wire::WireCall::new(&request, 0);
    let error = crate::support::format_of(APIS[1]).encode(&call).unwrap_err();
    assert_eq!(error.kind, pinch_llm::error::LlmErrorKind::InvalidRequest);
}

#[test]
fn gemini_3_is_held_to_strict_schemas() {
    let mut tool = tool("t");
    tool.parameters = json!({"type": "object", "properties": {"n": {"type": "number"}}}).into();
    let mut request = request(model_with("google-generative-ai", "http://localhost", json!({"id": "gemini-3-pro"})));
    let mut sent = |model: &str, constrained: bool, choice: Option<ToolChoice>| {
        tool.constrained_sampling = constrained.then(|| json!({"type": "json_schema", "strict": "prefer"}));
        request.model = Arc::new(model_with("google-generative-ai", "http://localhost", json!({"id": model})));
        request.tools = Arc::new([tool.clone()]);
        request.options.tool_choice = choice;
        let body = body(&request);
        let schema = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"];
        (schema["additionalProperties"] == false, body["toolConfig"]["functionCallingConfig"]["mode"].clone())
    };
    assert_eq!(sent("gemini-3-pro", true, None), (true, json!("VALIDATED")));
    assert_eq!(sent("gemini-3-pro", true, Some(ToolChoice::Auto)), (true, json!("VALIDATED")));
    assert_eq!(sent("gemini-3-pro", true, Some(ToolChoice::None)), (true, json!("NONE")));
    assert_eq!(sent("gemini-3-pro", false, None), (false, Value::Null));
    assert_eq!(sent("gemini-2.5-pro", true, None), (false, Value::Null));
}

#[test]
fn every_catalog_model_accepts_every_thinking_level() {
    let catalog = pinch_llm::catalog::Catalog::built_in();
    let env = [("CLOUDFLARE_ACCOUNT_ID", "a"), ("CLOUDFLARE_GATEWAY_ID", "g")];
    let host = pinch_llm::stdx::host::Host::builder().env(env.into_iter().collect()).build();
    let mut n_asked = 0;
    for provider in catalog.providers() {
        for model in catalog.models(provider.as_str()) {
            // Azure's models use the URL of their owner's resource.
            if !APIS.contains(&model.api.as_str()) || model.base_url.is_empty() {
                continue;
            }
            for level in ThinkingLevel::ALL {
                let mut request = request((**model).clone());
                request.messages = messages(changing());
                request.host = host.clone();
                request.options.thinking = ThinkingChoice::Level(level);
                let made = encode(&request);
                assert!(made.url.starts_with("http") && !made.url.contains('{'), "{}", made.url);
                n_asked += 1;
            }
        }
    }
    assert!(n_asked > 1_000, "only {n_asked} requests were made");
}

#[test]
fn tools_are_declared_with_the_keywords_a_model_takes() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "minLength": 1, "format": "uri"}}});
    let declared = |api: &str, provider: &str, more: Value| {
        let mut record = json!({"provider": provider});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut request = request(model_with(api, "http://localhost", record));
        let tool = ToolDecl::new("read", "does read", schema.clone());
        request.tools = Arc::new([tool]);
        let body = body(&request);
        let tool = &body["tools"][0];
        let schema = [&tool["function"]["parameters"], &tool["parameters"], &tool["input_schema"]];
        let schema = schema.into_iter().find(|schema| schema.is_object()).unwrap();
        schema["properties"]["path"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    for api in ["openai-completions", "openai-responses", "anthropic-messages", "mistral-conversations"] {
        assert_eq!(declared(api, "p", json!({})), "type minLength format", "{api}");
        assert_eq!(declared(api, "xai", json!({})), "type format", "{api}");
        assert_eq!(declared(api, "moonshotai", json!({})), "type", "{api}");
        assert_eq!(declared(api, "google-proxy", json!({})), "type", "{api}");
        let overridden = json!({"compat": {"toolSchemaKeywords": "plain"}});
        assert_eq!(declared(api, "xai", overridden), "type minLength format", "{api}");
        let hinted = json!({"compat": {"toolSchemaHints": true}});
        assert_eq!(declared(api, "p", hinted.clone()), "type minLength format", "{api}");
        assert_eq!(declared(api, "xai", hinted), "type format description", "{api}");
    }
}

#[test]
fn unsigned_thinking_is_not_sent_as_text_to_a_thinking_model() {
    let told = |thinking: ThinkingChoice, more: Value| {
        let mut request = request(model_with(APIS[0], "http://localhost", more));
        let blocks = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]);
        request.messages = messages(json!([{"role": "assistant", "content": blocks, "api": APIS[0], "provider": "p",
                                            "model": "m", "stopReason": "stop", "timestamp": 2}]));
        request.options.thinking = thinking;
        let blocks = body(&request)["messages"][0]["content"].as_array().unwrap().clone();
        blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let level = ThinkingChoice::Level;
    assert_eq!(told(level(ThinkingLevel::High), json!({})), "text");
    assert_eq!(told(level(ThinkingLevel::High), json!({"compat": {"forceAdaptiveThinking": true}})), "text");
    assert_eq!(told(ThinkingChoice::Unset, json!({})), "text");
    // As recorded: nothing is checked if no thinking is requested.
    assert_eq!(told(level(ThinkingLevel::Off), json!({})), "text text");
    let unchecked = json!({"compat": {"allowEmptySignature": true}});
    assert_eq!(told(level(ThinkingLevel::High), unchecked), "thinking text");
}

#[test]
fn choices_without_tools_are_kept_for_servers_that_accept_them() {
    let choice = |api: &str, member: &str| {
        let mut request = request(model_with(api, "http://localhost", json!({})));
        request.options.tool_choice = Some(ToolChoice::None);
        let body = body(&request);
        assert_eq!(body.get("tools"), None, "{api}");
        body[member].clone()
    };
    for api in ["openai-completions", "openai-responses", "azure-openai-responses", "mistral-conversations"] {
        assert_eq!(choice(api, "tool_choice"), "none", "{api}");
    }
    assert_eq!(choice("anthropic-messages", "tool_choice"), Value::Null);
    assert_eq!(choice("google-generative-ai", "toolConfig"), Value::Null);
}

/// OpenAI's models since GPT-5.6 take the lifetime of cached prompts in another member than earlier ones.
#[test]
fn completions_name_the_lifetime_of_cached_prompts_as_the_model_expects() {
    let cache = |id: &str, retention: CacheRetention| {
        let mut request = request(model_with(APIS[1], "https://api.openai.com/v1", json!({"id": id})));
        request.options.session_id = Some("s1".into());
        request.options.cache_retention = Some(retention);
        let body = body(&request);
        ["prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"].map(|name| body[name].clone())
    };
    let (key, options, old, nothing) = (json!("s1"), json!({"ttl": "30m"}), json!("24h"), Value::Null);
    for (id, expect) in [
        ("gpt-5.5", [key.clone(), nothing.clone(), old]),
        ("gpt-5.6", [key.clone(), options.clone(), nothing.clone()]),
        ("gpt-5.10-mini", [key.clone(), options.clone(), nothing.clone()]),
        ("gpt-6", [key.clone(), options, nothing.clone()]),
    ] {
        assert_eq!(cache(id, CacheRetention::Long), expect, "{id}");
        assert_eq!(cache(id, CacheRetention::Short), [key.clone(), nothing.clone(), nothing.clone()], "{id}");
        assert_eq!(cache(id, CacheRetention::None), [nothing.clone(), nothing.clone(), nothing.clone()], "{id}");
    }
}

#[test]
fn routing_is_sent_to_every_server() {
    let compat = json!({"openRouterRouting": {"only": ["a"]}, "vercelGatewayRouting": {"order": ["b"]}});
    let body = body(&request(model_with(APIS[1], "http://localhost", json!({"compat": compat}))));
    assert_eq!(body["provider"], json!({"only": ["a"]}));
    assert_eq!(body["providerOptions"], json!({"gateway": {"order": ["b"]}}));
}
