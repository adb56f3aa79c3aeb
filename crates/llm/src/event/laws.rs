//! The laws of the event protocol, checked for every stream in debug builds.

use super::StreamEvent;

/// Follows one stream and checks which events may come next. A violation panics in debug builds and is logged in release builds.
#[derive(Debug, Default)]
pub struct Laws {
    started: bool,
    ended: bool,
    blocks: OpenBlocks,
}

/// Open blocks by index. The first ones need no allocation, because this is checked for every delta.
#[derive(Debug, Default)]
struct OpenBlocks {
    n: usize,
    first: u64,
    others: Vec<bool>,
}

const N_FIRST: usize = u64::BITS as usize;

impl OpenBlocks {
    fn begin(&mut self) {
        match self.n {
            at @ 0..N_FIRST => self.first |= 1 << at,
            _ => self.others.push(true),
        }
        self.n += 1;
    }

    fn end(&mut self, index: usize) {
        match index {
            at @ 0..N_FIRST => self.first &= !(1 << at),
            at => {
                if let Some(open) = self.others.get_mut(at - N_FIRST) {
                    *open = false;
                }
            }
        }
    }

    fn has(&self, index: usize) -> bool {
        match index {
            at @ 0..N_FIRST => self.first & (1 << at) != 0,
            at => self.others.get(at - N_FIRST) == Some(&true),
        }
    }
}

impl Laws {
    /// Checks the next event.
    pub fn observe(&mut self, event: &StreamEvent) {
        if let Err(breach) = self.check(event) {
            debug_assert!(false, "{breach}");
            tracing::error!(breach, "a stream broke the event protocol");
        }
    }

    /// Checks the next event and returns the law that it violates.
    ///
    /// # Errors
    /// Returns the violated law, as text.
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
            StreamEvent::BlockStart { index, .. } if *index != self.blocks.n => Err("a block out of order"),
            StreamEvent::BlockStart { .. } => {
                self.blocks.begin();
                Ok(())
            }
            StreamEvent::Delta { index, .. } if !self.blocks.has(*index) => Err("a delta for a block that is not open"),
            StreamEvent::BlockEnd { index, .. } if !self.blocks.has(*index) => {
                Err("an end for a block that is not open")
            }
            StreamEvent::BlockEnd { index, .. } => {
                self.blocks.end(*index);
                Ok(())
            }
            StreamEvent::Delta { .. } | StreamEvent::Usage(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::BlockKind;
    use crate::ids::{ApiId, ModelId, ProviderId};
    use crate::message::{AssistantMessage, Block};

    #[test]
    fn any_number_of_blocks_may_be_open_at_once() {
        let message = AssistantMessage::pending(ApiId::new(""), ProviderId::new(""), ModelId::new(""), 0);
        let mut laws = Laws::default();
        assert_eq!(laws.check(&StreamEvent::Start(Arc::new(message))), Ok(()));
        let delta = |index| StreamEvent::Delta { index, text: "x".into() };
        for index in 0..2 * N_FIRST {
            assert!(laws.check(&delta(index)).is_err(), "{index}");
            assert_eq!(laws.check(&StreamEvent::BlockStart { index, kind: BlockKind::Text }), Ok(()));
            assert_eq!(laws.check(&delta(index)), Ok(()));
            assert!(laws.check(&StreamEvent::BlockStart { index, kind: BlockKind::Text }).is_err());
        }
        for index in (0..2 * N_FIRST).rev() {
            let end = StreamEvent::BlockEnd { index, block: Arc::new(Block::text("x")) };
            assert_eq!((laws.check(&delta(index)), laws.check(&end)), (Ok(()), Ok(())));
            assert!(laws.check(&delta(index)).is_err() && laws.check(&end).is_err(), "{index}");
        }
    }
}
