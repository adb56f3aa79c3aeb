//! The laws of the event protocol, checked on every stream of a debug build.

use super::StreamEvent;

/// Follows one stream and knows what may come next. A breach panics in debug builds and is logged in release builds.
#[derive(Debug, Default)]
pub struct Laws {
    started: bool,
    open: Vec<bool>,
    ended: bool,
}

impl Laws {
    /// Looks at the next event.
    pub fn see(&mut self, event: &StreamEvent) {
        if let Err(breach) = self.check(event) {
            debug_assert!(false, "{breach}");
            tracing::error!(breach, "a stream broke the event protocol");
        }
    }

    /// Looks at the next event and says which law it breaks.
    ///
    /// # Errors
    /// The law, in words.
    pub fn check(&mut self, event: &StreamEvent) -> Result<(), &'static str> {
        if self.ended {
            return Err("an event after the end");
        }
        match event {
            StreamEvent::Start(_) if self.started => Err("a second start"),
            StreamEvent::Start(_) => {
                self.started = true;
                Ok(())
            }
            StreamEvent::End(_) => {
                self.ended = true;
                Ok(())
            }
            _ if !self.started => Err("an event before the start"),
            StreamEvent::BlockStart { index, .. } if *index != self.open.len() => Err("a block out of order"),
            StreamEvent::BlockStart { .. } => {
                self.open.push(true);
                Ok(())
            }
            StreamEvent::Delta { index, .. } if self.open.get(*index) != Some(&true) => {
                Err("a delta for a block that is not open")
            }
            StreamEvent::BlockEnd { index, .. } if self.open.get(*index) != Some(&true) => {
                Err("an end for a block that is not open")
            }
            StreamEvent::BlockEnd { index, .. } => {
                self.open[*index] = false;
                Ok(())
            }
            StreamEvent::Delta { .. } | StreamEvent::Usage(_) => Ok(()),
        }
    }
}
