//! Google's format: encoding per model, ends of answers, and which rejected requests are resent.

use std::sync::Arc;

use pinch_llm::error::LlmErrorKind;
use pinch_llm::message::ToolDecl;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{NativeThinking, Request, ThinkingBudgets, ThinkingChoice};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::google::GoogleResponse;
use serde_json::{Value, json};

use crate::support::{body, decode, encode, end_of, messages, model_with, request};

const API: &str = "google-generative-ai";

fn request_to(id: &str, more: Value) -> Request {
    at("http://localhost", id, more)
}

fn at(base_url: &str, id: &str, more: Value) -> Request {
    let mut record = json!({"id": id, "provider": "google"});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request(model_with(API, base_url, record))
}

/// Returns a model's answer with one signed call and one unsigned, and their results.
fn history(model: &str, api: &str) -> Value {
    json!([
        {"role": "user", "content": "go", "timestamp": 1},
        {"role": "assistant", "api": api, "provider": "google", "model": model, "stopReason": "toolUse", "timestamp": 2,
         "content": [
            {"type": "thinking", "thinking": "", "thinkingSignature": "QUJD"},
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "no base64!"},
            {"type": "text", "text": " ", "textSignature": "REVG"},
            {"type": "text", "text": " "},
            {"type": "toolCall", "id": "c|1", "name": "read", "arguments": {}, "thoughtSignature": "R0hJ"},
            {"type": "toolCall", "id": "c2", "name": "shot", "arguments": {"n": 1.0}}]},
        {"role": "toolResult", "toolCallId": "c|1", "toolName": "read", "content": [{"type": "text", "text": " \n"}],
         "isError": false, "timestamp": 3},
        {"role": "toolResult", "toolCallId": "c2", "toolName": "shot", "isError": true, "timestamp": 3,
         "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
    ])
}

fn contents_for(id: &str, of: &str) -> Vec<Value> {
    let mut request = request_to(id, json!({}));
    request.messages = messages(history(of, API));
    body(&request)["contents"].as_array().unwrap().clone()
}

#[test]
fn gemini_3_gets_its_own_answers_with_ids_signatures_and_images_inside() {
    let contents = contents_for("gemini-3-pro", "gemini-3-pro");
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"thought": true, "text": "", "thoughtSignature": "QUJD"},
            {"thought": true, "text": "hm"},
            {"text": " ", "thoughtSignature": "REVG"},
            {"functionCall": {"name": "read", "args": {}, "id": "c|1"}, "thoughtSignature": "R0hJ"},
            {"functionCall": {"name": "shot", "args": {"n": 1.0}, "id": "c2"}},
        ])
    );
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    assert_eq!(
        contents[2]["parts"],
        json!([
            {"functionResponse": {"name": "read", "response": {"output": "(no tool output)"}, "id": "c|1"}},
            {"functionResponse": {"name": "shot", "response": {"error": "(see attached image)"}, "parts": [image], "id": "c2"}},
        ])
    );
    assert_eq!(contents.len(), 3);
}

#[test]
fn answers_of_other_models_lose_thinking_and_signatures_and_get_valid_ids() {
    let contents = contents_for("gemini-3-pro", "gemini-3-flash");
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"functionCall": {"name": "read", "args": {}, "id": "c_1"}},
            {"functionCall": {"name": "shot", "args": {"n": 1.0}, "id": "c2"}},
        ])
    );
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["id"], "c_1");
}

#[test]
fn older_models_get_no_ids_and_images_after_the_results() {
    let contents = contents_for("gemini-2.5-flash", "gemini-2.5-flash");
    assert_eq!(contents[1]["parts"][3]["functionCall"], json!({"name": "read", "args": {}}));
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2, "one content for the whole run");
    assert_eq!(contents[3]["parts"][0], json!({"text": "Tool result image:"}));
}

#[test]
fn tools_are_declared_with_enums_instead_of_const() {
    let mut request = request_to("gemini-2.5-flash", json!({}));
    let parameters = json!({"type": "object", "properties": {"kind": {"const": "x"}}, "additionalProperties": false});
    request.tools = Arc::new([ToolDecl::new("t", "does t", parameters)]);
    let declared = &body(&request)["tools"][0]["functionDeclarations"][0];
    let schema = json!({"type": "object", "properties": {"kind": {"enum": ["x"]}}, "additionalProperties": false});
    assert_eq!(*declared, json!({"name": "t", "description": "does t", "parametersJsonSchema": schema}));
    assert_eq!(body(&request).get("toolConfig"), None);
}

#[test]
fn thinking_follows_the_family_and_the_record() {
    let check = |id: &str, map: Value, choice: ThinkingChoice, expected: Value| {
        let mut request = request_to(id, json!({"thinkingLevelMap": map}));
        request.options.thinking = choice.clone();
        request.options.thinking_budgets = ThinkingBudgets { low: Some(7), ..ThinkingBudgets::default() };
        assert_eq!(body(&request)["generationConfig"]["thinkingConfig"], expected, "{id} {choice:?}");
    };
    use ThinkingChoice::{Level, Native};
    use ThinkingLevel::{High, Low, Medium, Minimal, Off};
    let none = || json!({});
    let by_words = || json!({"off": null, "minimal": null, "low": "low", "medium": "medium", "high": "high"});
    check("gemini-2.5-flash-lite", none(), Level(Minimal), json!({"includeThoughts": true, "thinkingBudget": 512}));
    check("gemini-2.5-flash-lite", none(), Level(Low), json!({"includeThoughts": true, "thinkingBudget": 7}));
    check("gemini-3-pro", none(), Level(Medium), json!({"includeThoughts": true, "thinkingLevel": "HIGH"}));
    check("gemini-3-flash", none(), Level(Off), json!({"thinkingLevel": "MINIMAL"}));
    check("gemini-3.1-pro", by_words(), Level(Medium), json!({"includeThoughts": true, "thinkingLevel": "MEDIUM"}));
    check("gemini-4-argon", by_words(), Level(High), json!({"includeThoughts": true, "thinkingLevel": "HIGH"}));
    check("gemini-4-argon", by_words(), Level(Off), json!({"thinkingLevel": "LOW"}));
    check("gemini-2.5-pro", json!({"off": null}), Level(Off), json!({"thinkingBudget": 128}));
    check("gemini-9", none(), Level(High), json!({"includeThoughts": true, "thinkingBudget": -1}));
    let native = |enabled, budget, effort: Option<&str>| {
        Native(NativeThinking { enabled, budget, effort: effort.map(str::to_owned), display: None })
    };
    check("gemini-9", none(), native(Some(true), Some(5), None), json!({"includeThoughts": true, "thinkingBudget": 5}));
    check(
        "gemini-9",
        none(),
        native(Some(true), None, Some("LOW")),
        json!({"includeThoughts": true, "thinkingLevel": "LOW"}),
    );
    check("gemini-9", none(), native(Some(false), None, None), json!({"thinkingBudget": 0}));
    check("gemini-9", none(), ThinkingChoice::Unset, Value::Null);
}

#[test]
fn urls_follow_base_url_and_model_id() {
    let url = |base: &str, id: &str| encode(&at(base, id, json!({}))).url;
    assert_eq!(url("http://h/v1/", "tunedModels/x"), "http://h/v1/tunedModels/x:streamGenerateContent?alt=sse");
    assert!(url("", "m").starts_with("https://generativelanguage.googleapis.com/v1beta/models/m:"));
    let request = at("http://h", "m?key=x", json!({}));
    let call = pinch_llm::wire::WireCall::new(&request, 0);
    assert_eq!(crate::support::format_of(API).encode(&call).unwrap_err().text, "Invalid model id: m?key=x");
}

/// Returns the end of a response with this text.
fn end(text: &str) -> String {
    decode(API, [text.as_bytes()]).pop().unwrap()
}

#[test]
fn finish_reasons_decide_how_an_answer_ends() {
    let part = || GoogleResponse::new("r", "m").text("x");
    let call = || part().tool_call("c", "read", &json!({}));
    let candidate = |candidate: Value| part().chunk(json!({"candidates": [candidate]})).frames().concat();
    assert!(end(&call().stop("STOP").concat()).starts_with("end toolUse "));
    assert!(end(&call().stop("MAX_TOKENS").concat()).starts_with("end length "));
    let refused = end(&call().stop("SAFETY").concat());
    assert!(refused.ends_with("ContentFiltered Content Provider stopped with: SAFETY"), "{refused}");
    let explained = end(&candidate(json!({"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "bad call"})));
    assert!(
        explained.ends_with("Protocol Content Provider stopped with: MALFORMED_FUNCTION_CALL: bad call"),
        "{explained}"
    );
    let unknown = end(&part().stop("TIRED").concat());
    assert!(unknown.ends_with("Protocol Content Unhandled stop reason: TIRED"), "{unknown}");
    let cut = end(&part().frames().concat());
    assert!(cut.ends_with("StreamCut Content Google stream ended without a finish reason"), "{cut}");
    let empty = decode(API, [&b""[..]]);
    assert_eq!(empty[0], "start");
    let blocked =
        GoogleResponse::new("r", "m").chunk(json!({"promptFeedback": {"blockReason": "OTHER"}})).frames().concat();
    assert!(end(&blocked).ends_with("ContentFiltered Started Prompt blocked: OTHER"), "{}", end(&blocked));
}

#[test]
fn bodies_that_are_not_events_are_errors() {
    let overloaded = json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
    let text = format!("got status: UNAVAILABLE. {overloaded}");
    for body in [overloaded.to_string(), format!("{overloaded:#}"), format!("data: {overloaded}\n\n")] {
        assert_eq!(
            decode(API, [body.as_bytes()]),
            ["start".to_owned(), format!("end error [] Overloaded Started {text}")]
        );
    }
    assert!(end(&format!("[{overloaded}]\n")).contains("Overloaded"));
    let frames = GoogleResponse::new("r", "m").text("x").stop("STOP").concat();
    let whole = frames.trim_end();
    assert!(end(whole).starts_with("end stop "), "the last event needs no blank line");
    let cut = end(&whole[..whole.len() - 3]);
    assert!(cut.ends_with("StreamCut Content Incomplete JSON segment at the end"), "{cut}");
    let odd = end("data: {\"candidates\":7}\n\n");
    assert!(odd.contains("Protocol Started Could not parse chunk: "), "{odd}");
}

#[test]
fn calls_without_an_id_get_a_unique_one() {
    let frames = GoogleResponse::new("r", "m")
        .tool_call("", "read", &json!({"n": 1e21, "é": "\u{1F600}"}))
        .tool_call("", "read", &json!(null))
        .stop("STOP");
    let words = decode(API, [frames.concat().as_bytes()]);
    let ids: Vec<&str> =
        words.iter().filter_map(|word| word.strip_prefix("0 call ").or(word.strip_prefix("1 call "))).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with("read_1000_") && id.ends_with(" read")), "{ids:?}");
    assert!(
        words.contains(&"0 + {\"n\":1e+21,\"é\":\"😀\"}".to_owned()) && words.contains(&"1 + {}".to_owned()),
        "{words:?}"
    );
}

#[test]
fn any_chunking_has_exactly_one_end() {
    let whole = GoogleResponse::new("r", "m")
        .with_chunks(2)
        .thinking("hé 😀", "QUJD")
        .text("grüße")
        .tool_call("c", "read", &json!({"path": "ä"}))
        .usage(&json!({"promptTokenCount": 7}))
        .stop("STOP")
        .concat();
    let expected = decode(API, [whole.as_bytes()]);
    assert_eq!(decode(API, whole.as_bytes().chunks(1)), expected);
    for cut in 0..whole.len() {
        let words = decode(API, [&whole.as_bytes()[..cut]]);
        assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1, "{cut}");
        let head = whole.as_bytes().split_at(cut);
        assert_eq!(decode(API, [head.0, head.1]), expected, "{cut}");
    }
}

#[test]
fn every_catalog_model_accepts_every_thinking_level() {
    let catalog = pinch_llm::catalog::Catalog::built_in();
    let mut n_asked = 0;
    for provider in ["google", "opencode", "mistral"] {
        for model in catalog.models(provider) {
            if ![API, "mistral-conversations"].contains(&model.api.as_str()) {
                continue;
            }
            for level in ThinkingLevel::ALL {
                let mut request = request((**model).clone());
                request.options.thinking = ThinkingChoice::Level(level);
                let made = encode(&request);
                assert!(made.url.starts_with("https://"), "{}", made.url);
                let config = &made.body["generationConfig"]["thinkingConfig"];
                let known = config
                    .get("thinkingLevel")
                    .is_none_or(|word| ["MINIMAL", "LOW", "MEDIUM", "HIGH"].contains(&word.as_str().unwrap_or("")));
                assert!(known, "{} {level}: {config}", model.id);
                n_asked += 1;
            }
        }
    }
    assert!(n_asked > 300, "only {n_asked} requests were made");
}

#[test]
fn cached_tokens_and_thoughts_are_counted_once() {
    let usage = json!({"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 2});
    let words = decode(API, [GoogleResponse::new("r", "m").text("x").usage(&usage).stop("STOP").concat().as_bytes()]);
    assert!(words.contains(&"usage 15".to_owned()), "{words:?}");
}

#[tokio::test]
async fn rejections_contain_all_details() {
    let refused = |status: u16, error: Value| async move {
        let server = Server::start().await.unwrap();
        server.reply(ServerReply::json(status, &json!({"error": error})));
        end_of(at(&server.url(), "gemini-2.5-pro", json!({}))).await.error.unwrap()
    };
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]);
    let slow = refused(
        429,
        json!({"message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED", "details": details}),
    );
    let slow = slow.await;
    assert_eq!(slow.kind, LlmErrorKind::RateLimit);
    assert_eq!(slow.retry_after, Some(std::time::Duration::from_secs(34)));
    let key = refused(
        400,
        json!({"message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}),
    );
    assert_eq!(key.await.kind, LlmErrorKind::Auth);
    let long = json!({"message": "The input token count (9) exceeds the maximum number of tokens allowed (8).", "status": "INVALID_ARGUMENT"});
    assert_eq!(refused(400, long).await.kind, LlmErrorKind::ContextOverflow);
}

#[tokio::test]
async fn bodies_without_a_status_get_it() {
    let text = |body: Value| async move {
        let server = Server::start().await.unwrap();
        server.reply(ServerReply::json(502, &body));
        crate::support::end_of(at(&server.url(), "gemini-2.5-pro", json!({}))).await.error.unwrap().text.clone()
    };
    assert_eq!(text(json!({"detail": "no upstream"})).await, r#"502 {"detail":"no upstream"}"#);
    let own = json!({"error": {"code": 502, "message": "x", "status": "UNAVAILABLE"}});
    assert_eq!(text(own.clone()).await, own.to_string());
}

#[tokio::test]
async fn errors_in_a_stream_contain_the_requested_delay() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]);
    let error = json!({"code": 429, "message": "too much", "status": "RESOURCE_EXHAUSTED", "details": details});
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(
        GoogleResponse::new("r", "m").text("a").chunk(json!({"error": error})).frames().concat(),
    ));
    let error = end_of(at(&server.url(), "gemini-2.5-pro", json!({}))).await.error.unwrap();
    assert_eq!((error.kind, error.retry_after), (LlmErrorKind::RateLimit, Some(std::time::Duration::from_secs(34))));
}

fn refusal(message: &str) -> ServerReply {
    ServerReply::json(400, &json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}))
}

fn answer() -> ServerReply {
    ServerReply::sse(GoogleResponse::new("r", "m").text("a").stop("STOP").concat())
}

async fn ask(provider: &Arc<dyn Provider>, request: &Request) -> bool {
    provider.stream(request.clone(), Cancel::new()).collect_end().await.is_ok()
}

#[tokio::test]
async fn unsigned_calls_get_a_placeholder_if_google_requires_a_signature() {
    let server = Server::start().await.unwrap();
    let missing = "Function call is missing a thought_signature in functionCall parts.";
    server.reply(refusal(missing)).reply(answer()).reply(answer());
    let mut request = at(&server.url(), "gemini-3-pro", json!({}));
    request.messages = messages(history("gemini-3-pro", API));
    request.options.session_id = Some("s".into());
    let provider = ProviderRegistry::builtin().get(&request.model.api).unwrap();
    assert!(ask(&provider, &request).await && ask(&provider, &request).await);
    let signatures: Vec<Value> = server
        .requests()
        .iter()
        .map(|asked| {
            let parts = &asked.json()["contents"][1]["parts"];
            json!([parts[3]["thoughtSignature"], parts[4]["thoughtSignature"]])
        })
        .collect();
    let marked = json!(["R0hJ", "skip_thought_signature_validator"]);
    assert_eq!(signatures, [json!(["R0hJ", null]), marked.clone(), marked]);
}

#[tokio::test]
async fn an_identical_request_is_not_resent() {
    let server = Server::start().await.unwrap();
    server.reply(refusal("thought_signature is not valid"));
    let end = end_of(at(&server.url(), "gemini-3-pro", json!({}))).await;
    assert_eq!(end.error.unwrap().kind, LlmErrorKind::InvalidRequest);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn models_that_cannot_stop_thinking_use_their_minimum() {
    let server = Server::start().await.unwrap();
    server.reply(answer());
    let mut request = at(&server.url(), "gemini-2.5-pro", json!({}));
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Off);
    assert!(end_of(request).await.is_ok());
    assert_eq!(server.requests()[0].json()["generationConfig"]["thinkingConfig"]["thinkingBudget"], 128);
    let server = Server::start().await.unwrap();
    server.reply(refusal("Budget 0 is invalid. This model only works in thinking mode.")).reply(answer());
    let mut request = at(&server.url(), "gemini-2.5-flash", json!({}));
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Off);
    assert!(end_of(request).await.is_ok());
    let budget =
        |at: usize| server.requests()[at].json()["generationConfig"]["thinkingConfig"]["thinkingBudget"].clone();
    assert_eq!((budget(0), budget(1)), (json!(0), json!(128)));
}
