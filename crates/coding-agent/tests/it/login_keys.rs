//! Logging in with an API key, which is checked with the provider, and the status of every provider.

use pinch_coding_agent::login::dialog::{self, BrowserLocation};
use pinch_coding_agent::login::{
    LoggedIn, LoginError, LoginEvent, LoginMethod, LoginProvider, LoginQuestion, LoginRequest, LoginStatus,
    LogoutOutcome, log_in, log_out, status,
};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::secret::Secret;
use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::login::LoginScene;

/// Returns custom servers.
fn models() -> Value {
    let provider = |url: &str| json!({"baseUrl": url, "api": "anthropic-messages", "models": [{"id": "m1"}]});
    json!({"providers": {"lab": provider("SERVER"), "nowhere": provider("http://127.0.0.1:1"), "empty": {"baseUrl": "http://127.0.0.1:1"}}})
}

async fn scene(env: &[(&str, &str)]) -> LoginScene {
    LoginScene::new(&Value::Null, &models(), env).await
}

/// Logs in with this key.
async fn save(scene: &LoginScene, provider: &str, key: &str) -> Result<LoggedIn, LoginError> {
    let request = LoginRequest::new(provider).with_key(Secret::new(key));
    scene.log_in(request, Cancel::new(), |_, _| None).await
}

fn refusal(status: u16, kind: &str, text: &str) -> ServerReply {
    ServerReply::json(status, &json!({"type": "error", "error": {"type": kind, "message": text}}))
}

#[tokio::test]
async fn an_accepted_key_is_stored() {
    let scene = scene(&[("LAB", "sk-of-the-variable")]).await;
    scene.server.reply(ServerReply::sse(AnthropicResponse::new("msg_1").text("Hi").stop("end_turn").concat()));
    let mut asked = Vec::new();
    let done = scene.log_in(LoginRequest::new("lab"), Cancel::new(), |dialog, event| match dialog.question() {
        Some(LoginQuestion::Text(prompt)) if event == LoginEvent::Question => {
            asked.push((prompt.message.clone(), prompt.is_secret));
            Some("  $LAB\n".into())
        }
        _ => None,
    });
    let done = done.await.unwrap();
    assert_eq!(asked, [("API key for lab".to_owned(), true)]);
    assert_eq!((done.unchecked.as_deref(), done.method), (None, LoginMethod::ApiKey));
    assert_eq!(done.to_string(), format!("Saved API key for lab. Credentials saved to {}", scene.path().display()));
    assert_eq!(scene.stored(), json!({"lab": {"type": "api_key", "key": "$LAB"}}));
    let sent = &scene.server.requests()[0];
    assert_eq!((sent.header("x-api-key"), &sent.json()["max_tokens"]), (Some("sk-of-the-variable"), &json!(16)));
}

#[tokio::test]
async fn a_rejected_key_is_not_stored() {
    let scene = scene(&[]).await;
    for (status, kind) in [(401, "authentication_error"), (403, "permission_error")] {
        scene.server.reply(refusal(status, kind, "invalid x-api-key: sk-rejected-by-the-server"));
        let error = save(&scene, "lab", "sk-rejected-by-the-server").await.unwrap_err().to_string();
        assert!(error.starts_with("lab rejected the API key: "), "{error}");
        assert!(error.contains("invalid x-api-key") && !error.contains("sk-rejected"), "{error}");
    }
    scene.assert_untouched(&Value::Null);
    let request = LoginRequest::new("lab").with_key("sk-rejected".into()).without_check();
    let done = scene.log_in(request, Cancel::new(), |_, _| None).await.unwrap();
    assert_eq!((done.unchecked, scene.server.requests().len()), (None, 2), "without a check nothing is sent");
    assert_eq!(scene.stored()["lab"]["key"], "sk-rejected");
}

#[tokio::test]
async fn an_unverifiable_key_is_stored_with_a_warning() {
    let scene = scene(&[]).await;
    for (reply, words) in [
        (Some(refusal(400, "invalid_request_error", "no such model")), "no such model"),
        (Some(refusal(529, "overloaded_error", "busy")), "busy"),
        (None, "127.0.0.1:1"),
    ] {
        let provider = if reply.is_some() { "lab" } else { "nowhere" };
        if let Some(reply) = reply {
            scene.server.reply(reply);
        }
        let why = save(&scene, provider, "sk-1").await.unwrap().unchecked.unwrap();
        assert!(why.contains(words), "{why}");
        assert_eq!(scene.stored()[provider]["key"], "sk-1");
    }
    // A key that is rate limited was recognized.
    scene.server.reply(refusal(429, "rate_limit_error", "slow down"));
    assert_eq!(save(&scene, "lab", "sk-2").await.unwrap().unchecked, None);
    let why = save(&scene, "empty", "sk-3").await.unwrap().unchecked.unwrap();
    assert_eq!(why, "none of its models is known");
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_provider_delays_a_login_by_20_seconds() {
    let scene = scene(&[]).await;
    let gate = Gate::new();
    scene.server.reply(ServerReply::status(200).gate(&gate));
    let begun = tokio::time::Instant::now();
    let done = save(&scene, "lab", "sk-1").await.unwrap();
    assert_eq!(done.unchecked.as_deref(), Some("no answer within 20 s"));
    assert_eq!(begun.elapsed().as_secs(), 20);
    assert_eq!(scene.stored()["lab"]["key"], "sk-1");
}

#[tokio::test]
async fn an_invalid_key_is_an_error() {
    let scene = scene(&[]).await;
    for (key, why) in [
        (" ", "Invalid API key: it is empty"),
        ("sk 1", "Invalid API key: it contains spaces, line breaks or control characters"),
        ("$NO_SUCH", "Invalid API key: it could not be resolved from environment variable: NO_SUCH"),
        ("!false", "Invalid API key: it could not be resolved from shell command: false"),
    ] {
        assert_eq!(save(&scene, "lab", key).await.unwrap_err().to_string(), why);
    }
    scene.assert_untouched(&Value::Null);
}

#[tokio::test]
async fn declining_the_question_cancels() {
    let scene = scene(&[]).await;
    let (ui, mut dialog) = dialog::open(BrowserLocation::Here);
    let cancel = Cancel::new();
    let login = log_in(LoginRequest::new("lab"), &scene.auth, &ui, &cancel);
    let declining = async {
        assert_eq!(dialog.next().await, LoginEvent::Question);
        dialog.answer(None);
    };
    let (done, ()) = tokio::join!(login, declining);
    assert!(matches!(done, Err(LoginError::Cancelled)));
    scene.assert_untouched(&Value::Null);
}

#[tokio::test]
async fn the_status_of_a_provider_names_the_source_that_requests_use() {
    let stored = json!({
        "anthropic": {"type": "oauth", "access": "A", "refresh": "R", "expires": 1},
        "mistral": {"type": "api_key", "key": "k"},
        "xai": {"type": "api_key", "key": "$NO_SUCH"},
    });
    let with_key =
        |key: &str| json!({"baseUrl": "SERVER", "api": "openai-completions", "apiKey": key, "models": [{"id": "m"}]});
    let models = json!({"providers": {"literal": with_key("k"), "command": with_key("!touch ran"), "variable": with_key("$LAB")}});
    let env = [("GROQ_API_KEY", "g"), ("LAB", "l"), ("AWS_PROFILE", "p"), ("ANTHROPIC_API_KEY", "a")];
    let scene = LoginScene::new(&stored, &models, &env).await;
    let mut lines = Vec::new();
    for (id, method) in [
        ("anthropic", None),
        ("anthropic", Some(LoginMethod::Subscription)),
        ("anthropic", Some(LoginMethod::ApiKey)),
        ("mistral", Some(LoginMethod::ApiKey)),
        ("mistral", Some(LoginMethod::Subscription)),
        ("xai", None),
        ("groq", None),
        ("literal", None),
        ("command", None),
        ("variable", None),
        ("amazon-bedrock", None),
        ("openai", None),
    ] {
        let provider = LoginProvider::find(&scene.auth, id).unwrap();
        lines.push(format!("{id} {}", status(&scene.auth, &provider, method).await));
    }
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(LoginStatus::Runtime.to_string(), "✓ runtime API key");
    assert!(!scene.dir.path().join("ran").exists(), "no command runs");
    assert!(scene.server.requests().is_empty(), "no server is asked");
}

#[tokio::test]
async fn providers_are_listed_by_name_with_their_methods() {
    let scene = scene(&[]).await;
    let all = LoginProvider::all(&scene.auth);
    let line = |provider: &LoginProvider| {
        let methods: Vec<&str> = provider.methods.iter().map(|method| method.as_str()).collect();
        format!("{} | {} | {}", provider.id, provider.name, methods.join(", "))
    };
    // Only builds with Cloud Code Assist can sign in to these.
    let of_every_build =
        all.iter().filter(|provider| !matches!(provider.id.as_str(), "google-gemini-cli" | "google-antigravity"));
    insta::assert_snapshot!(of_every_build.map(line).collect::<Vec<_>>().join("\n"));
    let azure = LoginProvider::find(&scene.auth, "azure-openai-responses").unwrap();
    assert_eq!(azure.id.as_str(), "azure", "older ids are known");
}

#[tokio::test]
async fn a_logout_reports_what_it_removed() {
    let login = json!({"type": "oauth", "access": "A", "refresh": "R", "expires": 1});
    let stored = json!({"anthropic": login, "groq": {"type": "api_key", "key": "k"}, "x": {"kept": true}});
    let scene = LoginScene::new(&stored, &json!({"providers": {}}), &[]).await;
    let out = async |id: &str| log_out(&scene.auth, &id.into()).await.unwrap();
    assert_eq!(out("anthropic").await, LogoutOutcome::LoggedOut("Anthropic".into()));
    assert_eq!(out("groq").await, LogoutOutcome::KeyRemoved("Groq".into()));
    assert_eq!(out("groq").await, LogoutOutcome::NothingStored("Groq".into()));
    assert_eq!(scene.stored(), json!({"x": {"kept": true}}));
}
