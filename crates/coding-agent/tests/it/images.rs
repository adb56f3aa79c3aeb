//! Images are made to fit, whichever way they come into a conversation.
#![cfg(feature = "images")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::entry::CustomMessage;
use pinch_coding_agent::extension::actions::Delivery;
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionError, ExtensionHandle, Points, Registrations,
};
use pinch_coding_agent::runtime::LogWish;
use pinch_llm::message::{Block, Content, Image};
use pinch_llm::provider::scripted::Reply;
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use crate::rpc::{Client, gated};

const RESIZED: &str = "[Image converted from image/bmp to image/png.]\n[Image: original 2500x100, displayed at 2000x80. \
                       Multiply coordinates by 1.25 to map to original image.]";

/// A black BMP of 24 bits a pixel that is too wide.
fn wide() -> Image {
    let (width, height) = (2500_u32, 100_u32);
    let n_bytes = (width * 3).next_multiple_of(4) * height;
    let head = [54 + n_bytes, 0, 54, 40, width, height, 1 | 24 << 16, 0, n_bytes, 0, 0, 0, 0];
    let mut file = b"BM".to_vec();
    file.extend(head.into_iter().flat_map(u32::to_le_bytes));
    file.resize(file.len() + n_bytes as usize, 0);
    Image { data: STANDARD.encode(file), mime_type: "image/jpeg".into() }
}

fn as_json(image: &Image) -> Value {
    json!({"type": "image", "data": image.data, "mimeType": image.mime_type})
}

/// A tool and a command that come along with images.
struct Draws(ToolSpec);

impl Draws {
    fn new() -> Self {
        Self(ToolSpec::new("draw", "draws", Schema::new(json!({"type": "object"}))))
    }
}

impl Extension for Draws {
    fn name(&self) -> &str {
        "draws"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.tool(Arc::new(Self::new()));
        to.command(Arc::new(Self::new()));
        Ok(())
    }
}

impl Tool for Draws {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let broken = Image { data: "?".into(), mime_type: "image/png".into() };
        let content = vec![Block::text("drawn"), Block::Image(wide()), Block::Image(broken)];
        Box::pin(async { Ok(ToolOutput { content, ..ToolOutput::default() }) })
    }
}

impl Command for Draws {
    fn name(&self) -> &str {
        "show"
    }

    fn run<'a>(&'a self, _: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async move {
            let content = Content::Blocks(vec![Block::Image(wide())]);
            let note =
                CustomMessage { custom_type: "c".into(), content: content.clone(), display: true, details: None };
            cx.send_message(note, Delivery::Steer, false).await?;
            cx.send_user_message(content, Delivery::Steer).await
        })
    }
}

/// The content of the messages of a role, images as their types.
async fn shown(client: &mut Client, role: &str) -> Vec<Vec<String>> {
    let answer = client.ask(json!({"id": "m", "type": "get_messages"})).await;
    let part = |part: &Value| part["text"].as_str().or(part["mimeType"].as_str()).unwrap().to_owned();
    let messages = answer["data"]["messages"].as_array().unwrap().iter().filter(|message| message["role"] == role);
    messages.map(|message| message["content"].as_array().unwrap().iter().map(part).collect()).collect()
}

async fn client(replies: impl IntoIterator<Item = Reply>) -> Client {
    Client::with(replies, LogWish::InMemory, vec![Arc::new(Draws::new())]).await
}

#[tokio::test]
async fn what_a_client_says_is_made_to_fit() {
    let mut client = client([]).await;
    let open = gated(&client.model, "one");
    client.model.push(Reply::text("two"));
    client.model.push(Reply::text("three"));
    let images = json!([as_json(&wide())]);
    client.ask(json!({"id": 1, "type": "prompt", "message": "see", "images": images})).await;
    client.ask(json!({"id": 2, "type": "steer", "message": "", "images": images})).await;
    client.ask(json!({"id": 3, "type": "follow_up", "message": "last", "images": images})).await;
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let said = |text: &str| [text, RESIZED, "image/png"].map(str::to_owned).to_vec();
    let bare = [RESIZED, "image/png"].map(str::to_owned).to_vec();
    assert_eq!(shown(&mut client, "user").await, [said("see"), bare, said("last")]);
    let entries = client.ask(json!({"id": 4, "type": "get_entries"})).await.to_string();
    assert!(!entries.contains("image/jpeg"), "the log has what was sent");
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn what_extensions_bring_is_made_to_fit() {
    let mut client = client([Reply::call("c1", "draw", JsonObject::new()), Reply::text("1"), Reply::text("2")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "draw"})).await;
    let ended = client.event("tool_execution_end").await;
    assert!(!ended.to_string().contains("image/jpeg"), "{ended}");
    client.event("agent_settled").await;
    let omitted = "[Image omitted: could not be converted to a supported inline image format.]";
    let result = ["drawn", RESIZED, "image/png", omitted].map(str::to_owned).to_vec();
    assert_eq!(shown(&mut client, "toolResult").await, [result]);
    client.say(json!({"id": 2, "type": "prompt", "message": "/show"})).await;
    client.event("agent_settled").await;
    let bare = vec![[RESIZED, "image/png"].map(str::to_owned).to_vec()];
    assert_eq!(shown(&mut client, "custom").await, bare);
    assert_eq!(shown(&mut client, "user").await[1..], bare);
    client.leave().await.0.unwrap();
}
