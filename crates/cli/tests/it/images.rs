//! Images that are named on the command line.

use serde_json::{Value, json};

use crate::help::User;

/// A black BMP of 24 bits a pixel.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let n_bytes = (width * 3).next_multiple_of(4) * height;
    let head = [54 + n_bytes, 0, 54, 40, width, height, 1 | 24 << 16, 0, n_bytes, 0, 0, 0, 0];
    let mut file = b"BM".to_vec();
    file.extend(head.into_iter().flat_map(u32::to_le_bytes));
    file.resize(file.len() + n_bytes as usize, 0);
    file
}

/// Somebody with a model that sees, and with these settings of images.
async fn user(settings: &Value) -> User {
    let user = User::new().await;
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

/// What the model is given for a file and a question: texts as they are, of images the type.
async fn given(user: &User, file: &str) -> Vec<String> {
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
async fn an_image_is_made_fit_and_the_model_is_told() {
    let user = user(&json!({})).await;
    let text = "<file name=\"HOME/large.bmp\">[Image converted from image/bmp to image/png.]\n[Image: original 2500x100, \
                displayed at 2000x80. Multiply coordinates by 1.25 to map to original image.]</file>\nWhat is it?";
    assert_eq!(given(&user, "@large.bmp").await, [text, "image/png"]);
    let text = "<file name=\"HOME/broken.bmp\">[Image omitted: could not be converted to a supported inline image format.]\
                </file>\nWhat is it?";
    assert_eq!(given(&user, "@broken.bmp").await, [text]);
}

#[tokio::test]
async fn settings_keep_the_size_of_images_and_keep_them_from_the_model() {
    let as_large = user(&json!({"autoResize": false})).await;
    let text = "<file name=\"HOME/large.bmp\">[Image converted from image/bmp to image/png.]</file>\nWhat is it?";
    assert_eq!(given(&as_large, "@large.bmp").await, [text, "image/png"]);
    let blocked = user(&json!({"autoResize": false, "blockImages": true})).await;
    assert_eq!(given(&blocked, "@large.bmp").await, [text, "Image reading is disabled."]);
}
