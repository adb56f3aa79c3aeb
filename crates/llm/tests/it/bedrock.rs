//! Amazon Bedrock: requests.

mod replies;

use std::sync::Arc;

use pinch_llm::catalog::Catalog;
use pinch_llm::error::LlmErrorKind;
use pinch_llm::event::Finished;
use pinch_llm::model::Model;
use pinch_llm::request::{
    Auth, AwsCredentials, AwsKeys, CacheRetention, Request, Section, SystemPrompt, ThinkingChoice, ToolChoice,
};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::bedrock::BedrockResponse;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{body, encode, end_of, messages, model_with, request, tool};

const API: &str = "bedrock-converse-stream";
const SONNET: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";

fn of_catalog(id: &str) -> Model {
    (**Catalog::built_in().find("amazon-bedrock", id).unwrap()).clone()
}

fn ask(id: &str) -> Request {
    let mut request = request(of_catalog(id));
    request.messages = messages(json!([{"role": "user", "content": "x", "timestamp": 1}]));
    request
}

fn with_env(mut request: Request, env: &[(&str, &str)]) -> Request {
    request.host = Host::builder().clock(1_700_000_000_000, 0).env(env.iter().copied().collect()).build();
    request
}

fn keys() -> Auth {
    let keys = AwsKeys {
        access_key_id: "AKID".into(),
        secret_access_key: "SECRET".into(),
        session_token: Some("TOKEN".into()),
    };
    Auth::default().with_aws(AwsCredentials { keys: Some(keys), region: None })
}

/// Sends a request to a server that answers with these bytes.
async fn answered(reply: ServerReply, change: impl FnOnce(&mut Request)) -> (Finished, Recorded) {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    let mut request = request(model_with(API, &server.url(), json!({"id": SONNET, "provider": "amazon-bedrock"})));
    request.auth = keys();
    change(&mut request);
    let end = end_of(request).await;
    (end, server.requests().remove(0))
}

fn events(frames: Vec<Vec<u8>>) -> ServerReply {
    ServerReply::status(200).header("content-type", "application/vnd.amazon.eventstream").send(frames.concat())
}

#[test]
fn models_with_adaptive_thinking_get_an_effort() {
    let mut request = ask("us.anthropic.claude-opus-4-7");
    request.system = SystemPrompt::text("S");
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::XHigh);
    let made = encode(&request);
    assert!(made.url.ends_with("/model/us.anthropic.claude-opus-4-7/converse-stream"), "{}", made.url);
    assert_eq!(
        made.body,
        json!({
            "messages": [{"role": "user", "content": [{"text": "x"}, {"cachePoint": {"type": "default"}}]}],
            "system": [{"text": "S"}, {"cachePoint": {"type": "default"}}],
            "inferenceConfig": {"maxTokens": 128_000},
            "additionalModelRequestFields": {
                "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}
            }
        })
    );
    for id in ["anthropic.claude-opus-5-5", "global.anthropic.claude-haiku-5-5", "in.anthropic.claude-sonnet-5"] {
        let mut request = ask(id);
        request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Minimal);
        assert_eq!(body(&request)["additionalModelRequestFields"]["output_config"], json!({"effort": "low"}), "{id}");
    }
}

#[test]
fn other_models_get_a_budget() {
    let mut request = ask(SONNET);
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Low);
    request.options.temperature = Some(0.5);
    request.options.max_tokens = Some(4_000);
    let made = body(&request);
    assert_eq!(made["inferenceConfig"], json!({"maxTokens": 6_048}), "no temperature beside thinking");
    assert_eq!(
        made["additionalModelRequestFields"],
        json!({"thinking": {"type": "enabled", "budget_tokens": 2_048, "display": "summarized"},
               "anthropic_beta": ["interleaved-thinking-2025-05-14"]})
    );
    request.options.native =
        json!({"interleavedThinking": false, "thinkingDisplay": "omitted"}).as_object().unwrap().clone();
    let fields = body(&request)["additionalModelRequestFields"].clone();
    assert_eq!((&fields["anthropic_beta"], &fields["thinking"]["display"]), (&Value::Null, &json!("omitted")));
    let gov = with_env(request.clone(), &[("AWS_REGION", "us-gov-west-1")]);
    assert_eq!(body(&gov)["additionalModelRequestFields"]["thinking"].get("display"), None);
    request.model = Arc::new(of_catalog("openai.gpt-oss-120b-1:0"));
    assert_eq!(body(&request).get("additionalModelRequestFields"), None);
    let mut split = ask(SONNET);
    split.system = SystemPrompt::text("S");
    split.system.sections.push(Section { name: "now".into(), text: "N".into(), stable: false });
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(body(&split)["system"], json!([{"text": "S"}, point, {"text": "N"}]));
    let mut off = ask(SONNET);
    off.options.temperature = Some(0.5);
    off.options.thinking = ThinkingChoice::Level(ThinkingLevel::Off);
    assert_eq!(body(&off)["inferenceConfig"]["temperature"], 0.5);
}

fn history() -> Value {
    let answer = |content: Value| {
        json!({"role": "assistant", "api": API, "provider": "amazon-bedrock", "model": SONNET, "stopReason": "toolUse",
               "content": content, "timestamp": 2})
    };
    let result = |id: &str, content: Value, failed: bool| json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": failed, "timestamp": 3});
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/jpg"});
    json!([
        {"role": "user", "content": "  ", "timestamp": 1},
        answer(json!([
            {"type": "thinking", "thinking": "t", "thinkingSignature": "SIG"},
            {"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "cmVk", "redacted": true},
            {"type": "thinking", "thinking": "unsigned"},
            {"type": "text", "text": " "},
            {"type": "toolCall", "id": "a", "name": "read", "arguments": {"": 1, "p": [{"": 2, "q": 3}]}},
            {"type": "toolCall", "id": "b", "name": "read", "arguments": {}},
        ])),
        result("a", json!([image]), true),
        result("b", json!([{"type": "text", "text": " "}]), false),
        {"role": "user", "content": [image, {"type": "text", "text": " "}], "timestamp": 4},
        {"role": "user", "content": "go on", "timestamp": 5},
    ])
}

#[test]
fn a_conversation_is_encoded_for_converse() {
    let mut request = ask(SONNET);
    request.messages = messages(history());
    request.options.cache_retention = Some(CacheRetention::Long);
    let image = json!({"image": {"format": "jpeg", "source": {"bytes": "aGk="}}});
    let made = body(&request);
    assert_eq!(
        made["messages"],
        json!([
            {"role": "user", "content": [{"text": "<empty>"}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "t", "signature": "SIG"}}},
                {"reasoningContent": {"redactedContent": "cmVk"}},
                {"toolUse": {"toolUseId": "a", "name": "read", "input": {"p": [{"q": 3}]}}},
                {"toolUse": {"toolUseId": "b", "name": "read", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "(see attached image)"}], "status": "error"}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "(no tool output)"}], "status": "success"}},
                {"text": "Image(s) of the failed call a:"},
                image,
                image,
                {"text": "go on"},
                {"cachePoint": {"type": "default", "ttl": "1h"}},
            ]},
        ])
    );
    // The conversation refers to a removed tool: Converse requires it.
    let tools = made["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["toolSpec"]["name"]), (1, &json!("read")));
    assert_eq!(made["toolConfig"].get("toolChoice"), None);
}

#[test]
fn other_models_show_their_thinking_without_a_signature() {
    let mut request = ask("amazon.nova-2-lite-v1:0");
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        {"role": "assistant", "api": API, "provider": "amazon-bedrock", "model": "amazon.nova-2-lite-v1:0", "timestamp": 2,
         "stopReason": "stop", "content": [{"type": "thinking", "thinking": "t", "thinkingSignature": "S"}, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "y", "timestamp": 3},
    ]));
    let made = body(&request);
    assert_eq!(made["messages"][1]["content"][0], json!({"reasoningContent": {"reasoningText": {"text": "t"}}}));
    assert_eq!(made["messages"][2]["content"], json!([{"text": "y"}]), "no cache point");
    let forced = body(&with_env(request, &[("AWS_BEDROCK_FORCE_CACHE", "1")]));
    assert_eq!(forced["messages"][2]["content"][1], json!({"cachePoint": {"type": "default"}}));
}

#[test]
fn ids_and_thinking_of_other_providers_are_adapted() {
    let long = format!("call_1|fc_{}", "a".repeat(80));
    let short = format!("call_1_fc_{}", "a".repeat(54));
    let mut request = ask(SONNET);
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        {"role": "assistant", "api": "openai-responses", "provider": "openai", "model": "gpt-5", "stopReason": "toolUse", "timestamp": 1,
         "content": [{"type": "thinking", "thinking": "foreign"}, {"type": "toolCall", "id": long, "name": "read", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": long, "toolName": "read", "content": [{"type": "text", "text": "r"}], "isError": false, "timestamp": 1},
    ]));
    let result = json!({"toolResult": {"toolUseId": short, "content": [{"text": "r"}], "status": "success"}});
    assert_eq!(
        body(&request)["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": short, "name": "read", "input": {}}}]}),
            json!({"role": "user", "content": [result, {"cachePoint": {"type": "default"}}]}),
        ]
    );
}

#[test]
fn consecutive_answers_become_one_message() {
    let answer = |blocks: Value| {
        json!({"role": "assistant", "api": API, "provider": "amazon-bedrock", "model": SONNET, "stopReason": "stop",
            "content": blocks, "timestamp": 2})
    };
    let mut request = ask(SONNET);
    request.options.cache_retention = Some(CacheRetention::None);
    request.messages = messages(json!([
        {"role": "user", "content": "x", "timestamp": 1},
        answer(json!([{"type": "text", "text": "one"}])),
        answer(json!([{"type": "text", "text": "two"}, {"type": "toolCall", "id": "t1", "name": "read", "arguments": {}}])),
        {"role": "toolResult", "toolCallId": "t1", "toolName": "read", "content": [], "timestamp": 3},
    ]));
    let sent = body(&request)["messages"].clone();
    let roles: Vec<&str> = sent.as_array().unwrap().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let call = json!({"toolUse": {"toolUseId": "t1", "name": "read", "input": {}}});
    assert_eq!(sent[1]["content"], json!([{"text": "one"}, {"text": "two"}, call]));
}

#[test]
fn tools_and_their_choice_are_encoded() {
    let mut request = ask(SONNET);
    let mut strict = tool("read");
    strict.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    let mut silent = tool("quiet");
    silent.description.clear();
    request.tools = Arc::new([strict, silent]);
    let specs = body(&request)["toolConfig"]["tools"].clone();
    let schema = json!({"type": "object", "properties": {}, "required": []});
    let held = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    assert_eq!(
        specs,
        json!([
            {"toolSpec": {"name": "read", "description": "does read", "strict": true, "inputSchema": {"json": held}}},
            {"toolSpec": {"name": "quiet", "inputSchema": {"json": schema}}},
        ])
    );
    for (choice, expect) in [
        (json!("auto"), json!({"auto": {}})),
        (json!("any"), json!({"any": {}})),
        (json!({"type": "tool", "name": "read"}), json!({"tool": {"name": "read"}})),
    ] {
        request.options.tool_choice = Some(ToolChoice::Native(choice));
        assert_eq!(body(&request)["toolConfig"]["toolChoice"], expect);
    }
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::High);
    assert_eq!(body(&request)["toolConfig"]["toolChoice"], json!({"auto": {}}), "thinking is not forced");
    request.options.tool_choice = Some(ToolChoice::None);
    assert_eq!(body(&request).get("toolConfig"), None);
    request.messages = messages(history());
    assert_eq!(body(&request)["toolConfig"]["tools"].as_array().unwrap().len(), 2, "history wants them");
}

#[tokio::test]
async fn images_of_other_types_are_refused() {
    let mut request = ask(SONNET);
    let image = json!({"type": "image", "data": "", "mimeType": "image/bmp"});
    request.messages = messages(json!([{"role": "user", "content": [image], "timestamp": 1}]));
    let error = end_of(request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::InvalidRequest, "Unknown image type: image/bmp"));
}

/// Computes the signature step by step, as in Amazon's documentation.
fn expected_signature(asked: &Recorded, secret: &str, scope: &str) -> String {
    fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
        let mut block = [0u8; 64];
        block[..key.len()].copy_from_slice(key);
        let inner = Sha256::new().chain_update(block.map(|b| b ^ 0x36)).chain_update(text).finalize();
        Sha256::new().chain_update(block.map(|b| b ^ 0x5c)).chain_update(inner).finalize().to_vec()
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let authorization = asked.header("authorization").unwrap();
    let names = authorization.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", asked.header(name).unwrap())).collect();
    let path = asked.path.replace('%', "%25");
    let body = hex(&Sha256::digest(&asked.body));
    let canonical = format!("POST\n{path}\n\n{headers}\n{names}\n{body}");
    let date = asked.header("x-amz-date").unwrap();
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| hmac(&key, part.as_bytes()));
    hex(&hmac(&key, to_sign.as_bytes()))
}

#[tokio::test]
async fn requests_are_signed() {
    let (end, asked) = answered(events(BedrockResponse::new().text("hi").stop("end_turn")), |request| {
        let model = Arc::make_mut(&mut request.model);
        model.headers = vec![("Authorization".into(), Some("mine".into())), ("X-Amz-Date".into(), Some("now".into()))];
        request.options.headers = vec![("x-free".into(), Some("1".into())), ("content-type".into(), None)];
        *request = with_env(request.clone(), &[("AWS_REGION", "eu-west-1")]);
    })
    .await;
    assert!(end.is_ok());
    assert_eq!(asked.path, "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    assert_eq!((asked.header("x-amz-date"), asked.header("x-free")), (Some("20231114T221320Z"), Some("1")));
    assert_eq!(
        (asked.header("x-amz-security-token"), asked.header("content-type")),
        (Some("TOKEN"), Some("application/json"))
    );
    let scope = "20231114/eu-west-1/bedrock/aws4_request";
    let authorization = asked.header("authorization").unwrap();
    assert!(
        authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders=")),
        "{authorization}"
    );
    for name in ["host", "content-type", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"] {
        assert!(authorization.contains(name), "{name} is not signed: {authorization}");
    }
    assert!(authorization.ends_with(&expected_signature(&asked, "SECRET", scope)), "{authorization}");
}

#[tokio::test]
async fn bearer_tokens_replace_the_signature() {
    let good = || events(BedrockResponse::new().stop("end_turn"));
    let (_, asked) = answered(good(), |request| request.auth = Auth::key("k")).await;
    assert_eq!((asked.header("authorization"), asked.header("x-amz-date")), (Some("Bearer k"), None));
    let token = [("AWS_BEARER_TOKEN_BEDROCK", "t")];
    let (_, asked) = answered(good(), |request| {
        *request = with_env(request.clone(), &token).with_auth(Auth::key("<authenticated>"));
    })
    .await;
    assert_eq!(asked.header("authorization"), Some("Bearer t"));
    let skipped = [("AWS_BEARER_TOKEN_BEDROCK", "t"), ("AWS_BEDROCK_SKIP_AUTH", "1"), ("AWS_REGION", "eu-west-2")];
    let (_, asked) = answered(good(), |request| *request = with_env(request.clone(), &skipped)).await;
    let authorization = asked.header("authorization").unwrap();
    assert!(authorization.contains("Credential=dummy-access-key/20231114/eu-west-2/bedrock/"), "{authorization}");
    let (_, asked) = answered(good(), |request| request.auth = Auth::keyless()).await;
    assert_eq!(asked.header("authorization"), None);
}

#[tokio::test]
async fn missing_credentials_are_an_error_that_names_the_variables() {
    let mut request = ask(SONNET);
    request.auth = Auth::default();
    let request = with_env(request, &[("AWS_EC2_METADATA_DISABLED", "true")]);
    let error = end_of(request).await.error.unwrap();
    assert_eq!(error.kind, LlmErrorKind::Auth);
    assert!(error.text.contains("AWS_PROFILE"), "{}", error.text);
}

#[test]
fn every_catalog_model_accepts_every_thinking_level() {
    let mut n_asked = 0;
    for model in Catalog::built_in().models("amazon-bedrock") {
        for level in ThinkingLevel::ALL {
            let mut request = request((**model).clone());
            request.messages = messages(history());
            request.options.thinking = ThinkingChoice::Level(level);
            let made = encode(&request);
            assert!(made.url.starts_with("https://bedrock-runtime."), "{}", made.url);
            n_asked += 1;
        }
    }
    assert!(n_asked > 1_000, "only {n_asked} requests were made");
}
