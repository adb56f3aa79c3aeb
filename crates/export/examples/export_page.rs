//! Writes the page of a conversation built in the example, and prints its path.
//!
//! ```sh
//! cargo run -p pinch-export --example export_page -- page.html
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::path::Path;
use std::sync::Arc;

use pinch_export::{PageTheme, export};
use pinch_session::entry::EntryBody;
use pinch_session::llm::message::Message;
use pinch_session::llm::stdx::host::Host;
use pinch_session::session_log::{NewSession, SessionLog};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "page.html".to_owned());
    let mut log = SessionLog::in_memory(&Host::system(), NewSession::in_directory("/work"));
    log.append(EntryBody::Message(Arc::new(Message::user("What is **Markdown**?", 0)))).await?;
    let path = export(&log, &PageTheme::default(), Some(Path::new(&name)), Path::new("."))?;
    println!("{}", path.display());
    Ok(())
}
