//! OpenAI's Responses format, at OpenAI, at Azure and for ChatGPT subscriptions.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use pinch_llm::error::{LlmErrorKind, retry};
use pinch_llm::message::{StopReason, ToolDecl};
use pinch_llm::request::{CacheRetention, NativeThinking, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Reply, Server};
use pinch_testing::wires::responses::{Response, frame};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{body, decode, encode, end_of, messages, model_with, request, tool};

const OPENAI: &str = "openai-responses";
const AZURE: &str = "azure-openai-responses";
const CODEX: &str = "openai-codex-responses";

fn asked(api: &str, more: Value) -> Request {
    let mut request = request(model_with(api, "http://localhost/v1", more));
    if api == CODEX {
        request.auth = pinch_llm::request::Auth::key(token());
    }
    request
}

fn token() -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}}).to_string();
    format!("h.{}.s", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

fn native(pairs: Value) -> serde_json::Map<String, Value> {
    pairs.as_object().unwrap().clone()
}

/// A response with everything in it.
fn whole() -> Vec<String> {
    Response::new("resp_1", "m-2026")
        .in_pieces(3)
        .thinking("hé, ich denke", "ENC")
        .text("grüße 😀 und mehr")
        .tool_call("call_1", "read", r#"{"path":"ä.txt","n":[1,2]}"#)
        .completed()
}

fn decode_one(frames: &[String]) -> Vec<String> {
    decode(OPENAI, [frames.concat().as_bytes()])
}

#[test]
fn a_whole_response() {
    assert_eq!(
        decode_one(&whole()),
        [
            "start",
            "0 thinking",
            "0 + hé, i",
            "0 + ch de",
            "0 + nke",
            "0 + \n\n",
            concat!(
                r#"0 = {"type":"thinking","thinking":"hé, ich denke","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_0\","#,
                r#"\"summary\":[{\"type\":\"summary_text\",\"text\":\"hé, ich denke\"}],\"encrypted_content\":\"ENC\"}"}"#
            ),
            "1 text",
            "1 + grüße ",
            "1 + 😀 und ",
            "1 + mehr",
            r#"1 = {"type":"text","text":"grüße 😀 und mehr","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"}"#,
            "2 call call_1|fc_2 read",
            r#"2 + {"path":""#,
            r#"2 + ä.txt","n"#,
            r#"2 + ":[1,2]}"#,
            r#"2 = {"type":"toolCall","id":"call_1|fc_2","name":"read","arguments":{"path":"ä.txt","n":[1,2]}}"#,
            "usage 15",
            decode_one(&whole()).last().unwrap(),
        ]
    );
    assert!(decode_one(&whole()).last().unwrap().starts_with("end toolUse ["));
}

#[test]
fn parallel_items_are_told_apart() {
    let event = |kind: &str, number: u64, more: Value| {
        let mut event = json!({"type": kind, "output_index": number});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let call = |number: u64, arguments: &str| json!({"item": {"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"), "name": "read", "arguments": arguments}});
    let delta = |number, text: &str| event("response.function_call_arguments.delta", number, json!({"delta": text}));
    let events = [
        event("response.output_item.added", 0, call(0, "")),
        event("response.output_item.added", 1, call(1, "")),
        delta(1, r#"{"b":"#),
        delta(0, r#"{"a":"#),
        delta(1, "1}"),
        event("response.output_item.done", 1, call(1, "")),
        // A number that no item has, and one whose item is whole.
        delta(7, "x"),
        delta(1, "x"),
        delta(0, "0}"),
        event("response.output_item.done", 0, call(0, "")),
        // What ended once does not end again.
        event("response.output_item.done", 0, call(0, "")),
    ];
    let frames = events.into_iter().fold(Response::new("r", "m"), Response::event).completed();
    let words = decode_one(&frames);
    assert!(words.contains(&r#"1 = {"type":"toolCall","id":"c1|fc_1","name":"read","arguments":{"b":1}}"#.to_owned()));
    assert!(words.contains(&r#"0 = {"type":"toolCall","id":"c0|fc_0","name":"read","arguments":{"a":0}}"#.to_owned()));
    assert_eq!(words.iter().filter(|word| word.contains(" call ")).count(), 2, "{words:?}");
}

#[test]
fn parallel_items_without_numbers_are_known_by_id_or_not_at_all() {
    let message = |id: &str| json!({"type": "response.output_item.added", "item": {"type": "message", "id": id}});
    let two = || Response::new("r", "m").event(message("a")).event(message("b"));
    let named = two()
        .event(json!({"type": "response.output_text.delta", "item_id": "a", "delta": "A"}))
        .event(json!({"type": "response.output_text.delta", "item_id": "b", "delta": "B"}));
    let words = decode_one(&named.completed());
    assert!(words.contains(&"0 + A".to_owned()) && words.contains(&"1 + B".to_owned()), "{words:?}");
    let nameless = two().event(json!({"type": "response.output_text.delta", "delta": "?"}));
    assert!(decode_one(&nameless.completed()).last().unwrap().contains("Protocol Content"));
}

#[test]
fn arguments_that_come_differently_at_their_end() {
    let item = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "t", "arguments": arguments});
    let with = |deltas: &str, done: &str, last: &str| {
        let events = vec![
            json!({"type": "response.function_call_arguments.delta", "delta": deltas}),
            json!({"type": "response.function_call_arguments.done", "arguments": done}),
        ];
        decode_one(&Response::new("r", "m").item(&item(""), events, &item(last)).completed())
    };
    let longer = with(r#"{"a":"#, r#"{"a":1}"#, "");
    assert!(longer.contains(&"0 + 1}".to_owned()) && longer.last().unwrap().contains(r#""arguments":{"a":1}"#));
    let other = with(r#"{"wrong"#, r#"{"a":1}"#, r#"{"a":1}"#);
    assert!(other.last().unwrap().contains(r#""arguments":{"a":1}"#), "{other:?}");
    let broken = with("[1]", "[1]", "[1]");
    assert!(broken.last().unwrap().contains(r#""argumentsError":"expected a JSON object"#), "{broken:?}");
}

#[test]
fn halves_of_surrogate_pairs() {
    let item = |text: &str| json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]});
    let deltas = [r"a\ud83d", r"\ude00b\udc00"];
    let events = deltas.map(|text| json!({"type": "response.output_text.delta", "delta": text})).to_vec();
    let frames = Response::new("r", "m").item(&item(""), events, &item(r"x\udc00y")).completed();
    let frames: Vec<String> = frames.iter().map(|frame| frame.replace("\\\\u", "\\u")).collect();
    let words = decode_one(&frames);
    assert!(words.contains(&"0 + a".to_owned()) && words.contains(&"0 + 😀b".to_owned()), "{words:?}");
    assert!(words.last().unwrap().contains(r#""text":"xy""#), "{words:?}");
}

#[test]
fn ends() {
    let end = |frames: Vec<String>| decode_one(&frames).pop().unwrap();
    let begun = || Response::new("r", "m").text("a");
    assert!(end(begun().incomplete("max_output_tokens")).starts_with("end length "));
    let filtered = end(begun().incomplete("content_filter"));
    assert!(filtered.ends_with("ContentFiltered Content incomplete: content_filter"), "{filtered}");
    assert!(
        end(begun().end("strange", &Value::Null).frames()).contains("StreamCut"),
        "an event nobody knows ends nothing"
    );
    let event = |response: Value| begun().event(json!({"type": "response.completed", "response": response})).frames();
    assert!(end(event(json!({"status": "odd"}))).ends_with("Protocol Content Unknown response status: odd"));
    assert!(end(event(json!(7))).starts_with("end stop "), "a good end says nothing that must be there");
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "boom"}}});
    assert!(end(begun().event(failed).frames()).ends_with("Server Content server_error: boom"));
    let nested = json!({"type": "error", "status": 429, "error": {"code": "slow", "message": "slow down"}});
    assert!(end(begun().event(nested).frames()).ends_with("RateLimit Content Error Code slow: slow down"));
    assert!(end(vec!["data: {\"type\":\n\n".into()]).contains("Protocol Started Could not parse event: "));
}

#[test]
fn caches_and_tiers_have_their_price() {
    let usage = json!({"input_tokens": 1000, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
                       "output_tokens_details": {"reasoning_tokens": 4}});
    let cost = |id: &str, tier: Option<&str>, told: Value, api: &str| {
        let rates = json!({"input": 1e6, "output": 1e6, "cacheRead": 1e6, "cacheWrite": 1e6});
        let mut request = asked(api, json!({"id": id, "cost": rates}));
        request.options.native = native(json!({"serviceTier": tier}));
        let mut outcome = json!({"status": "completed", "usage": usage});
        outcome["service_tier"] = told;
        let event = frame(&json!({"type": "response.completed", "response": outcome}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let end = runtime.block_on(async {
            let server = Server::start().await.unwrap();
            server.reply(Reply::sse(event));
            Arc::make_mut(&mut request.model).base_url = server.url();
            end_of(request).await
        });
        let usage = end.message.usage;
        assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.reasoning), (300, 600, 100, Some(4)));
        assert_eq!(usage.total_tokens, 1010);
        usage.cost.total
    };
    assert_eq!(cost("m", None, Value::Null, OPENAI), 1010.0);
    assert_eq!(cost("m", Some("flex"), Value::Null, OPENAI), 505.0);
    assert_eq!(cost("m", Some("priority"), json!("default"), OPENAI), 1010.0);
    assert_eq!(cost("gpt-5.5", Some("auto"), json!("priority"), OPENAI), 2525.0);
    // A subscription's response says `default` all the same.
    assert_eq!(cost("m", Some("priority"), json!("default"), CODEX), 2020.0);
    assert_eq!(cost("m", Some("flex"), json!("flex"), AZURE), 1010.0);
}

// Requests.

fn patch_tool(variants: Value) -> ToolDecl {
    let mut tool = tool("patch");
    tool.parameters =
        Arc::new(json!({"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}));
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
    request.options.tool_choice = Some(json!({"type": "function", "function": {"name": "patch"}}));
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
    // Where models know no grammars, it is a function like any other, and so is its call.
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
    let frames = Response::new("r", "m").item(&item(""), events.to_vec(), &item("say \"é\"\n")).completed();
    let server = Server::start().await.unwrap();
    server.reply(Reply::sse(frames.concat()));
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
fn what_is_asked_of_caches() {
    let cache = |more: Value, retention: Option<CacheRetention>| {
        let mut request = asked(OPENAI, more);
        request.options.session_id = Some("s".repeat(65));
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
fn thinking() {
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
fn the_rest_of_a_body() {
    let mut request = asked(OPENAI, json!({"reasoning": false, "samplingParams": {"top_p": 0.5}}));
    request.options.max_tokens = Some(3);
    request.options.tool_choice = Some("none".into());
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
fn changes_of_the_prompt_stay_where_they_are() {
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
    // Ids stay the same when changes are folded into the head.
    Arc::make_mut(&mut request.model).dialect.wire.mid_convo_system = false;
    let folded = body(&request);
    assert_eq!(folded["input"][0]["content"], "be kind\n\nbe brief");
    assert_eq!(folded["input"][2]["id"], "msg_pi_1");
}

#[test]
fn only_reasoning_comes_back_as_reasoning() {
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
fn every_model_of_the_catalog_can_be_asked() {
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

// Azure.

#[test]
fn where_azure_is() {
    let url = |options: Value, env: &[(&str, &str)]| {
        let mut request = asked(AZURE, json!({"baseUrl": "https://model.openai.azure.com"}));
        request.options.native = native(options);
        request.host = Host::builder().env(env.iter().copied().collect()).build();
        let made = encode(&request);
        assert_eq!(made.headers["api-key"], "key");
        assert!(made.headers["api-key"].is_sensitive() && !made.headers.contains_key("authorization"));
        (made.url, made.body["model"].as_str().unwrap().to_owned())
    };
    let check = |options: Value, env: &[(&str, &str)], expect: &str, model: &str| {
        assert_eq!(url(options, env), (expect.to_owned(), model.to_owned()));
    };
    check(json!({}), &[], "https://model.openai.azure.com/openai/v1/responses?api-version=v1", "m");
    let env = [
        ("AZURE_OPENAI_RESOURCE_NAME", "res"),
        ("AZURE_OPENAI_API_VERSION", "2026"),
        ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "x, m = dep ,="),
    ];
    check(json!({}), &env, "https://res.openai.azure.com/openai/v1/responses?api-version=2026", "dep");
    let options = json!({"azureBaseUrl": "https://proxy.test/a?b=c", "azureDeploymentName": "own"});
    check(options, &env, "https://proxy.test/a/responses?b=c&api-version=2026", "own");
}

#[tokio::test]
async fn what_azure_lacks_is_named() {
    let text = |base: &str| {
        let request = asked(AZURE, json!({"baseUrl": base}));
        async move { end_of(request).await.error.unwrap().text.clone() }
    };
    assert!(text("").await.starts_with("Azure OpenAI base URL is required. Set AZURE_OPENAI_BASE_URL or "));
    assert_eq!(text("nowhere").await, "Invalid Azure OpenAI base URL: nowhere");
}

// Refusals.

async fn refused(api: &str, reply: Reply) -> Arc<pinch_llm::error::LlmError> {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    let mut request = asked(api, json!({"baseUrl": server.url()}));
    request.host = Host::builder().clock(1_000_000, 0).build();
    let error = end_of(request).await.error.unwrap();
    assert_eq!(server.requests().len(), 1);
    error
}

#[tokio::test]
async fn refusals() {
    let body = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let error = refused(OPENAI, Reply::json(404, &body)).await;
    assert_eq!(error.text, r#"OpenAI API error (404): {"message":"no such model","code":"model_not_found"}"#);
    assert_eq!((error.kind, error.code.as_deref()), (LlmErrorKind::ModelNotFound, Some("model_not_found")));
    let error = refused(AZURE, Reply::status(500).send("gateway exploded")).await;
    assert_eq!(error.text, "Azure OpenAI API error (500): gateway exploded");
    assert_eq!(refused(OPENAI, Reply::status(503)).await.text, "503 status code (no body)");
    let long = json!({"error": {"message": "Your input exceeds the context window of this model."}});
    assert_eq!(refused(OPENAI, Reply::json(400, &long)).await.kind, LlmErrorKind::ContextOverflow);
}

#[tokio::test]
async fn limits_of_subscriptions() {
    let limit =
        json!({"error": {"code": "usage_limit_reached", "plan_type": "PLUS", "resets_at": 1_600, "message": "limit"}});
    let error = refused(CODEX, Reply::json(400, &limit)).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit (plus plan). Try again in ~10 min.");
    assert_eq!((error.kind, error.should_retry), (LlmErrorKind::RateLimit, Some(false)));
    assert_eq!(error.retry_after, Some(Duration::from_secs(600)));
    let error = refused(CODEX, Reply::status(429).header("retry-after", "3")).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit.");
    assert!(retry::retryable(&error) && error.retry_after == Some(Duration::from_secs(3)));
    let busy = refused(CODEX, Reply::json(400, &json!({"error": {"message": "upstream connect error"}}))).await;
    assert_eq!((busy.text.as_str(), busy.kind), ("upstream connect error", LlmErrorKind::Overloaded));
    assert_eq!(refused(CODEX, Reply::status(403)).await.text, "Forbidden");
    let event =
        json!({"type": "error", "error": {"type": "usage_limit_reached", "plan_type": "Pro", "resets_at": 1_060}});
    let error = refused(CODEX, Reply::sse(frame(&event))).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit (pro plan). Try again in ~1 min.");
    assert_eq!((error.kind, error.should_retry), (LlmErrorKind::RateLimit, Some(false)));
}

// Subscriptions of ChatGPT.

#[tokio::test]
async fn a_subscription_speaks_for_its_account() {
    let server = Server::start().await.unwrap();
    server.reply(Reply::sse(frame(&json!({"type": "response.done", "response": {"status": "completed"}}))));
    let mut request =
        asked(CODEX, json!({"baseUrl": format!("{}/backend-api/", server.url()), "headers": {"originator": "me"}}));
    request.options.session_id = Some("s-1".into());
    request.options.max_tokens = Some(5);
    request.options.headers = vec![("Authorization".into(), Some("other".into())), ("user-agent".into(), None)];
    request.tools = Arc::new([tool("t")]);
    let end = end_of(request).await;
    assert_eq!(end.message.stop_reason, StopReason::Stop);
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/backend-api/codex/responses");
    let header = |name: &str| sent.header(name).unwrap_or("").to_owned();
    assert_eq!(header("authorization"), format!("Bearer {}", token()));
    assert_eq!((header("chatgpt-account-id"), header("originator")), ("acc-1".into(), "pi".into()));
    assert!(header("user-agent").starts_with("pi ("));
    assert_eq!((header("session-id"), header("accept")), ("s-1".into(), "text/event-stream".into()));
    let body = sent.json();
    assert_eq!(
        (&body["instructions"], &body["tools"][0]["strict"]),
        (&json!("You are a helpful assistant."), &Value::Null)
    );
    assert_eq!((body.get("max_output_tokens"), &body["text"]), (None, &json!({"verbosity": "low"})));
}

#[tokio::test]
async fn a_token_without_an_account_needs_a_stored_one() {
    let mut request = asked(CODEX, json!({}));
    request.auth = pinch_llm::request::Auth::key("opaque");
    request.auth.headers = vec![("ChatGPT-Account-Id".into(), Some("stored".into()))];
    assert_eq!(encode(&request).headers["chatgpt-account-id"], "stored");
    request.auth.headers.clear();
    let error = end_of(request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "Failed to extract accountId from token"));
}

// Whatever comes.

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chunking_changes_nothing(cuts in prop::collection::vec(0usize..4_000, 0..12)) {
        let text = whole().concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(OPENAI, chunks), decode(OPENAI, [bytes]));
    }

    #[test]
    fn garbage_has_one_end(at in prop::collection::vec((0usize..4_000, any::<u8>()), 1..8), len in 0usize..4_000) {
        let mut bytes = whole().concat().into_bytes();
        bytes.truncate(len.max(1));
        let n = bytes.len();
        at.into_iter().for_each(|(at, byte)| bytes[at % n] = byte);
        prop_assert_eq!(decode(OPENAI, [&bytes[..]]).iter().filter(|word| word.starts_with("end ")).count(), 1);
    }

    #[test]
    fn odd_events_have_one_end(events in prop::collection::vec(odd_event(), 0..24)) {
        let text: String = events.iter().map(frame).collect();
        let words = decode(OPENAI, [text.as_bytes()]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }
}

/// Events of known names whose members have any type.
fn odd_event() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_part.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.delta",
    ]);
    let member = prop::sample::select(vec![
        "output_index",
        "item_id",
        "delta",
        "arguments",
        "item",
        "response",
        "type",
        "id",
        "call_id",
        "name",
        "input",
        "summary",
        "content",
        "text",
        "usage",
        "status",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!("message")),
        Just(json!("function_call")),
        Just(json!("custom_tool_call")),
        Just(json!("reasoning")),
        Just(json!([])),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((member.clone(), inner), 0..6)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    });
    (kind, value, 0u64..3, prop::sample::select(vec!["message", "function_call", "custom_tool_call", "reasoning"]))
        .prop_map(|(kind, value, number, item)| {
            let mut event = json!({"output_index": number, "item": {"type": item}, "delta": "d"});
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), value) {
                event.extend(more);
            }
            event["type"] = kind.into();
            event
        })
}
