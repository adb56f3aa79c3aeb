//! Extensions in JavaScript, through the host that pinch starts them with.

use pinch_coding_agent::entry::EntryBody;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::Reply as Says;
use serde_json::json;

use crate::extension_hooks::failures;
use crate::extension_process::{Stage, program};

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension-host/pinch-extension-host.mjs");

/// A session with an extension that has this text; `None` where there is no Node.
async fn stage(text: &str, replies: impl IntoIterator<Item = Says>) -> Option<(Stage, tempfile::TempDir)> {
    let node = program("node")?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("extension.mjs");
    std::fs::write(&file, text).unwrap();
    let command = [node.to_str().unwrap(), HOST, file.to_str().unwrap()].map(str::to_owned);
    Some((Stage::running(command.to_vec(), replies).await, folder))
}

#[tokio::test]
async fn what_is_registered_between_load_and_session_counts() {
    let text = r#"
        export default function (pi) {
          const tool = (name) => ({ name, description: name, parameters: { type: "object" }, execute: async () => ({ content: name }) });
          pi.registerTool(tool("early"));
          // pinch has asked for everything by then, and there is no session yet.
          process.stdin.once("data", () => setImmediate(() => pi.registerTool(tool("between"))));
          pi.on("session_start", async () => {
            await pi.registerTool(tool("late"));
            let refused = "";
            try { pi.registerCommand("c", { handler() {} }); } catch (error) { refused = error.message; }
            await pi.appendEntry("refused", refused);
          });
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Says::text("ok")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    let names: Vec<String> = stage.extensions.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["early", "between", "late"]);
    let refused = stage.scene.session.log().entries().find_map(|entry| match &entry.body {
        EntryBody::Custom { data, .. } => data.clone(),
        _ => None,
    });
    assert_eq!(refused, Some(json!("pi.registerCommand must be called while the extension is loaded")));
}

#[tokio::test]
async fn several_handlers_of_one_file_all_count() {
    let text = r#"
        export default function (pi) {
          const say = (content) => ({ customType: "c", content, display: true });
          pi.on("before_agent_start", () => ({ message: say("one"), systemPrompt: "first" }));
          pi.on("before_agent_start", (event) => ({ message: say("two"), systemPrompt: event.systemPrompt + "+second" }));
          const off = pi.on("before_agent_start", () => ({ message: say("never") }));
          off();
          pi.on("turn_end", () => ({ entries: [{ type: "custom", customType: "a", data: 1 }] }));
          pi.on("turn_end", (event) => ({ entries: [...event.entries, { type: "custom", customType: "b", data: event.outcome }] }));
          let n = 0;
          pi.on("agent_before_settle", () => {
            if (n++ > 0) return;
            return { entries: [{ type: "custom_message", customType: "c", content: "more", display: true }], continue: true };
          });
          pi.on("context_with_system", (event) => ({ messages: [...event.messages, { role: "user", content: "last", timestamp: 0 }] }));
        }"#;
    let Some((mut stage, _folder)) = stage(text, [Says::text("1"), Says::text("2")]).await else { return };
    assert_eq!(failures(&stage.ask("hi").await), []);
    assert_eq!(stage.texts(), ["system", "hi", "custom", "custom", "1", "custom", "2"]);
    let said: Vec<String> = stage.scene.provider.requests()[1]
        .messages
        .iter()
        .filter_map(|message| match &**message {
            Message::User(user) => Some(user.content.text("")),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["hi", "one", "two", "more", "last"]);
    let Message::System(asked) = &*stage.scene.provider.requests()[0].messages[0] else { panic!() };
    assert_eq!(asked.content.text(""), "first+second");
    let states: Vec<String> = stage
        .scene
        .session
        .log()
        .entries()
        .filter_map(|entry| match &entry.body {
            EntryBody::Custom { custom_type, data } => {
                Some(format!("{custom_type} {}", data.clone().unwrap_or_default()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(states, ["a 1", "b \"completed\"", "a 1", "b \"completed\""]);
    stage.extensions.close().await;
}
