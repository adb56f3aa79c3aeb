//! A request rejected for its strict schemas is resent once without them.

use std::sync::Arc;

use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic;
use serde_json::{Value, json};

use crate::support::{APIS, model_with, request, tool};

fn strict_request(server: &Server) -> Request {
    let model = model_with(APIS[0], &server.url(), json!({"compat": {"supportsStrictTools": true}}));
    let mut tool = tool("read");
    tool.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    let mut request = request(model);
    request.tools = Arc::new([tool]);
    request.options.session_id = Some("s".into());
    request
}

fn too_large() -> ServerReply {
    let error = json!({"type": "invalid_request_error", "message": "The compiled grammar is too large."});
    ServerReply::json(400, &json!({"type": "error", "error": error}))
}

fn answer() -> ServerReply {
    ServerReply::sse(anthropic::AnthropicResponse::new("m").text("a").stop("end_turn").concat())
}

fn strict_flags(server: &Server) -> Vec<Value> {
    server.requests().iter().map(|asked| asked.json()["tools"][0]["strict"].clone()).collect()
}

#[tokio::test]
async fn a_rejected_request_is_resent_once_and_the_encoding_is_remembered() {
    let server = Server::start().await.unwrap();
    server.reply(too_large()).reply(answer()).reply(answer());
    let registry = ProviderRegistry::builtin();
    let request = strict_request(&server);
    let provider = registry.get(&request.model.api).unwrap();
    assert!(provider.stream(request.clone(), Cancel::new()).collect_end().await.is_ok());
    assert!(provider.stream(request, Cancel::new()).collect_end().await.is_ok());
    assert_eq!(strict_flags(&server), [json!(true), Value::Null, Value::Null]);
}

#[tokio::test]
async fn tools_that_require_strict_schemas_keep_them() {
    let server = Server::start().await.unwrap();
    server.reply(too_large()).reply(answer());
    let mut request = strict_request(&server);
    let mut required = tool("write");
    required.constrained_sampling = Some(json!({"type": "json_schema", "strict": "require"}));
    request.tools = Arc::new([request.tools[0].clone(), required]);
    assert!(crate::support::end_of(request).await.is_ok());
    let second = server.requests()[1].json()["tools"].clone();
    assert_eq!((&second[0]["strict"], &second[1]["strict"]), (&Value::Null, &json!(true)));
}

#[tokio::test]
async fn an_identical_request_is_not_resent() {
    let server = Server::start().await.unwrap();
    server.reply(too_large());
    let mut request = strict_request(&server);
    let mut required = request.tools[0].clone();
    required.constrained_sampling = Some(json!({"type": "json_schema", "strict": "require"}));
    request.tools = Arc::new([required, tool("plain")]);
    assert!(!crate::support::end_of(request).await.is_ok());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_request_is_reencoded_once_at_most() {
    let server = Server::start().await.unwrap();
    server.reply(too_large()).reply(too_large());
    let end = crate::support::end_of(strict_request(&server)).await;
    assert!(!end.is_ok());
    assert_eq!(server.requests().len(), 2);
}
