//! The user interface of a login: what flows show and ask.

use futures::future::BoxFuture;

/// A page on which a person signs in.
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
    /// A page with instructions.
    pub fn new(url: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self { url: url.into(), instructions: Some(instructions.into()), user_code: None }
    }

    /// A page on which a code has to be entered.
    pub fn with_code(url: impl Into<String>, code: impl Into<String>) -> Self {
        let code = code.into();
        Self { url: url.into(), instructions: Some(format!("Enter code: {code}")), user_code: Some(code) }
    }
}

/// A question that is answered with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginPrompt {
    /// The question, without a colon at its end.
    pub message: String,
    /// An example of an answer.
    pub placeholder: Option<String>,
    /// Whether an empty answer is valid.
    pub allow_empty: bool,
    /// Whether the answer must not be visible while it is typed.
    pub is_secret: bool,
}

impl LoginPrompt {
    /// A question that needs an answer.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), placeholder: None, allow_empty: false, is_secret: false }
    }

    /// The same question with an example of an answer; an empty answer is valid.
    #[must_use]
    pub fn optional(self, placeholder: impl Into<String>) -> Self {
        Self { placeholder: Some(placeholder.into()), allow_empty: true, ..self }
    }

    /// The same question; its answer is a secret.
    #[must_use]
    pub fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// A question that is answered with one of several options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginChoice {
    /// The question, without a colon at its end.
    pub message: String,
    /// The options; the first one is the usual answer.
    pub options: Vec<LoginOption>,
}

impl LoginChoice {
    /// A question with its options.
    pub fn new(message: impl Into<String>, options: Vec<LoginOption>) -> Self {
        Self { message: message.into(), options }
    }
}

/// One possible answer to a [`LoginChoice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginOption {
    /// What the flow gets.
    pub id: String,
    /// What the person sees.
    pub label: String,
}

/// The user interface of a login.
pub trait LoginUi: Send + Sync {
    /// Shows a page to sign in on, and opens it where that is possible.
    fn show(&self, page: &SignInPage);

    /// Asks for a text. `None` cancels the login.
    fn prompt<'a>(&'a self, prompt: &'a LoginPrompt) -> BoxFuture<'a, Option<String>>;

    /// Asks for one of several options and returns its id. `None` cancels the login.
    fn select<'a>(&'a self, choice: &'a LoginChoice) -> BoxFuture<'a, Option<String>>;

    /// Reports what the login is doing.
    fn progress(&self, text: &str) {
        let _ = text;
    }

    /// Waits for a redirect URL or a code that is pasted while the browser is waited for; the answer `None` means that nothing will be.
    /// `None` if this user interface takes no such input.
    fn pasted(&self) -> Option<BoxFuture<'_, Option<String>>> {
        None
    }

    /// Whether the browser runs on another machine, so that it cannot return to a server on this one.
    fn is_headless(&self) -> bool {
        false
    }
}
