//! JSON mode: the session's header, then one event per line.

use std::io::Write;

use futures::StreamExt;
use futures::future::BoxFuture;

use super::print::{Failed, PrintError};
use crate::event::SessionEvent;
use crate::protocol::EventWriter;
use crate::session::{AgentSession, Prompt};

/// Maximum bytes of lines to buffer while more are available.
const GATHERED: usize = 32 * 1024;

/// Sends the prompts one after another and writes every event as a line of JSON. If the reader is slow, the model's stream waits too;
/// nothing is dropped. Extension failures are not written; they are passed to `failed`.
///
/// # Errors
/// [`PrintError`].
pub fn json<'a>(
    session: &'a mut AgentSession,
    prompts: Vec<Prompt>,
    out: &'a mut (dyn Write + Send),
    failed: Failed<'a>,
) -> BoxFuture<'a, Result<(), PrintError>> {
    Box::pin(async move {
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
                        // No event is ready: flush, so that the reader sees everything so far.
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
    })
}

fn flush(gathered: &mut Vec<u8>, out: &mut (dyn Write + Send)) -> std::io::Result<()> {
    out.write_all(gathered)?;
    gathered.clear();
    out.flush()
}
