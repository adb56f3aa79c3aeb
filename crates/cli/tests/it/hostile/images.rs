//! Images: names of files, declared types, and bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

/// The beginning of a PNG of 64 by 48 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x40\0\0\0\x30\x08\x02\0\0\0";

/// Returns a PNG that contains these bytes.
fn png(content: &[u8]) -> Vec<u8> {
    [PNG, content].concat()
}

/// A user whose model accepts images.
async fn user() -> TestUser {
    let user = TestUser::new().await;
    let model = json!({"id": "m1", "input": ["text", "image"]});
    let local = json!({"baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none", "models": [model]});
    user.write("agent/models.json", &json!({"providers": {"local": local}}).to_string());
    user
}

/// Returns a session whose messages contain images: some valid, some followed by a text that is not base64, some of a strange type.
fn session(cwd: &str) -> String {
    let time = "2025-06-01T10:00:00.000Z";
    let mut lines = vec![json!({"type": "session", "version": 3, "id": "s", "timestamp": time, "cwd": cwd})];
    for (n, some) in texts().chunks(7).enumerate() {
        let all = some.concat();
        let valid = STANDARD.encode(png(all.as_bytes()));
        let image = |data: String, kind: &str| json!({"type": "image", "data": data, "mimeType": kind});
        let content = [
            image(valid.clone(), "image/png"),
            image(valid.clone(), &all),
            image(format!("{}{all}", STANDARD.encode(png(&[b'x'; 600]))), "image/png"),
            image(all.clone(), &all),
            image(STANDARD.encode(all.as_bytes()), &all),
        ];
        let parent = if n == 0 { Value::Null } else { format!("c{:07}", n - 1).into() };
        let message = json!({"role": "user", "content": content, "timestamp": 1_748_772_001_000_i64});
        lines.push(json!({"type": "message", "id": format!("c{n:07}"), "parentId": parent, "timestamp": time, "message": message}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[tokio::test]
async fn bytes_and_types_of_images() {
    let user = user().await;
    let path = user.write("agent/sessions/one/s.jsonl", &session(user.path("").to_str().unwrap()));
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1", "--session", path.to_str().unwrap()];
    let mut program = TerminalProgram::run_sized(&user, "", &["TERM=xterm-kitty"], &args, SIZE);
    program.wait_for("/ for commands").await;
    // The one whose data is not valid is shown as a line.
    program.wait_for("[Image: image/png 64x48]").await;
    assert!(String::from_utf8_lossy(&program.bytes).contains("\u{1b}_Ga=T"), "no image is drawn");
    leave(program, AllowedOutput { images: true, ..AllowedOutput::default() }).await;
}

#[tokio::test]
async fn names_of_images() {
    let user = user().await;
    let mut program = begin(&user, "", &["--model", "local/m1"]).await;
    for (n, name) in names().iter().enumerate().filter(|(_, name)| !name.contains('\'')) {
        let path = user.path(&format!("{name}.png"));
        if std::fs::write(&path, png(b"")).is_err() {
            continue;
        }
        program.keys(&pasted(&format!("'{}'", path.display()))).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if n % 40 == 39 {
            user.answer(&format!("answer {n}"));
            program.keys("\r").await;
            program.wait_for(&format!("answer {n}")).await;
        } else if n % 8 == 7 {
            program.keys("\u{3}").await;
        }
    }
    leave(program, AllowedOutput::default()).await;
}
