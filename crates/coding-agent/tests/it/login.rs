//! Logging in with a subscription: asked through a dialog, stored once, and not stored on failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::auth::{AuthStorage, Logins};
use pinch_coding_agent::login::dialog::{self, BrowserLocation};
use pinch_coding_agent::login::{
    LoggedIn, LoginDialog, LoginError, LoginEvent, LoginMethod, LoginProvider, LoginQuestion, LoginRequest,
    LoginStatus, log_in, status,
};
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_llm::oauth::{OAuthRegistry, anthropic, codex, copilot};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::{Env, Host};
use pinch_testing::server::{Gate, Server, ServerReply};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::refresh::RewiredTransport;

const JWT: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";

/// A user whose providers all share one login server.
pub(crate) struct LoginScene {
    pub(crate) dir: TempDir,
    pub(crate) server: Server,
    pub(crate) auth: RegistryAuth,
}

impl LoginScene {
    pub(crate) async fn new(stored: &Value, models: &Value, env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start().await.unwrap();
        let models = models.to_string().replace("SERVER", &server.url());
        std::fs::write(dir.path().join("models.json"), models).unwrap();
        if !stored.is_null() {
            std::fs::write(dir.path().join("auth.json"), stored.to_string()).unwrap();
        }
        let env = env.iter().copied().chain([("PATH", "/usr/bin:/bin")]).collect();
        let auth = Self::auth(dir.path(), &server, env);
        Self { dir, server, auth }
    }

    fn auth(dir: &Path, server: &Server, env: Env) -> RegistryAuth {
        let mut flows = OAuthRegistry::built_in();
        flows.register(Arc::new(anthropic::AnthropicLogin::with_callback_port(0)));
        flows.register(Arc::new(codex::CodexLogin::with_callback_port(0)));
        flows.register(Arc::new(copilot::Copilot::with_models(vec!["m1".into()])));
        let (registry, problems) = ModelRegistry::load(&dir.join("models.json"));
        assert!(problems.is_empty(), "{problems:?}");
        let storage = AuthStorage::file(&dir.join("auth.json"));
        let logins = Logins::new(flows, Arc::new(RewiredTransport::to(&server.url())));
        let host = Host::builder().clock(1_700_000_000_000, 0).env(env).build();
        RegistryAuth::new(Arc::new(registry), storage, None, host).with_logins(logins)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("auth.json")
    }

    /// Returns the content of auth.json.
    pub(crate) fn stored(&self) -> Value {
        std::fs::read(self.path()).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// Checks that a failed login left nothing behind.
    pub(crate) fn assert_untouched(&self, before: &Value) {
        assert_eq!(self.stored(), *before);
        let mut names: Vec<_> =
            std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != "auth.json" && name != "models.json");
        assert!(names.is_empty(), "{names:?}");
    }

    /// Logs in; a function of the dialog answers the questions, leaving one open with `None`.
    pub(crate) async fn log_in(
        &self,
        request: LoginRequest,
        cancel: Cancel,
        mut answer: impl FnMut(&LoginDialog, LoginEvent) -> Option<String>,
    ) -> Result<LoggedIn, LoginError> {
        let (ui, mut dialog) = dialog::open(BrowserLocation::Here);
        let mut login = std::pin::pin!(log_in(request, &self.auth, &ui, &cancel));
        loop {
            tokio::select! {
                done = &mut login => return done,
                event = dialog.next() => if let Some(answer) = answer(&dialog, event) {
                    dialog.answer(Some(answer));
                },
            }
        }
    }
}

fn tokens() -> ServerReply {
    ServerReply::json(200, &json!({"access_token": JWT, "refresh_token": "R", "expires_in": 3_600}))
}

fn request(provider: &str) -> LoginRequest {
    LoginRequest::new(provider)
}

/// Pastes a code while waiting for the browser.
fn paste(code: &str) -> impl FnMut(&LoginDialog, LoginEvent) -> Option<String> {
    move |dialog, event| {
        let is_paste = event == LoginEvent::Question && dialog.question() == Some(&LoginQuestion::Paste);
        is_paste.then(|| code.to_owned())
    }
}

#[tokio::test]
async fn a_login_is_stored_privately_and_the_rest_is_kept() {
    let others =
        json!({"future": {"type": "new", "z": [1]}, "groq": {"type": "api_key", "key": "k", "env": {"A": "b"}}});
    let scene = LoginScene::new(&others, &json!({"providers": {}}), &[]).await;
    scene.server.reply(tokens());
    let subscription = request("Anthropic").with_method(Some(LoginMethod::Subscription));
    let done = scene.log_in(subscription, Cancel::new(), paste("CC")).await.unwrap();
    assert_eq!((done.provider.as_str(), done.method), ("anthropic", LoginMethod::Subscription));
    assert_eq!(done.to_string(), format!("Logged in to Anthropic. Credentials saved to {}", scene.path().display()));
    let mut expected = others;
    expected["anthropic"] =
        json!({"type": "oauth", "refresh": "R", "access": JWT, "expires": 1_700_000_000_000_i64 + 3_300_000});
    assert_eq!(scene.stored(), expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(scene.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let provider = LoginProvider::find(&scene.auth, "anthropic").unwrap();
    assert_eq!(status(&scene.auth, &provider, None).await, LoginStatus::Configured);
    let host = Host::builder().clock(0, 0).build();
    let key = scene.auth.logins().resolve(&provider.id, scene.auth.storage(), &host);
    assert_eq!(key.await.unwrap().unwrap().key.unwrap().reveal(), JWT);
}

#[tokio::test]
async fn the_user_chooses_among_several_methods() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    scene.server.reply(tokens());
    let mut ways = Vec::new();
    let done = scene.log_in(request("anthropic"), Cancel::new(), |dialog, event| match dialog.question() {
        Some(LoginQuestion::Choice(choice)) if event == LoginEvent::Question => {
            ways = choice.options.iter().map(|option| option.label.clone()).collect();
            Some("subscription".into())
        }
        Some(LoginQuestion::Paste) => Some("CC".into()),
        _ => None,
    });
    assert_eq!(done.await.unwrap().method, LoginMethod::Subscription);
    assert_eq!(ways, ["Use a subscription", "Use an API key"]);
}

#[tokio::test]
async fn a_chatgpt_login_stores_the_account() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    scene.server.reply(tokens());
    let done = scene.log_in(request("openai-codex"), Cancel::new(), paste("CC")).await.unwrap();
    assert!(done.to_string().starts_with("Logged in to ChatGPT Plus/Pro"), "{done}");
    assert_eq!(scene.stored()["openai-codex"]["accountId"], "acc-1");
}

fn device() -> ServerReply {
    let device = json!({"device_code": "DC", "user_code": "AB-CD", "verification_uri": "https://github.com/login/device",
        "interval": 0, "expires_in": 900});
    ServerReply::json(200, &device)
}

#[tokio::test]
async fn a_copilot_login_shows_the_code_and_asks_for_the_domain() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    scene.server.reply(device()).reply(ServerReply::json(200, &json!({"access_token": "gho_x"})));
    scene.server.reply(ServerReply::json(200, &json!({"token": "tid=1", "expires_at": 2_000_000_000})));
    scene.server.reply(ServerReply::status(200));
    let mut code = None;
    let copilot = request("github-copilot").with_method(Some(LoginMethod::Subscription));
    let done = scene.log_in(copilot, Cancel::new(), |dialog, event| {
        code = dialog.page().and_then(|page| page.user_code.clone()).or(code.take());
        (event == LoginEvent::Question).then(|| "ghe.corp.com".into())
    });
    assert_eq!(done.await.unwrap().to_string().split('.').next(), Some("Logged in to GitHub Copilot"));
    assert_eq!(code.as_deref(), Some("AB-CD"));
    let stored = &scene.stored()["github-copilot"];
    assert_eq!((&stored["refresh"], &stored["enterpriseUrl"]), (&json!("gho_x"), &json!("ghe.corp.com")));
}

#[tokio::test]
async fn a_rejected_sign_in_stores_nothing() {
    let before = json!({"anthropic": {"type": "api_key", "key": "old"}});
    let scene = LoginScene::new(&before, &json!({"providers": {}}), &[]).await;
    let claude = || request("anthropic").with_method(Some(LoginMethod::Subscription));
    let error = scene.log_in(claude(), Cancel::new(), paste("CC#forged")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Failed to log in to Anthropic: OAuth state mismatch: the code belongs to another login"
    );
    scene.server.reply(ServerReply::json(400, &json!({"error": "invalid_grant"})));
    let error = scene.log_in(claude(), Cancel::new(), paste("CC")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Failed to log in to Anthropic: Anthropic token exchange failed (400): invalid_grant"
    );
    scene.server.reply(device()).reply(ServerReply::json(200, &json!({"error": "access_denied"})));
    let copilot = request("github-copilot").with_method(Some(LoginMethod::Subscription));
    let blank = |_: &LoginDialog, event| (event == LoginEvent::Question).then(String::new);
    let error = scene.log_in(copilot, Cancel::new(), blank).await.unwrap_err();
    assert_eq!(error.to_string(), "Failed to log in to GitHub Copilot: Device flow failed: access_denied");
    scene.assert_untouched(&before);
}

#[tokio::test]
async fn unknown_providers_and_methods_are_errors() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    for (provider, method, expected) in [
        ("nobody", None, "Unknown provider \"nobody\""),
        ("groq", Some(LoginMethod::Subscription), "Groq has no subscription login"),
        ("openai-codex", Some(LoginMethod::ApiKey), "ChatGPT Plus/Pro (Codex Subscription) has no API key login"),
        (
            "amazon-bedrock",
            None,
            "Amazon Bedrock has no login. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
             AWS_BEARER_TOKEN_BEDROCK",
        ),
    ] {
        let done = scene.log_in(request(provider).with_method(method), Cancel::new(), |_, _| None).await;
        assert_eq!(done.unwrap_err().to_string(), expected);
    }
    scene.assert_untouched(&Value::Null);
}

/// Users should not sign in for nothing: an unwritable file is an error before the first question.
#[tokio::test]
async fn a_damaged_file_is_an_error_before_anything_is_asked() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    for text in ["{half", "{\"groq\": {}} // mine"] {
        std::fs::write(scene.path(), text).unwrap();
        let never = |dialog: &LoginDialog, _| panic!("asked {:?}", dialog.question());
        let error = scene.log_in(request("anthropic"), Cancel::new(), never).await.unwrap_err();
        assert!(matches!(error, LoginError::Store(_)), "{error}");
        assert_eq!(std::fs::read_to_string(scene.path()).unwrap(), text);
    }
}

#[tokio::test]
async fn a_login_waits_for_a_process_that_holds_the_lock() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    scene.server.reply(tokens());
    let lock = scene.dir.path().join("auth.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let mut progress = Vec::new();
    let done = scene.log_in(request("openai-codex"), Cancel::new(), |dialog, event| {
        if event == LoginEvent::Progress {
            progress.extend(dialog.progress().next_back().map(str::to_owned));
            if progress.last().unwrap().contains("holds the lock") {
                std::fs::remove_dir(&lock).unwrap();
            }
        }
        paste("CC")(dialog, event)
    });
    assert!(done.await.is_ok());
    assert_eq!(scene.stored()["openai-codex"]["refresh"], "R");
    assert_eq!(progress.len(), 2, "{progress:?}");
}

/// Cancelling ends a login wherever it waits, and nothing is stored.
#[tokio::test]
async fn a_login_is_cancelled_at_every_step() {
    let scene = LoginScene::new(&Value::Null, &json!({"providers": {}}), &[]).await;
    let cancelled =
        async |request: LoginRequest, cancel_at: &dyn Fn(&LoginDialog, LoginEvent) -> bool, answer: &str| {
            let cancel = Cancel::new();
            let done = scene.log_in(request, cancel.clone(), |dialog, event| {
                if cancel_at(dialog, event) {
                    cancel.cancel(CancelReason::User);
                    return None;
                }
                (event == LoginEvent::Question).then(|| answer.to_owned())
            });
            assert!(matches!(done.await, Err(LoginError::Cancelled)));
            scene.assert_untouched(&Value::Null);
        };
    let at_question = |_: &LoginDialog, event| event == LoginEvent::Question;
    cancelled(request("anthropic"), &at_question, "").await;
    cancelled(request("groq"), &at_question, "").await;
    cancelled(request("openai-codex"), &at_question, "").await;
    let copilot = || request("github-copilot").with_method(Some(LoginMethod::Subscription));
    cancelled(copilot(), &at_question, "").await;
    // While waiting for the device.
    scene.server.reply(device());
    cancelled(copilot(), &|_, event| event == LoginEvent::Page, "").await;
    // While exchanging the code.
    let (gate, cancel, n_requests) = (Gate::new(), Cancel::new(), scene.server.requests().len());
    scene.server.reply(ServerReply::status(200).gate(&gate).send("{}"));
    let cancelling = async {
        scene.server.wait_for_requests(n_requests + 1).await;
        cancel.cancel(CancelReason::User);
    };
    let login = scene.log_in(request("openai-codex"), cancel.clone(), paste("CC"));
    assert!(matches!(tokio::join!(login, cancelling).0, Err(LoginError::Cancelled)));
    scene.assert_untouched(&Value::Null);
    // While another process holds the lock.
    let lock = scene.dir.path().join("auth.json.lock");
    scene.server.reply(tokens());
    let at_lock = |dialog: &LoginDialog, _| {
        let waits = dialog.progress().any(|line| line.contains("holds the lock"));
        if waits {
            std::fs::remove_dir(&lock).unwrap();
        }
        waits
    };
    std::fs::create_dir(&lock).unwrap();
    cancelled(request("openai-codex"), &at_lock, "CC").await;
}
