//! Extensions in a user's directory.

use std::time::Duration;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::TestUser;
use crate::rpc::PinchClient;

/// Shows a dialog when a session starts, provides prompts, and reloads everything.
const SCRIPT: &str = r#"
module.exports = function (pi) {
  pi.on("session_start", async (event, ctx) => {
    ctx.ui.setTitle(`${event.reason} ${await ctx.ui.confirm("Begin?", "")}`);
  });
  pi.on("resources_discover", () => ({ promptPaths: ["found"] }));
  pi.registerCommand("anew", { handler: (args, ctx) => ctx.reload() });
};
"#;

/// Answers the dialog at the start with yes; returns the extension's reaction.
async fn begin(client: &mut PinchClient) -> Value {
    let asked = client.until(|line| line["method"] == "confirm").await.pop().unwrap();
    assert_eq!(asked["title"], "Begin?");
    client.say(&json!({"type": "extension_ui_response", "id": asked["id"], "confirmed": true})).await;
    client.until(|line| line["method"] == "setTitle").await.pop().unwrap()["title"].take()
}

/// Returns the prompt templates, each with its source.
async fn templates(client: &mut PinchClient) -> Vec<(String, String)> {
    let answer = client.ask(&json!({"type": "get_commands"})).await.pop().unwrap();
    let commands = answer["data"]["commands"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    commands
        .filter(|command| command["source"] == "prompt")
        .map(|command| (text(&command["name"]), text(&command["sourceInfo"]["source"])))
        .collect()
}

#[tokio::test]
async fn a_script_asks_provides_prompts_and_reloads_without_a_saved_session() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/finder.js", SCRIPT);
    user.write("found/hello.md", "Hello.");
    let mut client = PinchClient::of(&user);
    assert_eq!(begin(&mut client).await, "startup true");
    let found = |name: &str| (name.to_owned(), "extension:finder".to_owned());
    assert_eq!(templates(&mut client).await, [found("hello")]);
    user.write("found/bye.md", "Bye.");
    client.say(&json!({"type": "prompt", "message": "/anew"})).await;
    assert_eq!(begin(&mut client).await, "reload true");
    assert_eq!(templates(&mut client).await, [found("bye"), found("hello")]);
    user.answer("Farewell.");
    client.say(&json!({"type": "prompt", "message": "/bye"})).await;
    client.until(|line| line["type"] == "agent_settled").await;
    assert_eq!(user.asked().unwrap()[0]["content"][0]["text"], "Bye.");
}

#[tokio::test]
async fn a_script_imports_libraries_that_are_installed_for_all_extensions() {
    // Only newer versions of Node.js can be told where else to look.
    let has_hooks = "process.exit(require('module').registerHooks && require('module').stripTypeScriptTypes ? 0 : 1)";
    if !std::process::Command::new("node").args(["-e", has_hooks]).status().is_ok_and(|status| status.success()) {
        return;
    }
    let user = TestUser::new().await;
    let package = r#"{"name": "pen", "version": "1.0.0", "type": "module", "exports": "./index.ts"}"#;
    user.write("agent/npm/node_modules/pen/package.json", package);
    user.write("agent/npm/node_modules/pen/index.ts", "export enum Ink { Blue = 'blue' }\n");
    user.write("agent/extensions/writer/helper.ts", "export const word: string = 'written in';\n");
    let script = r#"
        import { Ink } from "pen";
        import { word } from "./helper.js";
        export default function (pi: { on: Function }) {
          pi.on("session_start", (event: unknown, ctx: any) => ctx.ui.setTitle(`${word} ${Ink.Blue}`));
        }
    "#;
    user.write("agent/extensions/writer/index.ts", script);
    let mut command = user.command(&["--mode", "rpc", "--model", "local/m1"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut client = PinchClient::start(command);
    let title = client.until(|line| line["method"] == "setTitle").await.pop().unwrap();
    assert_eq!(title["title"], "written in blue");
}

/// Looks models up, and calls one: whole, streamed, and cancelled.
const MODELS: &str = r#"
module.exports = function (pi) {
  pi.registerCommand("ask", { async handler(args, ctx) {
    const registry = ctx.modelRegistry;
    const model = registry.find("local", "m1");
    const available = registry.getAvailable().map((model) => model.id);
    const messages = [{ role: "user", content: [{ type: "text", text: "How many?" }], timestamp: 0 }];
    const options = { maxTokens: 77, temperature: 0.5, headers: { "x-team": "blue" } };
    const whole = await registry.complete(model, { systemPrompt: "Count.", messages }, options);
    const types = [];
    const stream = registry.streamSimple(model, { messages });
    for await (const event of stream) {
      const last = event.partial?.content.at(-1)?.text;
      types.push(last === undefined ? event.type : `${event.type} ${last}`);
    }
    const stop = new AbortController();
    const endless = registry.stream(model, { messages }, { signal: stop.signal });
    for await (const event of endless) if (event.type === "text_delta") stop.abort();
    const stopped = await endless.result();
    ctx.ui.setTitle(JSON.stringify({
      unknown: registry.find("local", "m2") ?? null, available, many: registry.getAll().length > 100,
      configured: [registry.hasConfiguredAuth(model), registry.hasConfiguredAuth({ provider: "openai" })],
      login: registry.isUsingOAuth(model), name: registry.getProviderDisplayName("openai"),
      keys: [await registry.getApiKeyAndHeaders(registry.find("keyed", "k1")), await registry.getApiKeyForProvider("keyed")],
      whole: [whole.role, whole.content[0].text, whole.stopReason, whole.usage.output > 0],
      types, result: (await stream.result()).content[0].text, stopped: [stopped.stopReason, stopped.content],
      scoped: ctx.scopedModels, trusted: ctx.isProjectTrusted(),
    }));
  } });
};
"#;

#[tokio::test]
async fn a_script_looks_up_models_and_calls_them_with_the_users_credentials() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/asker.js", MODELS);
    let mut models: Value = serde_json::from_slice(&std::fs::read(user.path("agent/models.json")).unwrap()).unwrap();
    models["providers"]["keyed"] = json!({
        "baseUrl": "http://127.0.0.1:9", "api": "openai-completions", "apiKey": "secret", "headers": {"x-a": "b"},
        "models": [{"id": "k1"}],
    });
    user.write("agent/models.json", &models.to_string());
    user.answer("Three.");
    user.answer("Four.");
    let half = AnthropicResponse::new("msg_3").text("Half").frames().concat();
    user.server.reply(ServerReply::events().send(half).pause(Duration::from_secs(60)));
    let mut client = PinchClient::of(&user);
    client.say(&json!({"type": "prompt", "message": "/ask"})).await;
    let told = client.until(|line| line["method"] == "setTitle").await.pop().unwrap();
    let told: Value = serde_json::from_str(told["title"].as_str().unwrap()).unwrap();
    let expected = json!({
        "unknown": null, "available": ["m1", "m1", "k1"], "many": true, "configured": [true, false], "login": false,
        "name": "OpenAI", "keys": [{"ok": true, "apiKey": "secret", "headers": {"x-a": "b"}}, "secret"],
        "whole": ["assistant", "Three.", "stop", true],
        // As in pi, all events have the same message.
        "types": ["start Four.", "text_start Four.", "text_delta Four.", "text_end Four.", "done"],
        "result": "Four.", "stopped": ["aborted", [{"type": "text", "text": "Half"}]], "scoped": [], "trusted": true,
    });
    assert_eq!(told, expected);
    let request = &user.server.requests()[0];
    let body = request.json();
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(77), &json!(0.5)));
    assert_eq!(body["system"][0]["text"], "Count.");
    assert_eq!(request.header("x-team"), Some("blue"));
    client.until(|line| line["type"] == "response").await;
    let state = client.ask(&json!({"type": "get_state"})).await.pop().unwrap();
    assert_eq!(state["data"]["messageCount"], 0, "the conversation has none of it");
}
