//! The open components of a process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::extension::component::{ComponentAction, ComponentPen};

/// Maximum number of open components of a process.
const MAX_OPEN: usize = 16;

/// The open components of a process, by the ids that it chose.
#[derive(Default)]
pub(super) struct OpenComponents(Mutex<HashMap<String, OpenComponent>>);

/// Dropping it closes the component.
struct OpenComponent {
    pen: ComponentPen,
    _end: oneshot::Sender<()>,
}

impl OpenComponents {
    /// Adds a component. Returns a channel that ends when the component is closed; `None`: there are too many, or the id is in use.
    pub(super) fn open(&self, id: &str, pen: ComponentPen) -> Option<oneshot::Receiver<()>> {
        let mut open = self.lock();
        if open.len() >= MAX_OPEN || open.contains_key(id) {
            return None;
        }
        let (end, ended) = oneshot::channel();
        open.insert(id.to_owned(), OpenComponent { pen, _end: end });
        Some(ended)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenComponent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the lines of a component, and sets its text, unless it is closed.
    pub(super) fn draw(&self, id: &str, lines: Vec<String>, text: Option<String>) {
        if let Some(open) = self.lock().get(id) {
            if let Some(text) = text {
                open.pen.set_text(text);
            }
            open.pen.draw(lines);
        }
    }

    /// Passes on what a component asks for. Returns false if it is closed, or asks for too much.
    pub(super) fn act(&self, id: &str, action: ComponentAction) -> bool {
        self.lock().get(id).is_some_and(|open| open.pen.act(action))
    }

    /// Closes a component, if it is open.
    pub(super) fn close(&self, id: &str) {
        self.lock().remove(id);
    }
}
