//! Prints the conversation on the active branch of a session file.
//!
//! ```sh
//! cargo run -p pinch-session --example print_session -- ~/.pinch/agent/sessions/DIRECTORY/FILE.jsonl
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_session::llm::message::Message;
use pinch_session::llm::stdx::host::Host;
use pinch_session::session_log::SessionLog;
use pinch_session::store::{JsonlStore, SessionRef};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: print_session FILE")?);
    if !path.is_file() {
        return Err(format!("no such file: {}", path.display()).into());
    }
    let store = Arc::new(JsonlStore::flat(path.parent().unwrap_or(Path::new("."))));
    let log = SessionLog::open(&Host::system(), store, &SessionRef::Path(path), "/").await?;
    for message in log.context().messages {
        if matches!(*message, Message::User(_) | Message::Assistant(_)) {
            println!("{}: {}\n", message.role(), message.text(""));
        }
    }
    println!("{} entries, {}", log.entry_ids().len(), log.name().as_deref().unwrap_or("no name"));
    Ok(())
}
