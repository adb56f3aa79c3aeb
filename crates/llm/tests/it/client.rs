//! The client: models by name, credentials, options of a chat, and replies.

use std::time::Duration;

use futures::StreamExt;
use http::StatusCode;
use pinch_llm::client::{Client, Reply};
use pinch_llm::error::LlmErrorKind;
use pinch_llm::event::StreamEvent;
use pinch_llm::ids::ApiId;
use pinch_llm::message::{StopReason, ToolDecl, ToolResult};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, ResponseFormat, Timeouts, ToolChoice};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::{Answer, AnswerPart, Wire};
use serde_json::json;

fn response(parts: impl IntoIterator<Item = AnswerPart>) -> ServerReply {
    ServerReply::sse(CompletionsServer.frames(&Answer::of(parts)).concat())
}

async fn serve(responses: impl IntoIterator<Item = ServerReply>) -> (Server, Client) {
    let server = Server::start().await.unwrap();
    for response in responses {
        server.reply(response);
    }
    let client = Client::builder().server("local", server.url(), ApiId::OPENAI_COMPLETIONS).build();
    (server, client)
}

#[tokio::test]
async fn a_reply_has_text_usage_cost_and_the_reason_it_stopped() {
    let server = Server::start().await.unwrap();
    server.reply(response([AnswerPart::text("It has claws.")]));
    let record = json!({
        "id": "m1", "api": "openai-completions", "provider": "priced", "baseUrl": server.url(),
        "cost": {"input": 1_000_000.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0},
    });
    let client = Client::builder().model(Model::from_record(&record).unwrap()).key("priced", "secret").build();
    let reply = client.chat("priced/m1").system("Be brief.").user("What is a crab?").send().await.unwrap();
    assert_eq!(reply.text(), "It has claws.");
    assert_eq!((reply.usage.input, reply.usage.output, reply.stop_reason), (10, 5, StopReason::Stop));
    assert!((reply.cost.total - 10.0).abs() < 1e-9, "{:?}", reply.cost);
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer secret"));
    let roles: Vec<_> = request.json()["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user"]);
}

#[tokio::test]
async fn a_custom_server_serves_any_model_without_a_key() {
    let (server, client) = serve([response([AnswerPart::text("ok")])]).await;
    client.chat("local/some/model").user("hi").send().await.unwrap();
    let request = &server.requests()[0];
    let body = request.json();
    assert_eq!((&body["model"], body.get("max_tokens")), (&json!("some/model"), None));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_conversation_continues_with_the_reply_and_the_results_of_its_calls() {
    let call = response([AnswerPart::call("call_1", "add", r#"{"a":1}"#)]);
    let (server, client) = serve([call, response([AnswerPart::text("2")])]).await;
    let add = ToolDecl::new("add", "Add one.", json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    let chat = client.chat("local/m").user("1 + 1?").tool(add).tool_choice(ToolChoice::Required);
    let reply = chat.send().await.unwrap();
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    let calls: Vec<_> = reply.tool_calls().cloned().collect();
    assert_eq!((calls.len(), calls[0].name.as_str()), (1, "add"));
    let chat = chat.message(&reply).message(ToolResult::text(&calls[0], "2", false, 0));
    assert_eq!(chat.send().await.unwrap().text(), "2");
    let bodies: Vec<_> = server.requests().iter().map(|request| request.json()).collect();
    assert_eq!(
        (&bodies[0]["tool_choice"], bodies[1]["messages"][2]["role"].as_str()),
        (&json!("required"), Some("tool"))
    );
}

#[tokio::test]
async fn every_setting_of_a_chat_reaches_the_request() {
    let (_server, client) = serve([]).await;
    let cancel = Cancel::new();
    let format = ResponseFormat::json_schema("answer", json!({"type": "object", "properties": {}}));
    let timeouts = Timeouts::default().with_total(Some(Duration::from_secs(9)));
    let request = client
        .chat("local/m")
        .user("a")
        .assistant("b")
        .user("c")
        .response_format(format.clone())
        .thinking(ThinkingLevel::High)
        .temperature(0.5)
        .max_tokens(77)
        .timeouts(timeouts)
        .auth(Auth::key("other"))
        .cancel(cancel)
        .to_request()
        .unwrap();
    let roles: Vec<_> = request.messages.iter().map(|message| message.role().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!((request.options.temperature, request.options.max_tokens), (Some(0.5), Some(77)));
    assert_eq!((request.options.response_format, request.options.timeouts), (Some(format), timeouts));
    assert_eq!(request.auth.key.unwrap().reveal(), "other");
}

#[tokio::test]
async fn a_failure_keeps_its_kind_status_and_requested_delay() {
    let busy = ServerReply::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "7");
    let (_server, client) = serve([busy]).await;
    let error = client.chat("local/m").user("hi").send().await.unwrap_err();
    assert_eq!((error.kind, error.status), (LlmErrorKind::RateLimit, Some(StatusCode::TOO_MANY_REQUESTS)));
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn an_unknown_model_fails_before_anything_is_sent() {
    let (server, client) = serve([]).await;
    for (name, text) in [
        ("gpt", "\"gpt\" does not name a model: write it as provider/model"),
        ("nobody/m", "unknown provider \"nobody\": add it with ClientBuilder::server or ClientBuilder::model"),
        (
            "anthropic/nothing",
            "provider \"anthropic\" has no model \"nothing\" in the catalog: add it with ClientBuilder::model",
        ),
    ] {
        let error = client.chat(name).user("hi").send().await.unwrap_err();
        assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::ModelNotFound, text));
        let events: Vec<_> = client.chat(name).user("hi").stream().collect().await;
        let [StreamEvent::End(finished)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(finished.error.as_ref().unwrap().text, text);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_stream_ends_with_the_reply() {
    let (_server, client) = serve([response([AnswerPart::text("one two three")])]).await;
    let (mut events, mut text, mut reply) = (client.chat("local/m").user("hi").stream(), String::new(), None);
    while let Some(event) = events.next().await {
        match event {
            StreamEvent::Delta { text: more, .. } => text.push_str(&more),
            StreamEvent::End(finished) => reply = Some(Reply::from_finished(finished).unwrap()),
            _ => {}
        }
    }
    assert_eq!((text.as_str(), reply.unwrap().text().as_str()), ("one two three", "one two three"));
}

#[tokio::test]
async fn a_cancelled_chat_is_aborted() {
    let (server, client) = serve([]).await;
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::User);
    let error = client.chat("local/m").user("hi").cancel(cancel).send().await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (LlmErrorKind::Aborted, 0));
}

#[tokio::test]
async fn keys_come_from_the_environment_only_when_asked_for() {
    let host = Host::builder().env([("OPENAI_API_KEY", "from-env"), ("HTTP_PROXY", "")].into_iter().collect()).build();
    let request = |client: Client| client.chat("openai/gpt-5.1").user("hi").to_request().unwrap();
    let asked = request(Client::from_env(&host));
    assert_eq!(asked.host.env().get("OPENAI_API_KEY"), Some("from-env"));
    let plain = request(Client::builder().host(host).build());
    assert_eq!((plain.host.env().get("OPENAI_API_KEY"), plain.host.env().get("HTTP_PROXY")), (None, Some("")));
    let error = Client::builder().build().chat("openai/gpt-5.1").user("hi").send().await.unwrap_err();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "No API key for provider: openai"));
}

#[test]
fn keys_are_not_shown_in_debug_output() {
    let client = Client::builder().key("openai", "very-secret").build();
    let shown = format!("{client:?} {:?}", client.chat("openai/gpt-5.1").auth(Auth::key("very-secret")));
    assert!(!shown.contains("very-secret"), "{shown}");
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn a_structured_reply_is_parsed_as_its_type() {
    #[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
    struct Creature {
        name: String,
        legs: u32,
    }
    let answers = [r#"{"name":"crab","legs":10}"#, "ten"].map(|text| response([AnswerPart::text(text)]));
    let (server, client) = serve(answers).await;
    let chat = client.chat("local/m").user("A crab.").response_format(ResponseFormat::of::<Creature>());
    let animal: Creature = chat.send().await.unwrap().json().unwrap();
    assert_eq!(animal, Creature { name: "crab".into(), legs: 10 });
    let format = &server.requests()[0].json()["response_format"];
    assert_eq!((&format["type"], &format["json_schema"]["name"]), (&json!("json_schema"), &json!("Creature")));
    let error = chat.send().await.unwrap().json::<Creature>().unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Protocol);
    assert!(std::error::Error::source(&error).is_some());
}

#[cfg(feature = "scripted")]
#[tokio::test]
async fn a_provider_given_to_the_client_serves_its_format() {
    use pinch_llm::provider::scripted::{self, ScriptedProvider};

    let script = ScriptedProvider::new([scripted::ScriptedReply::text("from the script")]);
    let model = ScriptedProvider::model("my-format");
    let client = Client::builder().provider("my-format", std::sync::Arc::new(script)).model(model).build();
    assert_eq!(client.chat("faux/faux-1").user("hi").send().await.unwrap().text(), "from the script");
}
