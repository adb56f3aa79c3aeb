//! Extensions in a user's directory.

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
