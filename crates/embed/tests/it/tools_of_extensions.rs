//! Tools of extensions follow the same policies and limits as those of the run.

use std::sync::Arc;

use pinch_agent_core::tool::{FnTool, JsonObject, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::{Extension, ExtensionError, ExtensionHandle, Points, Registrations};
use pinch_coding_agent::tools::CODING;
use pinch_embed::Caller;
use pinch_embed::engine::Engine;
use pinch_embed::run::RunError;
use pinch_llm::schema::Schema;
use pinch_tools::pipeline::PluginTools;
use serde_json::{Value, json};

use crate::world::{World, answer, call, stream, within};

/// An extension with two tools, as if loaded from this file.
struct Lobsters(&'static str);

impl Extension for Lobsters {
    fn name(&self) -> &str {
        self.0
    }

    fn points(&self) -> Points {
        Points::of([])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        let spec = |name: &str| ToolSpec::new(name, "About lobsters.", Schema::new(json!({"type": "object"})));
        to.tool(Arc::new(FnTool::new(spec("lobster_run"), |_: JsonObject, _| async {
            Ok(ToolOutput::text("lobster ".repeat(50_000)))
        })));
        to.tool(Arc::new(FnTool::new(spec("lobster_fail"), |_: JsonObject, _| async {
            Err::<ToolOutput, _>(ToolError::new("no lobsters"))
        })));
        Ok(())
    }
}

fn engine(world: &World, file: &'static str) -> Engine {
    world.built(|builder| builder.builtin_tools(CODING).extension(Arc::new(Lobsters(file))))
}

async fn offered(tools: Value, file: &'static str) -> Result<Vec<String>, RunError> {
    let world = World::with(|config| config["tools"] = tools).await;
    let engine = engine(&world, file);
    world.server.reply(stream(answer("m1", "Hello.")));
    within(engine.run(engine.request("s1", None, None, "hello")).finish()).await?;
    let body = world.server.requests()[0].json();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    Ok(body["tools"].as_array().into_iter().flatten().map(name).collect())
}

#[tokio::test]
async fn tools_of_channels_and_plugins_come_in_their_order_and_under_the_lists() {
    fn tool(name: &str) -> FnTool {
        let spec = ToolSpec::new(name, "A tool.", Schema::new(json!({"type": "object"})));
        FnTool::new(spec, |_: JsonObject, _| async { Ok::<_, ToolError>("fine") })
    }
    let plugin = PluginTools {
        id: "garden".to_owned(),
        tools: vec![Arc::new(tool("plant")), Arc::new(tool("dig")), Arc::new(tool("read"))],
        optional: vec!["dig".to_owned()],
    };
    for (tools, disabled, expect) in [
        (json!({}), false, &["read", "message", "plant", "own"][..]),
        (json!({}), true, &["read", "plant", "own"]),
        (json!({"allow": ["read", "garden"]}), false, &["read", "plant", "dig"]),
        (json!({"deny": ["group:plugins"]}), false, &["read", "message", "own"]),
        (json!({"deny": ["message"]}), false, &["read", "plant", "own"]),
    ] {
        let world = World::with(|config| config["tools"] = tools.clone()).await;
        let engine = world.built(|builder| {
            let builder = builder.builtin_tools(["read"]).channel_tool(tool("message"));
            builder.tool(tool("own")).plugin_tools(plugin.clone())
        });
        world.server.reply(stream(answer("m1", "Hello.")));
        let mut request = engine.request("s1", None, None, "hello");
        request.disable_message_tool = disabled;
        within(engine.run(request).finish()).await.unwrap();
        let body = world.server.requests()[0].json();
        let names: Vec<&str> =
            body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expect, "{tools} {disabled}");
    }
}

#[tokio::test]
async fn tools_can_be_reserved_for_the_owner() {
    const RESERVED: [&str; 3] = ["bash", "lobster_run", "probe"];
    let world = World::new().await;
    let probe = FnTool::new(
        ToolSpec::new("probe", "Probes.", Schema::new(json!({"type": "object"}))),
        |_: JsonObject, _| async { Ok::<_, ToolError>("fine") },
    );
    let engine = world.built(|builder| {
        builder.builtin_tools(CODING).extension(Arc::new(Lobsters("/ext/lob.ts"))).tool(probe).owner_only(RESERVED)
    });
    for caller in [Caller::new(), Caller::new().owner()] {
        world.server.reply(stream(answer("m1", "Hello.")));
        let request = engine.request("s1", None, None, "hello").caller(caller.clone());
        within(engine.run(request).finish()).await.unwrap();
        let body = world.server.requests().last().unwrap().json();
        let names: Vec<&str> =
            body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"read") && names.contains(&"lobster_fail"), "{names:?}");
        assert!(RESERVED.iter().all(|name| names.contains(name) == caller.is_owner), "{names:?}");
    }
}

#[tokio::test]
async fn rules_name_tools_of_extensions_by_tool_by_file_and_as_a_group() {
    const ALL: [&str; 6] = ["read", "bash", "edit", "write", "lobster_run", "lobster_fail"];
    let cases: [(Value, &[&str]); 8] = [
        (json!({}), &ALL),
        (json!({"deny": ["lobster_run"]}), &["read", "bash", "edit", "write", "lobster_fail"]),
        (json!({"deny": ["group:plugins"]}), &ALL[..4]),
        (json!({"deny": ["lob"]}), &ALL[..4]),
        (json!({"allow": ["read", "lob"]}), &["read", "lobster_run", "lobster_fail"]),
        (json!({"allow": ["read", "group:plugins"]}), &["read", "lobster_run", "lobster_fail"]),
        (json!({"allow": ["read"]}), &["read"]),
        // A list that only names plugins does not remove the other tools.
        (json!({"allow": ["lobster_run"]}), &ALL),
    ];
    for (tools, expect) in cases {
        let names = offered(tools.clone(), "/home/u/extensions/lob.js").await;
        assert_eq!(names.unwrap(), expect, "{tools}");
    }
    // The name of a tool does not become the name of a plugin.
    assert_eq!(offered(json!({"deny": ["read"]}), "read.ts").await.unwrap(), ALL[1..]);
    let all_denied = offered(json!({"allow": ["nothing"]}), "lob.js").await.unwrap_err();
    assert!(all_denied.to_string().contains("lobster_run is not in tools.allow"), "{all_denied}");
}

#[tokio::test]
async fn decisions_about_tools_of_extensions_are_explained() {
    let world = World::with(|config| config["tools"] = json!({"deny": ["lob"]})).await;
    let engine = engine(&world, "lob.js");
    let decision = engine.tool_policy(engine.request("s1", None, None, "go")).unwrap();
    assert_eq!(decision.explain("lobster_run").to_string(), "lobster_run is denied by tools.deny (lob)");
}

#[tokio::test]
async fn results_of_extensions_are_limited_and_their_failures_are_readable() {
    let world = World::new().await;
    let engine = engine(&world, "lob.js");
    let replies =
        [call("c1", "lobster_run", &json!({})), call("c2", "lobster_fail", &json!({})), answer("m1", "Done.")];
    replies.into_iter().for_each(|reply| _ = world.server.reply(stream(reply)));
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    let transcript = std::fs::read_to_string(world.session_file("s1")).unwrap();
    let results: Vec<Value> = transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results = results.iter().filter(|entry| entry["message"]["role"] == "toolResult");
    let texts: Vec<&str> = results.map(|entry| entry["message"]["content"][0]["text"].as_str().unwrap()).collect();
    assert!((30_000..=64_000).contains(&texts[0].len()), "{} characters", texts[0].len());
    let failure: Value = serde_json::from_str(texts[1]).unwrap();
    assert_eq!(failure, json!({"status": "error", "tool": "lobster_fail", "error": "no lobsters"}));
}
