//! The debug log: what is on the screen, and the conversation.

use std::io;
use std::path::Path;

use futures::FutureExt as _;
use pinch_stdx::fs::{Access, create_private_dir, write_atomic};
use tokio::sync::oneshot;

use super::Console;
use super::lookups::LookupResult;
use crate::Row;
use crate::terminal::Size;
use crate::text::row_width;

/// Name of the file in the agent directory.
const FILE: &str = "pinch-debug.log";

impl Console {
    /// Writes the debug log, as soon as the conversation is accessible.
    pub(super) fn write_debug_log(&mut self) {
        let Some(session) = self.session.clone() else {
            return self.app.status("The session is still being loaded");
        };
        // Finished rows must reach the screen first.
        self.draw();
        if self.front.is_blocked() {
            return self.app.status("The window is being resized");
        }
        let (size, now_ms) = (self.front.size(), self.host.now_ms());
        let frame = self.app.view(size, self.front.is_fullscreen(), now_ms);
        let screen = describe(size, &frame.live);
        let (sender, messages) = oneshot::channel();
        session.control.observe(move |view| {
            let lines = view.messages().iter().filter_map(|message| serde_json::to_string(message).ok()).collect();
            drop(sender.send(lines));
        });
        let path = self.app.agent_dir().join(FILE);
        let write = async move {
            let lines: Vec<String> = messages.await.unwrap_or_default();
            let text = format!("{screen}\n=== Messages (JSONL) ===\n{}\n", lines.join("\n"));
            let written = tokio::task::spawn_blocking(move || write(&path, &text).map(|()| path)).await;
            LookupResult::Done(match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(path) => Ok(format!("Wrote {}", path.display())),
                Err(error) => Err(format!("Cannot write the debug log: {error}")),
            })
        };
        self.lookups.push(write.boxed());
    }
}

/// Describes the rows on the screen, with their widths.
fn describe(size: Size, rows: &[Row]) -> String {
    let mut text = format!(
        "Terminal: {}x{}\nRows: {}\n\n=== Rows that are redrawn, with their widths ===\n",
        size.width(),
        size.height(),
        rows.len()
    );
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&format!("[{at}] (w={}) {:?}\n", row_width(row), row.to_string()));
    }
    text
}

/// Writes the log. Only the user may read the conversation.
fn write(path: &Path, text: &str) -> io::Result<()> {
    create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
    write_atomic(path, text.as_bytes(), Access::Private)
}
