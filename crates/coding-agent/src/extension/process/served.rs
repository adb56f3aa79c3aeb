//! The sessions that one process serves.
//!
//! A program serves one session, whose contexts are numbered by their generation. An engine registers its extensions with the session of
//! every run, and several runs may be active: the number in a message then also says which session it is.

use crate::extension::cx::{ExtensionCx, ExtensionHandle};
use crate::extension::error::ExtensionError;

/// Generations of one session; a number in a message is `place * PER_SESSION + generation`.
const PER_SESSION: u64 = 1 << 20;

/// The sessions of a process, oldest first, with their places. Those that have ended are forgotten.
#[derive(Default)]
pub(super) struct ServedSessions {
    known: Vec<(u64, ExtensionHandle)>,
    next: u64,
}

impl ServedSessions {
    pub(super) fn add(&mut self, handle: ExtensionHandle) {
        self.known.retain(|(_, known)| known.is_alive());
        self.known.push((self.next, handle));
        self.next += 1;
    }

    pub(super) fn handles(&self) -> Vec<ExtensionHandle> {
        self.known.iter().map(|(_, handle)| handle.clone()).collect()
    }

    pub(super) fn generation(&self, cx: &ExtensionCx) -> u64 {
        let place = self.known.iter().find(|(_, handle)| handle.is_of(cx)).map_or(0, |(place, _)| *place);
        place * PER_SESSION + cx.generation()
    }

    /// Returns the context of a request: see [`Link::cx_of`](super::link::Link::cx_of).
    pub(super) fn cx_of(&self, generation: Option<u64>, within: Option<u64>) -> Result<ExtensionCx, ExtensionError> {
        let place = generation.or(within).map(|number| number / PER_SESSION);
        let current = match place {
            Some(place) => {
                let (_, handle) = self.known.iter().find(|(known, _)| *known == place).ok_or(ExtensionError::Stale)?;
                handle.cx()?
            }
            None => {
                let mut open = self.known.iter().filter_map(|(_, handle)| handle.cx().ok());
                let only = open.next().ok_or(ExtensionError::Stale)?;
                if open.next().is_some() {
                    return Err(ExtensionError::refused("Several sessions are active; \"generation\" must name one"));
                }
                only
            }
        };
        Ok(match generation {
            Some(number) => current.of_generation(number % PER_SESSION),
            None => current,
        })
    }
}
