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
    let partial;
    for await (const event of stream) {
      types.push(event.type);
      partial ??= event.partial;
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
      types, partial: partial.content[0].text, result: (await stream.result()).content[0].text, stopped: [stopped.stopReason, stopped.content],
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
        "types": ["start", "text_start", "text_delta", "text_end", "done"],
        // As in pi, all events have the same message.
        "partial": "Four.", "result": "Four.", "stopped": ["aborted", [{"type": "text", "text": "Half"}]], "scoped": [], "trusted": true,
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

/// Answers for the models of a provider: echoes, calls a tool, thinks for ever, fails.
const PROVIDER: &str = r#"
const usage = { input: 3, output: 4, cacheRead: 0, cacheWrite: 0, totalTokens: 7, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
async function* answer(model, context, options) {
  const message = {
    role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id, usage, stopReason: "stop", timestamp: 1,
  };
  yield { type: "start", partial: message };
  const last = context.messages.at(-1);
  const said = last.content.map((block) => block.text).join("");
  if (said === "fail") throw new Error("no answer today");
  if (said === "use it") {
    const toolCall = { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.txt" } };
    message.content.push({ ...toolCall, arguments: {} });
    yield { type: "toolcall_start", contentIndex: 0, partial: message };
    yield { type: "toolcall_delta", contentIndex: 0, delta: '{"path": "a.txt"}', partial: message };
    message.content[0] = toolCall;
    yield { type: "toolcall_end", contentIndex: 0, toolCall, partial: message };
    message.stopReason = "toolUse";
    yield { type: "done", reason: "toolUse", message };
    return;
  }
  const tools = context.tools.map((tool) => tool.name).join();
  const system = context.messages[0].role;
  message.content.push({ type: "thinking", thinking: "Hm.", thinkingSignature: "s1" });
  yield { type: "thinking_start", contentIndex: 0, partial: message };
  yield { type: "thinking_delta", contentIndex: 0, delta: "Hm.", partial: message };
  yield { type: "thinking_end", contentIndex: 0, content: "Hm.", partial: message };
  const text = `${last.role} said ${said} with ${options.apiKey}, ${options.headers["x-a"]}, ${tools}, ${system}`;
  message.content.push({ type: "text", text });
  yield { type: "text_start", contentIndex: 1, partial: message };
  yield { type: "text_delta", contentIndex: 1, delta: text, partial: message };
  if (said === "wait") await new Promise((done) => options.signal.addEventListener("abort", done));
  yield { type: "text_end", contentIndex: 1, content: text, partial: message };
  yield { type: "done", reason: "stop", message };
}
module.exports = function (pi) {
  const model = { name: "M", reasoning: false, input: ["text"], cost: usage.cost, contextWindow: 100000, maxTokens: 1000 };
  const provider = { baseUrl: "http://x", apiKey: "k1", headers: { "x-a": "b" }, api: "echo-api", streamSimple: answer };
  pi.registerProvider("echo", { ...provider, models: [{ id: "e1", ...model }], oauth: { name: "Echo" } });
  pi.on("session_start", () => pi.registerProvider("later", { ...provider, apiKey: "k2", models: [{ id: "l1", ...model }] }));
};
"#;

/// Sends a prompt and returns the last message.
async fn last_message(client: &mut PinchClient, prompt: &str) -> Value {
    client.say(&json!({"type": "prompt", "message": prompt})).await;
    let mut lines = client.until(|line| line["type"] == "agent_settled").await;
    lines.retain(|line| line["type"] == "message_end");
    lines.pop().unwrap()["message"].take()
}

#[tokio::test]
async fn a_script_answers_for_the_models_of_its_provider() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/echo.js", PROVIDER);
    user.write("a.txt", "contents");
    let mut client = PinchClient::start(user.command(&["--mode", "rpc", "--model", "echo/e1", "--tools", "read"]));
    let answer = last_message(&mut client, "hello").await;
    let text = "user said hello with k1, b, read, system";
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "s1"}, {"type": "text", "text": text},
    ]);
    assert_eq!(answer["content"], expected);
    assert_eq!((&answer["usage"]["totalTokens"], &answer["stopReason"]), (&json!(7), &json!("stop")));

    let answer = last_message(&mut client, "use it").await;
    let text = answer["content"][1]["text"].as_str().unwrap();
    assert!(text.starts_with("toolResult said contents"), "{text}");

    let failed = last_message(&mut client, "fail").await;
    assert_eq!((&failed["stopReason"], &failed["errorMessage"]), (&json!("error"), &json!("no answer today")));

    client.say(&json!({"type": "prompt", "message": "wait"})).await;
    client.until(|line| line["assistantMessageEvent"]["type"] == "text_delta").await;
    client.say(&json!({"type": "abort"})).await;
    let lines = client.until(|line| line["type"] == "agent_settled").await;
    let stopped = lines.iter().rfind(|line| line["type"] == "message_end").unwrap();
    assert_eq!(stopped["message"]["stopReason"], "aborted");
    assert!(stopped["message"]["content"][1]["text"].as_str().unwrap().starts_with("user said wait"));

    // One that is registered during the session can be used at once.
    client.ask(&json!({"type": "set_model", "provider": "later", "modelId": "l1"})).await;
    let answer = last_message(&mut client, "and you?").await;
    assert_eq!(answer["content"][1]["text"], "user said and you? with k2, b, read, system");

    let printed = user.run(&["-p", "--model", "echo/e1", "--tools", "read", "hello"]).await;
    assert_eq!((printed.code, printed.out.as_str()), (Some(0), "user said hello with k1, b, read, system\n"));
    assert!(printed.err.contains("oauth of provider echo is not supported by pinch, and ignored"), "{}", printed.err);
}
