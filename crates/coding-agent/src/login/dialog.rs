//! Logins as events and answers, for user interfaces with their own event loop.
//!
//! ```
//! # async fn example(auth: pinch_coding_agent::models::RegistryAuth) {
//! use pinch_coding_agent::login::{LoginEvent, LoginRequest, dialog, log_in};
//! use pinch_coding_agent::stdx::cancel::Cancel;
//!
//! let (ui, mut dialog) = dialog::open(dialog::BrowserLocation::Here);
//! let cancel = Cancel::new();
//! let login = log_in(LoginRequest::new("anthropic"), &auth, &ui, &cancel);
//! let mut login = std::pin::pin!(login);
//! let done = loop {
//!     tokio::select! {
//!         done = &mut login => break done,
//!         event = dialog.next() => match event {
//!             LoginEvent::Page => { /* show dialog.page() */ }
//!             LoginEvent::Progress => { /* show dialog.progress() */ }
//!             LoginEvent::Question => { /* read a line and call dialog.answer(line) */ }
//!         },
//!     }
//! };
//! # }
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_llm::oauth::{LoginChoice, LoginPrompt, LoginUi, SignInPage};
use tokio::sync::{Notify, oneshot};

/// Maximum progress lines to keep.
const MAX_PROGRESS: usize = 32;

/// Where the browser runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserLocation {
    /// On this machine, or unknown.
    Here,
    /// On another machine: it cannot redirect to a server on this one.
    Elsewhere,
}

/// Opens a dialog and returns its two ends: one for the login, and one for the user interface.
pub fn open(place: BrowserLocation) -> (DialogUi, LoginDialog) {
    let shared = Arc::new(DialogShared::default());
    let dialog = LoginDialog { shared: Arc::clone(&shared), page: None, progress: VecDeque::new(), question: None };
    (DialogUi { shared, place }, dialog)
}

/// A change in a dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginEvent {
    /// A page to open and show: [`LoginDialog::page`].
    Page,
    /// A new line of [`LoginDialog::progress`].
    Progress,
    /// A question to answer: [`LoginDialog::question`].
    Question,
}

/// A question asked by a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginQuestion {
    /// Enter a text.
    Text(LoginPrompt),
    /// Choose an option by id.
    Choice(LoginChoice),
    /// Paste a redirect URL or a code while waiting for the browser.
    Paste,
}

/// The current state of a login, for the user interface.
#[derive(Debug)]
pub struct LoginDialog {
    shared: Arc<DialogShared>,
    page: Option<SignInPage>,
    progress: VecDeque<String>,
    question: Option<(LoginQuestion, LoginReply)>,
}

impl LoginDialog {
    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> LoginEvent {
        loop {
            let changed = self.shared.changed.notified();
            let item = self.shared.lock().items.pop_front();
            match item {
                Some(DialogItem::Page(page)) => {
                    self.page = Some(page);
                    return LoginEvent::Page;
                }
                Some(DialogItem::Progress(text)) => {
                    if self.progress.len() == MAX_PROGRESS {
                        self.progress.pop_front();
                    }
                    self.progress.push_back(text);
                    return LoginEvent::Progress;
                }
                Some(DialogItem::Question(question, reply)) => {
                    self.question = Some((question, reply));
                    return LoginEvent::Question;
                }
                None => changed.await,
            }
        }
    }

    /// Returns the page to sign in on.
    pub fn page(&self) -> Option<&SignInPage> {
        self.page.as_ref()
    }

    /// Returns the login's progress lines, newest last.
    pub fn progress(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.progress.iter().map(String::as_str)
    }

    /// Returns the pending question.
    pub fn question(&self) -> Option<&LoginQuestion> {
        let is_waiting = |(_, reply): &&(LoginQuestion, LoginReply)| !reply.is_closed();
        self.question.as_ref().filter(is_waiting).map(|(question, _)| question)
    }

    /// Answers the question with a text, the id of an option, or the pasted text. `None` declines it, which cancels the login unless the
    /// browser may still return. Does nothing without a question.
    pub fn answer(&mut self, answer: Option<String>) {
        if let Some((_, reply)) = self.question.take() {
            // The question may have been withdrawn.
            let _withdrawn = reply.send(answer);
        }
    }
}

/// The login's end of a dialog.
#[derive(Debug)]
pub struct DialogUi {
    shared: Arc<DialogShared>,
    place: BrowserLocation,
}

impl DialogUi {
    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>> {
        let (reply, answer) = oneshot::channel();
        self.shared.push(DialogItem::Question(question, reply));
        // A closed dialog gives no answer.
        Box::pin(async { answer.await.ok().flatten() })
    }
}

impl LoginUi for DialogUi {
    fn show(&self, page: &SignInPage) {
        self.shared.push(DialogItem::Page(page.clone()));
    }

    fn prompt<'a>(&'a self, prompt: &'a LoginPrompt) -> BoxFuture<'a, Option<String>> {
        self.ask(LoginQuestion::Text(prompt.clone()))
    }

    fn select<'a>(&'a self, choice: &'a LoginChoice) -> BoxFuture<'a, Option<String>> {
        self.ask(LoginQuestion::Choice(choice.clone()))
    }

    fn progress(&self, text: &str) {
        self.shared.push(DialogItem::Progress(text.to_owned()));
    }

    fn pasted(&self) -> Option<BoxFuture<'_, Option<String>>> {
        Some(self.ask(LoginQuestion::Paste))
    }

    fn is_headless(&self) -> bool {
        self.place == BrowserLocation::Elsewhere
    }
}

type LoginReply = oneshot::Sender<Option<String>>;

#[derive(Debug)]
enum DialogItem {
    Page(SignInPage),
    Progress(String),
    Question(LoginQuestion, LoginReply),
}

/// Updates not read yet.
#[derive(Debug, Default)]
struct DialogShared {
    queue: Mutex<DialogQueue>,
    changed: Notify,
}

/// Pages and questions wait until they are read; of progress only the newest lines are kept.
#[derive(Debug, Default)]
struct DialogQueue {
    items: VecDeque<DialogItem>,
    /// Whether the reader is gone.
    is_closed: bool,
}

impl DialogShared {
    fn lock(&self) -> MutexGuard<'_, DialogQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, item: DialogItem) {
        let mut queue = self.lock();
        if queue.is_closed {
            return;
        }
        let is_progress = |item: &DialogItem| matches!(item, DialogItem::Progress(_));
        if is_progress(&item)
            && queue.items.len() >= MAX_PROGRESS
            && let Some(oldest) = queue.items.iter().position(is_progress)
        {
            queue.items.remove(oldest);
        }
        queue.items.push_back(item);
        self.changed.notify_one();
    }
}

impl Drop for LoginDialog {
    fn drop(&mut self) {
        // Decline questions that nobody will answer.
        let mut queue = self.shared.lock();
        queue.is_closed = true;
        queue.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn questions_are_answered_in_order_and_may_be_withdrawn() {
        let (ui, mut dialog) = open(BrowserLocation::Here);
        ui.show(&SignInPage::with_code("https://x", "AB"));
        let (prompt, choice) = (LoginPrompt::new("Name"), LoginChoice::new("Which", Vec::new()));
        let asking = async {
            let name = ui.prompt(&prompt).await;
            let which = ui.select(&choice).await;
            // A returning browser withdraws the request to paste.
            drop(ui.pasted());
            (name, which, ui.prompt(&prompt).await)
        };
        let answering = async {
            assert_eq!(dialog.next().await, LoginEvent::Page);
            assert_eq!(dialog.page().and_then(|page| page.user_code.as_deref()), Some("AB"));
            assert_eq!(dialog.next().await, LoginEvent::Question);
            assert!(matches!(dialog.question(), Some(LoginQuestion::Text(_))));
            dialog.answer(Some("me".into()));
            dialog.answer(Some("nobody asked".into()));
            assert_eq!(dialog.next().await, LoginEvent::Question);
            dialog.answer(Some("this".into()));
            assert_eq!(dialog.next().await, LoginEvent::Question);
            assert_eq!(dialog.question(), None, "it was withdrawn");
            dialog.answer(Some("too late".into()));
            assert_eq!(dialog.next().await, LoginEvent::Question);
            dialog.answer(None);
        };
        let (answers, ()) = tokio::join!(asking, answering);
        assert_eq!(answers, (Some("me".into()), Some("this".into()), None));
        drop(dialog);
        assert_eq!(ui.prompt(&prompt).await, None, "a dialog that is gone cancels");
    }

    #[tokio::test]
    async fn a_slow_reader_loses_only_old_progress() {
        let (ui, mut dialog) = open(BrowserLocation::Elsewhere);
        assert!(ui.is_headless());
        ui.show(&SignInPage::new("https://x", "go"));
        (0..100).for_each(|n| ui.progress(&n.to_string()));
        let _question = ui.pasted();
        let mut events = Vec::new();
        while events.last() != Some(&LoginEvent::Question) {
            events.push(dialog.next().await);
        }
        assert_eq!((events[0], events.len()), (LoginEvent::Page, MAX_PROGRESS + 1));
        assert_eq!(dialog.progress().next_back(), Some("99"));
    }
}
