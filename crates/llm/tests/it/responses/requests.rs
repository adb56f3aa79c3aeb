//! Requests in the Responses format.

use super::*;
use pinch_llm::request::ToolChoice;

fn patch_tool(variants: Value) -> ToolDecl {
    let mut tool = tool("patch");
    let parameters = json!({"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]});
    tool.parameters = parameters.into();
    tool.constrained_sampling = Some(json!({"type": "grammar", "variants": variants}));
    tool
}

#[test]
fn grammar_tools_take_a_text_and_not_json() {
    let compat = json!({"compat": {"supportsOpenAIGrammarTools": true}});
    let mut request = asked(OPENAI, compat);
    request.tools = Arc::new([patch_tool(json!({"openai_regex": "a+", "openai_lark": "start: \"a\""}))]);
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c1|ctc_1", "name": "patch", "arguments": {"code": "aa"}}],
         "api": OPENAI, "provider": "p", "model": "m", "stopReason": "toolUse", "timestamp": 2},
        {"role": "toolResult", "toolCallId": "c1|ctc_1", "toolName": "patch", "content": "ok", "timestamp": 3},
    ]));
    request.options.tool_choice = Some(ToolChoice::tool("patch"));
    let made = body(&request);
    let format = json!({"type": "grammar", "syntax": "lark", "definition": "start: \"a\""});
    let custom = json!({"type": "custom", "name": "patch", "description": "does patch", "format": format});
    assert_eq!(made["tools"], json!([custom]));
    assert_eq!(made["tool_choice"], json!({"type": "custom", "name": "patch"}));
    assert_eq!(
        made["input"].as_array().unwrap()[1..3],
        [
            json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch", "input": "aa"}),
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}),
        ][..]
    );
    // For models without grammar support, it is an ordinary function, and so is its call.
    Arc::make_mut(&mut request.model).dialect.schema.grammar_tools = false;
    let made = body(&request);
    assert_eq!((&made["tools"][0]["type"], &made["tool_choice"]["type"]), (&json!("function"), &json!("function")));
    let call = json!({"type": "function_call", "call_id": "c1", "name": "patch", "arguments": "{\"code\":\"aa\"}"});
    assert_eq!((&made["input"][1], &made["input"][2]["type"]), (&call, &json!("function_call_output")));
}

#[tokio::test]
async fn texts_of_grammar_tools_arrive_as_arguments() {
    let item = |input: &str| json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch", "input": input});
    let events =
        ["say \"", "é\"\n"].map(|text| json!({"type": "response.custom_tool_call_input.delta", "delta": text}));
    let frames = ResponsesResponse::new("r", "m").item(&item(""), events.to_vec(), &item("say \"é\"\n")).completed();
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(frames.concat()));
    let mut request = asked(OPENAI, json!({"compat": {"supportsOpenAIGrammarTools": true}, "baseUrl": server.url()}));
    request.tools = Arc::new([patch_tool(json!({"openai_lark": "x"}))]);
    let mut stream = crate::support::stream(request);
    let (mut json, mut call) = (String::new(), None);
    while let Some(event) = futures::StreamExt::next(&mut stream).await {
        match event {
            pinch_llm::event::StreamEvent::Delta { text, .. } => json.push_str(&text),
            pinch_llm::event::StreamEvent::End(end) => call = end.message.tool_calls().next().cloned(),
            _ => {}
        }
    }
    assert_eq!(json, r#"{"code":"say \"é\"\n"}"#);
    let call = call.unwrap();
    assert_eq!((Value::Object(call.arguments), call.id.as_str()), (json!({"code": "say \"é\"\n"}), "c|ctc_1"));
}

#[test]
fn cache_options_are_encoded() {
    let cache = |more: Value, retention: Option<CacheRetention>| {
        let mut request = asked(OPENAI, more);
        request.options.session_id = Some("s".repeat(65).into());
        request.options.cache_retention = retention;
        let made = encode(&request);
        let body = made.body.as_object().unwrap().clone();
        let said = body.into_iter().filter(|(name, _)| name.starts_with("prompt_cache_") && name != "prompt_cache_key");
        let said: serde_json::Map<_, _> = said.collect();
        let key = made.body["prompt_cache_key"].as_str().map(str::len);
        let header = |name: &str| made.headers.get(name).map(|value| value.len());
        (Value::Object(said), key, header("session-id"), header("x-client-request-id"), header("session_id"))
    };
    let all = (Some(64), Some(64));
    let (none, short, long) = (Some(CacheRetention::None), None, Some(CacheRetention::Long));
    assert_eq!(cache(json!({}), short), (json!({}), all.0, all.0, all.1, None));
    assert_eq!(cache(json!({}), none), (json!({}), None, None, None, None));
    assert_eq!(cache(json!({}), long).0, json!({"prompt_cache_retention": "24h"}));
    let new = |compat: Value| json!({"id": "gpt-5.6-sol", "compat": compat});
    assert_eq!(cache(new(json!({})), long).0, json!({"prompt_cache_options": {"ttl": "30m"}}));
    assert_eq!(cache(new(json!({})), none).0, json!({}));
    let explicit = json!({"supportsExplicitPromptCacheMode": true});
    assert_eq!(cache(new(explicit), none).0, json!({"prompt_cache_options": {"mode": "explicit"}}));
    let plain = json!({"compat": {"promptCacheKeyMode": "disabled", "sendSessionIdHeader": false}});
    assert_eq!(cache(plain, long), (json!({}), None, None, Some(64), None));
    let open_router = json!({"compat": {"sessionAffinityFormat": "openrouter"}});
    assert_eq!(cache(open_router, short), (json!({}), all.0, None, None, None));
}

#[test]
fn thinking_is_encoded_as_effort_and_summary() {
    let said = |more: Value, thinking: ThinkingChoice, api: &str| {
        let mut request = asked(api, more);
        request.options.thinking = thinking;
        let body = body(&request);
        (body["reasoning"].clone(), body.get("include").is_some())
    };
    let off = ThinkingChoice::Level(ThinkingLevel::Off);
    let high = ThinkingChoice::Level(ThinkingLevel::High);
    let no_off = json!({"thinkingLevelMap": {"off": null, "high": "HIGH"}});
    assert_eq!(said(json!({}), off.clone(), OPENAI), (json!({"effort": "none"}), false));
    assert_eq!(said(no_off.clone(), high.clone(), OPENAI), (json!({"effort": "HIGH", "summary": "auto"}), true));
    assert_eq!(said(no_off.clone(), ThinkingChoice::Unset, OPENAI), (Value::Null, true));
    assert_eq!(said(no_off.clone(), ThinkingChoice::Unset, AZURE), (Value::Null, false));
    assert_eq!(said(json!({"provider": "github-copilot"}), off.clone(), OPENAI), (Value::Null, false));
    assert_eq!(said(json!({"reasoning": false}), high.clone(), OPENAI), (Value::Null, false));
    assert_eq!(said(json!({}), off, CODEX), (Value::Null, true));
    assert_eq!(said(json!({}), high, CODEX), (json!({"effort": "high", "summary": "auto"}), true));
    let native = |effort: &str| {
        ThinkingChoice::Native(NativeThinking { effort: Some(effort.into()), ..NativeThinking::default() })
    };
    assert_eq!(said(json!({}), native("none"), CODEX).0, json!({"effort": "none", "summary": "auto"}));
    assert_eq!(said(no_off, native("none"), CODEX).0, Value::Null);
    let no_effort = json!({"compat": {"supportsReasoningEffort": false}});
    assert_eq!(said(no_effort, ThinkingChoice::Level(ThinkingLevel::Low), OPENAI).0, json!({"summary": "auto"}));
}

#[test]
fn other_options_are_encoded() {
    let mut request = asked(OPENAI, json!({"reasoning": false, "samplingParams": {"top_p": 0.5}}));
    request.options.max_tokens = Some(3);
    request.options.tool_choice = Some(ToolChoice::None);
    request.options.sampling_params = Some(native(json!({"store": true})));
    let made = body(&request);
    assert_eq!((&made["max_output_tokens"], &made["tool_choice"]), (&json!(16), &json!("none")));
    assert_eq!((&made["top_p"], &made["store"], made.get("tools")), (&json!(0.5), &json!(true), None));
    let no_limit = asked(OPENAI, json!({"compat": {"supportsMaxOutputTokens": false}}));
    assert_eq!(body(&no_limit).get("max_output_tokens"), None);
    let mut plain = asked(OPENAI, json!({"compat": {"supportsDeveloperRole": false}}));
    plain.system = SystemPrompt::text("P");
    assert_eq!(body(&plain)["input"][0], json!({"role": "system", "content": "P"}));
    let mut strict = asked(OPENAI, json!({"compat": {"supportsStrictMode": true}}));
    let mut held = tool("held");
    held.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    strict.tools = Arc::new([held, tool("free")]);
    let tools = body(&strict)["tools"].clone();
    assert_eq!((&tools[0]["strict"], &tools[1]["strict"]), (&json!(true), &json!(false)));
    assert_eq!(tools[0]["parameters"]["additionalProperties"], false);
}

#[test]
fn prompt_changes_stay_in_place() {
    let compat = json!({"supportsMidConvoSystemMessages": true});
    let mut request = asked(OPENAI, json!({"compat": compat}));
    let declare = |name: &str| json!({"name": name, "description": "d", "parameters": {"type": "object"}});
    let list = json!([
        {"role": "system", "content": "be kind", "toolsAdded": [declare("read")], "timestamp": 0},
        {"role": "user", "content": "one", "timestamp": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": " "}, {"type": "text", "text": "b"}],
         "api": OPENAI, "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 2},
        {"role": "system", "content": "be brief", "toolsRemoved": [{"name": "read"}], "toolsAdded": [declare("grep")], "timestamp": 3},
        {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "image", "data": "AA==", "mimeType": "image/png"}], "timestamp": 4},
    ]);
    request.messages = messages(list);
    let made = body(&request);
    let input = made["input"].as_array().unwrap();
    assert_eq!(input[0], json!({"role": "developer", "content": "be kind"}));
    assert_eq!((&input[2]["id"], &input[3]["id"]), (&json!("msg_pi_1"), &json!("msg_pi_1_1")));
    assert_eq!(input[4], json!({"role": "developer", "content": "be brief"}));
    assert_eq!(input[5]["content"].as_array().unwrap().len(), 1, "{}", input[5]);
    assert_eq!((&made["tools"][0]["name"], made["tools"].as_array().unwrap().len()), (&json!("grep"), 1));
    // Ids stay the same if changes are folded into the head.
    Arc::make_mut(&mut request.model).dialect.wire.mid_convo_system = false;
    let folded = body(&request);
    assert_eq!(folded["input"][0]["content"], "be kind\n\nbe brief");
    assert_eq!(folded["input"][2]["id"], "msg_pi_1");
}

#[test]
fn later_tools_are_declared_in_place() {
    let declare = |name: &str| json!({"name": name, "description": "d", "parameters": {"type": "object"}});
    let asked_with = |flag: &str, removed: Value| {
        let compat = json!({"supportsMidConvoSystemMessages": true, flag: true});
        let mut request = asked(OPENAI, json!({ "compat": compat }));
        request.messages = messages(json!([
            {"role": "system", "content": "be kind", "toolsAdded": [declare("read")], "timestamp": 0},
            {"role": "user", "content": "one", "timestamp": 1},
            {"role": "system", "content": "", "toolsAdded": [declare("grep"), declare("find")], "timestamp": 2},
            {"role": "system", "content": "", "toolsAdded": [declare("ls")], "toolsRemoved": removed, "timestamp": 3},
            {"role": "user", "content": "two", "timestamp": 4},
        ]));
        body(&request)
    };
    let kinds = |made: &Value| {
        let kind = |item: &Value| item["type"].as_str().or(item["role"].as_str()).unwrap().to_owned();
        made["input"].as_array().unwrap().iter().map(kind).collect::<Vec<_>>().join(" ")
    };
    let names = |tools: &Value| {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.as_array().map(|tools| tools.iter().map(name).collect::<Vec<_>>().join(" "))
    };
    let declared = asked_with("supportsAdditionalTools", json!([]));
    assert_eq!(kinds(&declared), "developer additional_tools user additional_tools additional_tools user");
    assert_eq!((declared.get("tools"), names(&declared["input"][3]["tools"])), (None, Some("grep find".to_owned())));
    assert_eq!(declared["input"][1]["role"], "developer");
    let found = asked_with("supportsToolSearch", json!([]));
    let search = "tool_search_call tool_search_output";
    assert_eq!(kinds(&found), format!("developer user {search} {search} user"));
    assert_eq!(names(&found["tools"]).as_deref(), Some("read"));
    let (call, output, next) = (&found["input"][2], &found["input"][3], &found["input"][4]);
    assert_eq!(
        (&call["arguments"], &call["execution"]),
        (&json!({"query": "grep find", "limit": 2}), &json!("client"))
    );
    assert_eq!((&output["call_id"], &output["tools"][0]["defer_loading"]), (&call["call_id"], &json!(true)));
    assert_ne!(call["call_id"], next["call_id"]);
    // Removals cannot be expressed within the conversation, so everything before one is folded.
    let folded = asked_with("supportsToolSearch", json!([{"name": "read"}]));
    assert_eq!(
        (kinds(&folded).as_str(), names(&folded["tools"]).as_deref()),
        ("developer user user", Some("grep find ls"))
    );
    let plain = asked_with("supportsStrictMode", json!([]));
    assert_eq!(names(&plain["tools"]).as_deref(), Some("read grep find ls"));
}

#[test]
fn only_reasoning_is_replayed_as_reasoning() {
    let answer = |model: &str, blocks: Value| json!({"role": "assistant", "content": blocks, "api": OPENAI, "provider": "p", "model": model, "stopReason": "toolUse", "timestamp": 2});
    let thinking =
        |signature: Value| json!({"type": "thinking", "thinking": "x", "thinkingSignature": signature.to_string()});
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}, "namespace": "n"});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": []});
    let mut request = asked(OPENAI, json!({}));
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        answer("m", json!([thinking(json!({"type": "message", "role": "system"})), thinking(reasoning.clone()), call("a|fc_1")])),
        answer("m", json!([{"type": "text", "text": "t"}, thinking(reasoning.clone())])),
        answer("other", json!([thinking(reasoning.clone()), call("b|fc_2")])),
    ]));
    let input = body(&request)["input"].clone();
    let kinds: Vec<&str> =
        input.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap_or("user")).collect();
    assert_eq!(
        kinds,
        [
            "user",
            "reasoning",
            "function_call",
            "function_call_output",
            "message",
            "function_call",
            "function_call_output"
        ]
    );
    assert_eq!((&input[2]["id"], &input[2]["namespace"]), (&json!("fc_1"), &json!("n")));
    assert_eq!(
        (input[5].get("id"), input[5].get("namespace")),
        (None, None),
        "items of other models want their reasoning"
    );
}

#[test]
fn every_catalog_model_can_be_called() {
    let catalog = pinch_llm::catalog::Catalog::built_in();
    let env = [("CLOUDFLARE_ACCOUNT_ID", "a"), ("CLOUDFLARE_GATEWAY_ID", "g"), ("AZURE_OPENAI_RESOURCE_NAME", "r")];
    let host = Host::builder().env(env.into_iter().collect()).build();
    let mut n_asked = 0;
    for provider in catalog.providers() {
        for model in catalog.models(provider.as_str()).iter().filter(|model| model.api.as_str().ends_with("-responses"))
        {
            for level in ThinkingLevel::ALL {
                let mut request = request((**model).clone());
                request.auth = pinch_llm::request::Auth::key(token());
                request.host = host.clone();
                request.options.thinking = ThinkingChoice::Level(level);
                let made = encode(&request);
                assert!(made.url.starts_with("https://") && !made.url.contains('{'), "{}", made.url);
                n_asked += 1;
            }
        }
    }
    assert!(n_asked > 1_000, "only {n_asked} requests were made");
}

#[test]
fn blank_texts_are_never_sent() {
    let thinking = |id: &str| {
        let item = json!({"type": "reasoning", "id": id, "summary": []}).to_string();
        json!({"type": "thinking", "thinking": "x", "thinkingSignature": item})
    };
    let text = |text: &str, id: &str| json!({"type": "text", "text": text, "textSignature": id});
    let call = json!({"type": "toolCall", "id": "a|fc_1", "name": "t", "arguments": {}});
    let sent = |blocks: Value| {
        let mut request = asked(OPENAI, json!({}));
        let answer = json!({"role": "assistant", "content": blocks, "api": OPENAI, "provider": "p", "model": "m",
                            "stopReason": "stop", "timestamp": 2});
        request.messages = messages(json!([{"role": "user", "content": "x", "timestamp": 1}, answer]));
        let input = body(&request)["input"].clone();
        let ids = input.as_array().unwrap().iter().filter_map(|item| item["id"].as_str().map(str::to_owned));
        ids.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sent(json!([text(" ", "msg_1"), text("b", "msg_2")])), "msg_2");
    // Reasoning is dropped with the item that it led to, and stays if another one follows.
    assert_eq!(sent(json!([thinking("rs_1"), text("", "msg_1")])), "");
    assert_eq!(sent(json!([thinking("rs_1"), text("", "msg_1"), call])), "rs_1 fc_1");
    assert_eq!(sent(json!([thinking("rs_1"), text("", "msg_1"), thinking("rs_2"), call])), "rs_2 fc_1");
    assert_eq!(sent(json!([thinking("rs_1"), thinking("rs_2"), call])), "rs_1 rs_2 fc_1");
}

#[test]
fn no_two_items_have_the_same_id() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": []}).to_string();
    let answer = json!({"role": "assistant", "api": OPENAI, "provider": "p", "model": "m", "stopReason": "toolUse",
    "timestamp": 2, "content": [
        {"type": "thinking", "thinking": "x", "thinkingSignature": item},
        {"type": "text", "text": "t", "textSignature": "msg_1"},
        {"type": "toolCall", "id": "a|fc_1", "name": "t", "arguments": {}},
    ]});
    let result = json!({"role": "toolResult", "toolCallId": "a|fc_1", "toolName": "t", "content": [], "timestamp": 3});
    let mut request = asked(OPENAI, json!({}));
    let user = json!({"role": "user", "content": "x", "timestamp": 1});
    // A turn that was recorded twice.
    request.messages = messages(json!([user, answer, result, answer, result]));
    let input = body(&request)["input"].clone();
    let items: Vec<(&str, Option<&str>)> = input.as_array().unwrap()[1..]
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item["id"].as_str()))
        .collect();
    let output = ("function_call_output", None);
    let first = [("reasoning", Some("rs_1")), ("message", Some("msg_1")), ("function_call", Some("fc_1")), output];
    assert_eq!(items[..4], first);
    assert_eq!(items[4..], [("message", Some("msg_pi_3")), ("function_call", None), output]);
}

#[test]
fn calls_with_the_same_id_are_distinguished() {
    let mut request = asked(OPENAI, json!({"provider": "openai"}));
    let answer = |provider: &str, ids: &[&str]| {
        let calls: Vec<Value> =
            ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}})).collect();
        json!({"role": "assistant", "content": calls, "api": OPENAI, "provider": provider, "model": "m",
               "stopReason": "toolUse", "timestamp": 2})
    };
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        answer("other", &["c+1|fc_1", "c/1|fc_2", "é|fc_3"]),
        answer("openai", &["c|fc_1", "c|fc_2", "c_1|fc_4"]),
    ]));
    let body = body(&request);
    let ids = |kind: &str| -> Vec<&str> {
        let items = body["input"].as_array().unwrap().iter().filter(|item| item["type"] == kind);
        items.map(|item| item["call_id"].as_str().unwrap()).collect()
    };
    let calls = ids("function_call");
    assert_eq!(calls, ids("function_call_output"));
    let distinct: std::collections::HashSet<_> = calls.iter().collect();
    assert_eq!((calls.len(), distinct.len()), (6, 6), "{calls:?}");
    assert_eq!((calls[0], calls[3]), ("c_1", "c"), "the first one keeps its name");
}

proptest! {
    #[test]
    fn calls_keep_their_results_whatever_their_ids(
        ids in prop::collection::vec(("[ab+/_é]{0,3}|[a+]{60,70}", "[|]?", "(fc_)?[ab+]{0,2}", any::<bool>()), 1..8),
        two in any::<bool>(),
    ) {
        let mut request = asked(OPENAI, json!({"provider": if two { "openai" } else { "p" }}));
        let answers = ids.iter().map(|(call, bar, item, own)| {
            let id = format!("{call}{bar}{item}");
            let model = if *own { "m" } else { "other" };
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": "t", "arguments": {}}],
                   "api": if *own { OPENAI } else { "anthropic-messages" }, "provider": "openai", "model": model,
                   "stopReason": "toolUse", "timestamp": 2})
        });
        request.messages = messages(answers.collect());
        let body = body(&request);
        let items = body["input"].as_array().unwrap();
        prop_assert_eq!(items.len(), ids.len() * 2);
        let mut given = std::collections::HashMap::new();
        for (pair, (call, bar, item, own)) in items.chunks(2).zip(&ids) {
            let sent = pair[0]["call_id"].as_str().unwrap();
            prop_assert_eq!(sent, pair[1]["call_id"].as_str().unwrap());
            prop_assert!(!sent.is_empty() && (*own || sent.len() <= 64), "{}", sent);
            let id = format!("{call}{bar}{item}");
            prop_assert_eq!(given.entry(sent.to_owned()).or_insert_with(|| id.clone()), &id);
        }
    }
}
