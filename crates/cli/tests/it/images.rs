//! Images named on the command line.

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::TestUser;
use crate::rpc::PinchClient;

/// Creates a black BMP with 24 bits per pixel.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let n_bytes = (width * 3).next_multiple_of(4) * height;
    let head = [54 + n_bytes, 0, 54, 40, width, height, 1 | 24 << 16, 0, n_bytes, 0, 0, 0, 0];
    let mut file = b"BM".to_vec();
    file.extend(head.into_iter().flat_map(u32::to_le_bytes));
    file.resize(file.len() + n_bytes as usize, 0);
    file
}

/// Creates a user with a vision model and these image settings.
async fn user(settings: &Value) -> TestUser {
    let user = TestUser::new().await;
    let models = json!({"providers": {"local": {
        "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none",
        "models": [{"id": "m1", "input": ["text", "image"]}],
    }}});
    user.write("agent/models.json", &models.to_string());
    user.write("agent/settings.json", &json!({"images": settings}).to_string());
    std::fs::write(user.path("large.bmp"), bmp(2500, 100)).unwrap();
    std::fs::write(user.path("broken.bmp"), &bmp(2500, 100)[..1000]).unwrap();
    user
}

/// Returns what the model receives for a file and a question: texts unchanged, and types of images.
async fn given(user: &TestUser, file: &str) -> Vec<String> {
    user.answer("Seen.");
    let ran = user.run(&["--model", "local/m1", "--no-session", "-p", file, "What is it?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Seen.\n"), "{}", ran.err);
    let asked = user.asked().unwrap();
    let home = user.path("").canonicalize().unwrap();
    let told = |part: &Value| match part["text"].as_str() {
        Some(text) => text.replace(home.to_str().unwrap(), "HOME"),
        None => part["source"]["media_type"].as_str().unwrap().to_owned(),
    };
    match &asked[0]["content"] {
        Value::Array(parts) => parts.iter().map(told).collect(),
        text => vec![text.as_str().unwrap().replace(home.to_str().unwrap(), "HOME")],
    }
}

#[tokio::test]
async fn an_image_is_resized_and_the_model_is_informed() {
    let user = user(&json!({})).await;
    let text = "<file name=\"HOME/large.bmp\">[Image converted from image/bmp to image/png.]\n[Image: original 2500x100, \
                displayed at 2000x80. Multiply coordinates by 1.25 to map to original image.]</file>\nWhat is it?";
    assert_eq!(given(&user, "@large.bmp").await, [text, "image/png"]);
    let text = "<file name=\"HOME/broken.bmp\">[Image omitted: could not be converted to a supported inline image format.]\
                </file>\nWhat is it?";
    assert_eq!(given(&user, "@broken.bmp").await, [text]);
}

#[tokio::test]
async fn settings_disable_resizing_and_block_images() {
    let as_large = user(&json!({"autoResize": false})).await;
    let text = "<file name=\"HOME/large.bmp\">[Image converted from image/bmp to image/png.]</file>\nWhat is it?";
    assert_eq!(given(&as_large, "@large.bmp").await, [text, "image/png"]);
    let blocked = user(&json!({"autoResize": false, "blockImages": true})).await;
    assert_eq!(given(&blocked, "@large.bmp").await, [text, "Image reading is disabled."]);
}

/// A black PNG of 2500 by 100 pixels.
const WIDE: &str = "iVBORw0KGgoAAAANSUhEUgAACcQAAABkAQAAAACKjJytAAAANUlEQVR42u3BAQ0AAADCoPdPbQ43oAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHg0eqgAAU0/6RAAAAAASUVORK5CYII=";

/// Returns the texts of a content, and width and height of PNG images.
fn parts(content: &Value) -> Vec<String> {
    let shown = |part: &Value| match part["source"]["data"].as_str() {
        // The PNG header with its dimensions, in base64.
        Some(data) => match &data[16..32] {
            "SUhEUgAAB9AAAABQ" => "2000x80".to_owned(),
            "SUhEUgAAAPoAAAAK" => "250x10".to_owned(),
            other => other.to_owned(),
        },
        None => part["text"].as_str().unwrap().to_owned(),
    };
    content.as_array().unwrap().iter().map(shown).collect()
}

#[tokio::test]
async fn each_image_is_resized_for_the_model_in_use_when_it_arrives() {
    let user = user(&json!({})).await;
    let narrow = json!({"images": {"resize": {"maxWidth": 250}}, "maxRequestBytes": 9_000_000});
    let models = json!({"providers": {"local": {
        "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none",
        "models": [{"id": "m1", "input": ["text", "image"]}, {"id": "m2", "input": ["text", "image"], "inputLimits": narrow}],
    }}});
    user.write("agent/models.json", &models.to_string());
    let image = json!({"type": "image", "data": WIDE, "mimeType": "image/png"});
    let note = |shown: &str, by: &str| {
        format!(
            "[Image: original 2500x100, displayed at {shown}. Multiply coordinates by {by} to map to original image.]"
        )
    };
    let last = || user.asked().unwrap().as_array().unwrap().last().unwrap()["content"].clone();
    let mut client = PinchClient::of(&user);
    let said = async |client: &mut PinchClient, text: &str| {
        user.answer("Seen.");
        client.ask(&json!({"type": "prompt", "message": text, "images": [image]})).await;
        let lines = client.until(|line| line["type"] == "agent_settled").await;
        let of = |kind: &str| {
            let line = lines.iter().find(|line| line["type"] == kind && line["message"]["role"] == "user");
            line.map(|line| line["message"]["content"].clone()).unwrap()
        };
        assert_eq!(of("message_start"), of("message_end"));
        parts(&last())
    };
    let large = note("2000x80", "1.25");
    assert_eq!(said(&mut client, "one").await, ["one", large.as_str(), "2000x80"]);
    let set = client.ask(&json!({"type": "set_model", "provider": "local", "modelId": "m2"})).await;
    assert_eq!(set[set.len() - 1]["data"]["inputLimits"], narrow);
    let small = note("250x10", "10.00");
    assert_eq!(said(&mut client, "two").await, ["two", small.as_str(), "250x10"]);
    // Images in the conversation do not change.
    assert_eq!(parts(&user.asked().unwrap()[0]["content"]), ["one", large.as_str(), "2000x80"]);

    // A file that is read is resized for the same model, with notes in the text of the result.
    let call = AnthropicResponse::new("msg_1").tool_call("toolu_1", "read", &json!({"path": "large.bmp"}).to_string());
    user.server.reply(ServerReply::sse(call.stop("tool_use").concat()));
    user.answer("Read.");
    client.ask(&json!({"type": "prompt", "message": "read it"})).await;
    client.until(|line| line["type"] == "agent_settled").await;
    let small = format!("[Image converted from image/bmp to image/png.]\n{small}");
    assert_eq!(parts(&last()[0]["content"]), [format!("Read image file [image/png]\n{small}"), "250x10".to_owned()]);

    // And so is a file on the command line.
    user.answer("Seen.");
    let ran = user.run(&["--model", "local/m2", "--no-session", "-p", "@large.bmp", "What is it?"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let file = user.path("").canonicalize().unwrap().join("large.bmp");
    let text = format!("<file name=\"{}\">{small}</file>\nWhat is it?", file.display());
    assert_eq!(parts(&last()), [text, "250x10".to_owned()]);
}
