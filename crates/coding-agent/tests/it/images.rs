//! Images are adapted to limits, however they enter a conversation.
#![cfg(feature = "images")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::entry::CustomMessage;
use pinch_coding_agent::extension::actions::DeliverAs;
use pinch_coding_agent::extension::{
    Boundary, BoundaryAction, Command, CommandCx, Draft, Extension, ExtensionCx, ExtensionError, ExtensionHandle,
    HandlerFuture, Point, Points, Registrations, TurnEnd,
};
use pinch_coding_agent::runtime::{AgentSessionOptions, SessionRuntime, SessionTarget, create_agent_session};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::{Block, Content, Image};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::schema::Schema;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use crate::extension_hooks::pull;
use crate::rpc::{RpcTestClient, gated};

const RESIZED: &str = "[Image converted from image/bmp to image/png.]\n[Image: original 2500x100, displayed at 2000x80. \
                       Multiply coordinates by 1.25 to map to original image.]";

/// Creates a black 24-bit BMP that is too wide.
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

/// A tool and a command that produce images.
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
        Points::of([Point::TurnEnd])
    }

    /// Adds images after an answer to `draft`, and one in place of that word.
    fn turn_end<'a>(
        &'a self,
        _: TurnEnd<'a>,
        _: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        Box::pin(async move {
            let content = Content::Blocks(vec![Block::Image(wide())]);
            let entries = cx.entries().await?;
            let message =
                entries.iter().find(|entry| entry.to_value()["message"]["content"].to_string().contains("draft"));
            let Some(message) = message else { return Ok(BoundaryAction::default()) };
            let edit = Draft::Edit { target: message.id.clone(), replacement: Some(content.clone()) };
            let note = CustomMessage { custom_type: "c".into(), content, display: true, details: None };
            Ok(BoundaryAction { drafts: Some(vec![edit, Draft::Message(note)]), continues: None })
        })
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
            cx.send_message(note, DeliverAs::Steer, false).await?;
            cx.send_user_message(content, DeliverAs::Steer).await
        })
    }
}

/// Returns the content of a role's messages, with images as their types.
async fn contents(client: &mut RpcTestClient, role: &str) -> Vec<Vec<String>> {
    let answer = client.ask(json!({"id": "m", "type": "get_messages"})).await;
    let part = |part: &Value| part["text"].as_str().or(part["mimeType"].as_str()).unwrap().to_owned();
    let messages = answer["data"]["messages"].as_array().unwrap().iter().filter(|message| message["role"] == role);
    messages.map(|message| message["content"].as_array().unwrap().iter().map(part).collect()).collect()
}

async fn client(replies: impl IntoIterator<Item = ScriptedReply>) -> RpcTestClient {
    RpcTestClient::with(replies, SessionTarget::InMemory, vec![Arc::new(Draws::new())]).await
}

fn narrow() -> Model {
    let mut model = ScriptedProvider::model("scripted");
    let limits = json!({"inputLimits": {"images": {"resize": {"maxWidth": 50, "maxHeight": 40}}}});
    model.extra = Arc::new(limits.as_object().unwrap().clone());
    model
}

/// Creates a client of a session whose model accepts only small images.
async fn small(replies: impl IntoIterator<Item = ScriptedReply>) -> RpcTestClient {
    let folder = tempfile::tempdir().unwrap();
    RpcTestClient::of(narrow(), folder, replies, SessionTarget::InMemory, vec![Arc::new(Draws::new())]).await
}

const SMALL: &str = "[Image converted from image/bmp to image/png.]\n[Image: original 2500x100, displayed at 50x2. \
                     Multiply coordinates by 50.00 to map to original image.]";

/// Returns width and height of the images in a message, all of them PNG.
fn sides(message: &Value) -> Vec<(u32, u32)> {
    let images = message["content"].as_array().unwrap().iter().filter_map(|part| part["data"].as_str());
    let side = |head: &[u8]| u32::from_be_bytes(head.try_into().unwrap());
    let sides = |data: &str| {
        let content = STANDARD.decode(data).unwrap();
        assert_eq!(&content[12..16], b"IHDR");
        (side(&content[16..20]), side(&content[20..24]))
    };
    images.map(sides).collect()
}

/// Returns the role and image sides of every reported message with an image. Starts and ends report the same.
fn image_messages(received: &[Value]) -> Vec<(String, Vec<(u32, u32)>)> {
    let of = |kind: &str| -> Vec<(String, Vec<(u32, u32)>)> {
        let lines = received.iter().filter(|line| line["type"] == kind && line.to_string().contains("mimeType"));
        lines.map(|line| (line["message"]["role"].as_str().unwrap().to_owned(), sides(&line["message"]))).collect()
    };
    let ends = of("message_end");
    assert_eq!(of("message_start"), ends);
    ends
}

fn one(role: &str) -> (String, Vec<(u32, u32)>) {
    (role.to_owned(), vec![(50, 2)])
}

#[tokio::test]
async fn images_from_a_client_are_adapted() {
    let mut client = client([]).await;
    let open = gated(&client.model, "one");
    client.model.push(ScriptedReply::text("two"));
    client.model.push(ScriptedReply::text("three"));
    let images = json!([as_json(&wide())]);
    client.ask(json!({"id": 1, "type": "prompt", "message": "see", "images": images})).await;
    client.ask(json!({"id": 2, "type": "steer", "message": "", "images": images})).await;
    client.ask(json!({"id": 3, "type": "follow_up", "message": "last", "images": images})).await;
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let message = |text: &str| [text, RESIZED, "image/png"].map(str::to_owned).to_vec();
    let bare = [RESIZED, "image/png"].map(str::to_owned).to_vec();
    assert_eq!(contents(&mut client, "user").await, [message("see"), bare, message("last")]);
    let entries = client.ask(json!({"id": 4, "type": "get_entries"})).await.to_string();
    assert!(!entries.contains("image/jpeg"), "the log has what was sent");
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn images_from_extensions_are_adapted() {
    let mut client = client([
        ScriptedReply::call("c1", "draw", JsonObject::new()),
        ScriptedReply::text("1"),
        ScriptedReply::text("2"),
    ])
    .await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "draw"})).await;
    let ended = client.event("tool_execution_end").await;
    assert!(!ended.to_string().contains("image/jpeg"), "{ended}");
    client.event("agent_settled").await;
    let omitted = "[Image omitted: could not be decoded.]";
    let result = ["drawn", RESIZED, "image/png", omitted].map(str::to_owned).to_vec();
    assert_eq!(contents(&mut client, "toolResult").await, [result]);
    client.say(json!({"id": 2, "type": "prompt", "message": "/show"})).await;
    client.event("agent_settled").await;
    let bare = vec![[RESIZED, "image/png"].map(str::to_owned).to_vec()];
    assert_eq!(contents(&mut client, "custom").await, bare);
    assert_eq!(contents(&mut client, "user").await[1..], bare);
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_prompt_respects_the_limits_of_its_model() {
    let mut client = small([ScriptedReply::text("1")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "see", "images": [as_json(&wide())]})).await;
    client.event("agent_settled").await;
    assert_eq!(contents(&mut client, "user").await, [["see", SMALL, "image/png"]]);
    assert_eq!(image_messages(&client.received), [one("user")]);
    let request = client.model.requests().remove(0);
    let asked = serde_json::to_value(&request.messages[1]).unwrap();
    assert_eq!(sides(&asked), [(50, 2)]);
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn queued_messages_respect_the_limits_of_the_model() {
    let mut client = small([]).await;
    let open = gated(&client.model, "one");
    client.model.push(ScriptedReply::text("two"));
    client.model.push(ScriptedReply::text("three"));
    client.ask(json!({"id": 1, "type": "prompt", "message": "go"})).await;
    let images = json!([as_json(&wide())]);
    client.ask(json!({"id": 2, "type": "steer", "message": "", "images": images})).await;
    client.ask(json!({"id": 3, "type": "follow_up", "message": "last", "images": images})).await;
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let message = contents(&mut client, "user").await;
    assert_eq!(message[1..], [vec![SMALL, "image/png"], vec!["last", SMALL, "image/png"]]);
    assert_eq!(image_messages(&client.received), [one("user"), one("user")]);
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn extension_messages_respect_the_limits_of_the_model() {
    let mut client = small([ScriptedReply::text("1")]).await;
    client.say(json!({"id": 1, "type": "prompt", "message": "/show"})).await;
    client.event("agent_settled").await;
    assert_eq!(contents(&mut client, "custom").await, [[SMALL, "image/png"]]);
    assert_eq!(contents(&mut client, "user").await, [[SMALL, "image/png"]]);
    assert_eq!(image_messages(&client.received), [one("custom"), one("user")]);
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn tool_results_respect_the_limits_of_the_model() {
    let mut client = small([ScriptedReply::call("c1", "draw", JsonObject::new()), ScriptedReply::text("1")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "draw"})).await;
    client.event("agent_settled").await;
    let omitted = "[Image omitted: could not be decoded.]";
    assert_eq!(contents(&mut client, "toolResult").await, [["drawn", SMALL, "image/png", omitted]]);
    assert_eq!(image_messages(&client.received), [one("toolResult")]);
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn entries_appended_after_a_turn_respect_the_limits_of_the_model() {
    let mut client = small([ScriptedReply::text("1"), ScriptedReply::text("2")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "draft"})).await;
    client.event("agent_settled").await;
    assert_eq!(contents(&mut client, "custom").await, [[SMALL, "image/png"]]);
    assert_eq!(contents(&mut client, "user").await, [[SMALL, "image/png"]], "an edit of what was said");
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn admitted_images_are_not_decoded_again_in_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = STANDARD.decode(wide().data).unwrap();
    std::io::Write::write_all(&mut std::fs::File::create(folder.path().join("wide")).unwrap(), &file).unwrap();
    let input = json!({"path": "wide"}).as_object().unwrap().clone();
    let provider = ScriptedProvider::new([
        ScriptedReply::call("c1", "read", input),
        ScriptedReply::text("1"),
        ScriptedReply::text("2"),
    ]);
    let host = Host::builder().seed(1).home(folder.path()).temp(folder.path()).build();
    let options = AgentSessionOptions::new(host, folder.path(), folder.path().join("agent"))
        .open(SessionTarget::InMemory)
        .model(narrow())
        .provider(Arc::new(provider));
    let mut runtime = create_agent_session(options).await.unwrap();
    let control = runtime.session_mut().control();
    pull(runtime.session_mut().prompt(Prompt::text("look"))).await;
    let content = |role: &str, runtime: &mut SessionRuntime| {
        let messages = runtime.session_mut().messages().iter();
        let message = messages.rev().find(|message| message.role() == role).unwrap();
        serde_json::to_value(message).unwrap()
    };
    let result = content("toolResult", &mut runtime);
    assert_eq!(result["content"][0]["text"], format!("Read image file [image/png]\n{SMALL}"));
    assert_eq!((sides(&result), result["content"].as_array().unwrap().len()), (vec![(50, 2)], 2));
    assert_eq!(control.images().n_decoded(), 1);

    let admitted = control.admit_image(file.into(), "image/bmp").await.unwrap();
    assert_eq!(admitted.notes.join("\n"), SMALL);
    pull(runtime.session_mut().prompt(Prompt { images: vec![admitted.image], ..Prompt::text("this") })).await;
    let message = content("user", &mut runtime);
    assert_eq!((sides(&message), message["content"].as_array().unwrap().len()), (vec![(50, 2)], 2));
    assert_eq!(control.images().n_decoded(), 2);
    runtime.close().await;
}
