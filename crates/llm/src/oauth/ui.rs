//! The user interface of a login.

use futures::future::BoxFuture;

/// A page to sign in on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInPage {
    /// The URL.
    pub url: String,
    /// What to do there.
    pub instructions: Option<String>,
    /// The code to enter there.
    pub user_code: Option<String>,
}

impl SignInPage {
    /// Creates a page with instructions.
    pub fn new(url: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self { url: url.into(), instructions: Some(instructions.into()), user_code: None }
    }

    /// Creates a page with a code to enter.
    pub fn with_code(url: impl Into<String>, code: impl Into<String>) -> Self {
        let code = code.into();
        Self { url: url.into(), instructions: Some(format!("Enter code: {code}")), user_code: Some(code) }
    }
}

/// A question with a text answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginPrompt {
    /// The question, without a trailing colon.
    pub message: String,
    /// An example answer.
    pub placeholder: Option<String>,
    /// Whether an empty answer is valid.
    pub allow_empty: bool,
    /// Whether the answer must be hidden while it is typed.
    pub is_secret: bool,
}

impl LoginPrompt {
    /// Creates a question that needs an answer.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), placeholder: None, allow_empty: false, is_secret: false }
    }

    /// Adds an example answer and makes the answer optional.
    #[must_use]
    pub fn optional(self, placeholder: impl Into<String>) -> Self {
        Self { placeholder: Some(placeholder.into()), allow_empty: true, ..self }
    }

    /// Marks the answer as a secret.
    #[must_use]
    pub fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// A question with several options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginChoice {
    /// The question, without a trailing colon.
    pub message: String,
    /// The options; the first one is the default.
    pub options: Vec<LoginOption>,
}

impl LoginChoice {
    /// Creates a question with its options.
    pub fn new(message: impl Into<String>, options: Vec<LoginOption>) -> Self {
        Self { message: message.into(), options }
    }
}

/// One possible answer to a [`LoginChoice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginOption {
    /// Id passed to the flow.
    pub id: String,
    /// Label shown to the user.
    pub label: String,
}

/// The user interface of a login.
pub trait LoginUi: Send + Sync {
    /// Shows a page to sign in on, and opens it if possible.
    fn show(&self, page: &SignInPage);

    /// Asks for a text. `None` cancels the login.
    fn prompt<'a>(&'a self, prompt: &'a LoginPrompt) -> BoxFuture<'a, Option<String>>;

    /// Asks to choose an option and returns its id. `None` cancels the login.
    fn select<'a>(&'a self, choice: &'a LoginChoice) -> BoxFuture<'a, Option<String>>;

    /// Reports what the login is doing.
    fn progress(&self, text: &str) {
        let _ = text;
    }

    /// Waits for a pasted redirect URL or code while the browser is active; the answer `None` means that nothing will be pasted. Returns
    /// `None` if this user interface does not support pasting.
    fn pasted(&self) -> Option<BoxFuture<'_, Option<String>>> {
        None
    }

    /// Returns whether the browser runs on another machine, so that it cannot reach a server on this one.
    fn is_headless(&self) -> bool {
        false
    }
}
