//! Limits of tool results in a conversation: their length, and their images.

use pinch_agent_core::tool::{FnTool, JsonObject, Tool, ToolError, ToolOutput, ToolSpec};
use pinch_embed::engine::Engine;
use pinch_llm::message::{Block, Image};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use crate::world::{MODEL, World, answer, call, stream, within};

/// Creates a tool of the host with this result.
fn tool(name: &str, content: Vec<Block>) -> impl Tool + use<> {
    let spec = ToolSpec::new(name, "", Schema::new(json!({"type": "object", "properties": {}})));
    FnTool::new(spec, move |_: JsonObject, _| {
        let output = ToolOutput { content: content.clone(), ..ToolOutput::default() };
        async move { Ok::<_, ToolError>(output) }
    })
}

/// Returns the content of the result that was sent to the model.
async fn sent(world: &World, engine: &Engine, tool: &str, arguments: Value) -> Value {
    world.server.reply(stream(call("m1", tool, &arguments)));
    world.server.reply(stream(answer("m2", "Done.")));
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    let request = world.server.requests().last().unwrap().json();
    request["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"].clone()
}

/// Returns all text of a result.
fn text(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}

#[tokio::test]
async fn results_are_limited_by_the_context_window_of_the_model() {
    for (window, limit) in [(60_000, 16_000), (150_000, 32_000), (500_000, 64_000)] {
        let world = World::with(|config| config["agents"]["defaults"]["contextTokens"] = json!(window)).await;
        let mut document = world.document();
        document["models"]["providers"]["anthropic"]["models"] =
            json!([{"id": MODEL, "contextWindow": window, "maxTokens": 4_000}]);
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let engine = world.configured(&document).tool(tool("long", vec![Block::text(long)])).build();
        let shown = text(&sent(&world, &engine, "long", json!({})).await);
        let n_chars = shown.chars().count();
        assert!(n_chars <= limit && n_chars > limit / 4 * 3, "{window}: {n_chars}");
        assert!(shown.starts_with("line 0\n") && shown.contains("were left out here"), "{window}");
        assert!(shown.ends_with("line 19999\n"), "{window}");
    }
}

#[tokio::test]
async fn a_long_file_is_read_up_to_a_line_that_fits() {
    for (window, size) in [(60_000, "15.4KB"), (150_000, "31.0KB"), (500_000, "62.2KB")] {
        let world = World::new().await;
        let mut document = world.document();
        document["models"]["providers"]["anthropic"]["models"] =
            json!([{"id": MODEL, "contextWindow": window, "maxTokens": 4_000}]);
        world.write("workspace/long.txt", &"a line of 16 chr\n".repeat(20_000));
        world.write("workspace/empty.png", "");
        let engine = world.configured(&document).builtin_tools(["read"]).build();
        let shown = text(&sent(&world, &engine, "read", json!({"path": "long.txt"})).await);
        let (lines, notice) = shown.rsplit_once("\n\n").unwrap();
        let next = lines.lines().count() + 1;
        let expected = format!("[Read output capped at {size} for this call. Use offset={next} to continue.]");
        assert_eq!(notice, expected, "{window}");
        let empty = text(&sent(&world, &engine, "read", json!({"path": "empty.png"})).await);
        assert!(empty.contains("read: image payload is empty (empty.png)"), "{empty}");
    }
}

#[tokio::test]
async fn an_image_that_no_model_accepts_is_replaced_by_a_note() {
    let image = |data: &str| Block::Image(Image { data: data.to_owned(), mime_type: "image/png".to_owned() });
    for (data, note) in [
        ("", "it is empty"),
        ("bm9uc2Vuc2U=", "could not be converted to a supported inline image format"),
        ("%%%", "could not be decoded"),
        #[cfg(feature = "images")]
        ("iVBORw0KGgoAAAAA", "could not be decoded"),
    ] {
        let world = World::new().await;
        let engine = world.built(|builder| builder.tool(tool("picture", vec![Block::text("Here."), image(data)])));
        let content = sent(&world, &engine, "picture", json!({})).await;
        assert!(
            text(&content).contains("Here.") && text(&content).contains(&format!("[Image omitted: {note}.]")),
            "{content}"
        );
    }
}

#[cfg(feature = "images")]
#[tokio::test]
async fn a_large_image_is_scaled_down_before_it_enters_the_conversation() {
    use base64::Engine as _;

    let side_of = |content: &Value| {
        let image = content.as_array().unwrap().iter().find(|block| block["type"] == "image").unwrap();
        let data = image["source"]["data"].as_str().unwrap();
        let data = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        image::load_from_memory(&data).unwrap().width()
    };
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(2600, 40).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let data = base64::engine::general_purpose::STANDARD.encode(png.get_ref());
    let block = Block::Image(Image { data, mime_type: "image/png".to_owned() });
    for (limit, expect) in [(None, 2000), (Some(1200), 1200)] {
        let world = World::new().await;
        let mut document = world.document();
        if let Some(limit) = limit {
            document["agents"]["defaults"]["imageMaxDimensionPx"] = json!(limit);
        }
        // Covers both a tool of the host and the tool that reads files.
        std::fs::create_dir_all(world.path("workspace")).unwrap();
        std::fs::write(world.path("workspace/wide.png"), png.get_ref()).unwrap();
        let engine = || {
            let builder = world.configured(&document).builtin_tools(["read"]);
            builder.tool(tool("picture", vec![block.clone()])).build()
        };
        assert_eq!(side_of(&sent(&world, &engine(), "picture", json!({})).await), expect);
        assert_eq!(side_of(&sent(&world, &engine(), "read", json!({"path": "wide.png"})).await), expect);
    }
}
