//! JSON mode: the session's header, then one event a line.

use std::io::Write;

use futures::StreamExt;

use super::print::{Failed, PrintError};
use crate::event::SessionEvent;
use crate::protocol::EventWriter;
use crate::session::{AgentSession, Prompt};

/// Bytes of lines that are gathered before they are written, while more are coming.
const GATHERED: usize = 32 * 1024;

/// Asks the prompts one after another and writes every event as a line of JSON. Output waits for its reader, forever if need be, and the
/// model's answer waits with it; nothing is dropped. Failures of extensions are not written; they go to `failed`.
///
/// # Errors
/// [`PrintError`].
pub async fn json(
    session: &mut AgentSession,
    prompts: Vec<Prompt>,
    out: &mut (dyn Write + Send),
    failed: Failed<'_>,
) -> Result<(), PrintError> {
    let mut gathered = Vec::with_capacity(2 * GATHERED);
    gathered.extend_from_slice(session.log().header().to_line().as_bytes());
    gathered.push(b'\n');
    let mut writer = EventWriter::new();
    for prompt in prompts {
        let mut run = session.prompt(prompt);
        loop {
            let mut next = run.next();
            let event = match futures::poll!(&mut next) {
                std::task::Poll::Ready(event) => event,
                std::task::Poll::Pending => {
                    // Nothing more for now: flush, so that the reader sees what there is.
                    flush(&mut gathered, out)?;
                    next.await
                }
            };
            let Some(event) = event else { break };
            let event = event?;
            if let SessionEvent::ExtensionError(failure) = &event {
                failed(failure);
            } else if let Some(line) = writer.line(&event) {
                gathered.extend_from_slice(line);
            }
            if gathered.len() >= GATHERED {
                flush(&mut gathered, out)?;
            }
        }
    }
    flush(&mut gathered, out)?;
    Ok(())
}

fn flush(gathered: &mut Vec<u8>, out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    out.write_all(gathered)?;
    gathered.clear();
    out.flush()
}
