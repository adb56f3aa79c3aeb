//! Time limits of requests, set in settings.json.

use std::time::Duration;

use pinch_testing::server::{Fault, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::help::TestUser;

/// Returns exit code and message if the server sends `reply` and the setting `key` is 80 ms.
async fn with(key: &str, args: &[&str], reply: Option<ServerReply>) -> (Option<i32>, String) {
    let user = TestUser::new().await;
    let mut settings = json!({"retry": {"enabled": false}});
    settings[key] = json!(80);
    user.write("agent/settings.json", &settings.to_string());
    if let Some(reply) = reply {
        user.server.reply(reply);
    }
    // Accepts connections and stays silent.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let models = std::fs::read_to_string(user.path("agent/models.json")).unwrap();
    let mut models: Value = serde_json::from_str(&models).unwrap();
    models["providers"]["tls"] = models["providers"]["local"].clone();
    models["providers"]["tls"]["baseUrl"] = json!(format!("https://{}", silent.local_addr().unwrap()));
    user.write("agent/models.json", &models.to_string());
    let ran = tokio::time::timeout(Duration::from_secs(20), user.run(args)).await;
    let ran = ran.unwrap_or_else(|_| panic!("{key} has no effect"));
    (ran.code, ran.err)
}

const PRINT: &[&str] = &["--model", "local/m1", "-p", "x"];

#[tokio::test]
async fn each_setting_reaches_the_request() {
    let (code, err) = with("httpHeadersTimeoutMs", PRINT, Some(ServerReply::fault(Fault::Hang))).await;
    assert_eq!((code, err.as_str()), (Some(3), "Request timed out.\n"));
    let (code, err) = with("httpFirstContentTimeoutMs", PRINT, Some(ServerReply::events().then(Fault::Hang))).await;
    assert_eq!((code, err.as_str()), (Some(3), "Stream idle timeout\n"));
    let begun = ServerReply::events().send(AnthropicResponse::new("m").text("a").frames().concat()).then(Fault::Hang);
    let (code, err) = with("httpIdleTimeoutMs", PRINT, Some(begun)).await;
    assert_eq!((code, err.as_str()), (Some(3), "Stream idle timeout\n"));
    let (code, err) = with("httpConnectTimeoutMs", &["--model", "tls/m1", "-p", "x"], None).await;
    assert_eq!(code, Some(3));
    assert!(err.starts_with("Connection error: connect timeout"), "{err}");
}

#[tokio::test]
async fn a_requested_delay_that_is_too_long_is_reported() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", "{}");
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    user.server.reply(ServerReply::json(429, &body).header("retry-after", "3600"));
    let ran = user.run(PRINT).await;
    assert_eq!((ran.code, user.server.requests().len()), (Some(3), 1));
    assert!(ran.err.starts_with("Server requested 3600s retry delay (max: 60s). 429 "), "{}", ran.err);
}
