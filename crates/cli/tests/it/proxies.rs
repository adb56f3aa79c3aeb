//! The proxy in settings.json.

use serde_json::{Value, json};

use crate::help::TestUser;

/// Creates a user whose model is reached through a proxy, which is the scripted server.
async fn user() -> TestUser {
    let user = TestUser::new().await;
    let models = std::fs::read_to_string(user.path("agent/models.json")).unwrap();
    let mut models: Value = serde_json::from_str(&models).unwrap();
    models["providers"]["far"] = models["providers"]["local"].clone();
    models["providers"]["far"]["baseUrl"] = json!("http://model.test");
    user.write("agent/models.json", &models.to_string());
    let settings = json!({"httpProxy": format!(" {} ", user.server.url()), "retry": {"enabled": false}});
    user.write("agent/settings.json", &settings.to_string());
    user
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_settings() {
    let user = user().await;
    user.answer("hi");
    let ran = user.run(&["--model", "far/m1", "-p", "x"]).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "hi\n", ""));
    assert_eq!(user.server.requests()[0].path, "http://model.test/v1/messages?beta=true");
}

#[tokio::test]
async fn variables_take_precedence_over_the_proxy_of_the_settings() {
    let user = user().await;
    let mut command = user.command(&["--model", "far/m1", "-p", "x"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:1");
    assert_eq!(command.output().await.unwrap().status.code(), Some(3));
    assert!(user.server.requests().is_empty());
}
