//! The user interface for extensions: forwards their questions and updates to the loop that owns the terminal.

use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use pinch_coding_agent::extension::component::ComponentView;
use pinch_coding_agent::extension::snapshot::UiSnapshot;
use pinch_coding_agent::extension::ui::{Dialog as Question, DialogKind, DialogReply, Ui, UiUpdate};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::effect::DialogAnswer;

/// Maximum number of queued requests; further updates are dropped.
const MAX_WAITING: usize = 1024;

/// A request of an extension.
#[derive(Debug)]
pub(crate) enum UiRequest {
    /// A question. The answer is dropped if the asker is gone.
    Ask { question: Question, reply: oneshot::Sender<DialogAnswer> },
    /// Something to show.
    Show(UiUpdate),
    /// A component in place of the editor.
    Component(ComponentView),
}

/// The user interface of a terminal, for extensions. Pass it to the session, and then to [`crate::app::interactive`].
#[derive(Clone, Debug)]
pub struct TerminalUi {
    requests: mpsc::Sender<UiRequest>,
    /// Taken by the loop.
    incoming: Arc<Mutex<Option<mpsc::Receiver<UiRequest>>>>,
    screen: SharedScreen,
}

/// What is on the screen, for extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedScreen(Arc<std::sync::Mutex<Option<Arc<UiSnapshot>>>>);

impl SharedScreen {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<UiSnapshot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces it.
    pub(crate) fn set(&self, snapshot: Arc<UiSnapshot>) {
        *self.lock() = Some(snapshot);
    }
}

impl Default for TerminalUi {
    fn default() -> Self {
        let (requests, incoming) = mpsc::channel(MAX_WAITING);
        Self { requests, incoming: Arc::new(Mutex::new(Some(incoming))), screen: SharedScreen::default() }
    }
}

impl TerminalUi {
    /// Creates a user interface that is not connected to a terminal yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the requests to the first caller, and where it tells what is on the screen.
    pub(crate) async fn take_requests(&self) -> Option<(mpsc::Receiver<UiRequest>, SharedScreen)> {
        Some((self.incoming.lock().await.take()?, self.screen.clone()))
    }
}

impl Ui for TerminalUi {
    fn ask<'a>(&'a self, dialog: &'a Question) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.requests.send(UiRequest::Ask { question: dialog.clone(), reply }).await.ok()?;
            match (answer.await.ok()?, &dialog.kind) {
                (DialogAnswer::Yes(yes), DialogKind::Confirm { .. }) => Some(DialogReply::Yes(yes)),
                (DialogAnswer::Text(text), _) => Some(DialogReply::Text(text)),
                _ => None,
            }
        })
    }

    fn show_component(&self, component: ComponentView) -> bool {
        self.requests.try_send(UiRequest::Component(component)).is_ok()
    }

    fn snapshot(&self) -> Option<Arc<UiSnapshot>> {
        self.screen.lock().clone()
    }

    fn show(&self, show: UiUpdate) {
        if self.requests.try_send(UiRequest::Show(show)).is_err() {
            tracing::warn!("an extension shows more than the terminal can keep up with");
        }
    }
}
