//! The browser part of a login: the user signs in there, and a code comes back.

use super::callback::{Callback, Returned};
use super::{LoginPrompt, LoginUi, OAuthCx, OAuthError, SignInPage, paste};

const INSTRUCTIONS: &str = "Sign in with your browser. If it runs on another machine, paste the URL of the page at which it ends, even \
    if that page could not be loaded.";
const COPY_INSTRUCTIONS: &str = "Sign in with your browser, then paste the code that the page shows.";

/// Variables for the interface of the callback server.
const CALLBACK_HOSTS: [&str; 2] = ["PINCH_OAUTH_CALLBACK_HOST", "PI_OAUTH_CALLBACK_HOST"];

/// The page to open, and the redirect that ends the visit.
pub(super) struct Visit<'a> {
    /// Builds the URL of the page for a redirect URI.
    pub(super) url: &'a (dyn Fn(&str) -> String + Sync),
    /// The callback port; 0 means any free one.
    pub(super) port: u16,
    /// The callback path.
    pub(super) path: &'static str,
    /// The state that must be returned with the code.
    pub(super) state: &'a str,
    /// A redirect URI of the provider whose page shows the code, for browsers that cannot return to this machine.
    pub(super) copy_page: Option<&'static str>,
}

/// A code, and the redirect URI that it is valid for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AuthorizationCode {
    pub(super) code: String,
    pub(super) redirect: String,
}

/// Waits for the code: from the browser or pasted, whichever comes first.
pub(super) async fn code(
    visit: &Visit<'_>,
    ui: &dyn LoginUi,
    cx: OAuthCx<'_>,
) -> Result<AuthorizationCode, OAuthError> {
    cx.cancel.run(find_code(visit, ui, cx)).await.unwrap_or(Err(OAuthError::Cancelled))
}

async fn find_code(visit: &Visit<'_>, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<AuthorizationCode, OAuthError> {
    let server = match visit.copy_page {
        Some(_) if ui.is_headless() => None,
        _ => listen(visit, ui, cx).await,
    };
    let port = server.as_ref().map_or(visit.port, Callback::port);
    let (redirect, instructions) = match visit.copy_page {
        Some(page) if server.is_none() => (page.to_owned(), COPY_INSTRUCTIONS),
        _ => (format!("http://localhost:{port}{}", visit.path), INSTRUCTIONS),
    };
    ui.show(&SignInPage::new((visit.url)(&redirect), instructions));
    let browser = async {
        match &server {
            Some(server) => server.wait().await,
            None => std::future::pending().await,
        }
    };
    let pasted = async {
        match pasted(ui, server.is_none()).await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    };
    let code = tokio::select! {
        returned = browser => match returned {
            Returned::Code(code) => code,
            Returned::Refused(error) => return Err(denied(&error)),
        },
        text = pasted => accept(&text?, visit.state)?,
    };
    Ok(AuthorizationCode { code, redirect })
}

/// Starts the callback server. If that fails, the code must be pasted.
async fn listen(visit: &Visit<'_>, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Option<Callback> {
    let host = CALLBACK_HOSTS.iter().find_map(|name| cx.host.env().non_empty(name)).unwrap_or("127.0.0.1");
    match Callback::listen(host, visit.port, visit.path, visit.state).await {
        Ok(server) => Some(server),
        Err(error) => {
            ui.progress(&format!(
                "The browser cannot return by itself: cannot listen on {host}:{} ({error}).",
                visit.port
            ));
            None
        }
    }
}

/// Waits for a pasted text; returns `None` if nothing will be pasted but a browser may still return.
async fn pasted(ui: &dyn LoginUi, is_only_way: bool) -> Option<Result<String, OAuthError>> {
    let text = match ui.pasted() {
        Some(pasted) => pasted.await,
        // Nothing else can arrive.
        None if is_only_way => Some(String::new()),
        None => None,
    };
    match text {
        Some(text) if !text.trim().is_empty() => Some(Ok(text)),
        Some(_) => {
            let prompt = LoginPrompt::new("Paste the code, or the URL of the page at which the browser ended");
            Some(ui.prompt(&prompt).await.ok_or(OAuthError::Cancelled))
        }
        None if is_only_way => {
            Some(Err(OAuthError::Invalid("the browser cannot return to this machine, and no code was pasted".into())))
        }
        None => None,
    }
}

/// Extracts the code from a pasted text if it belongs to this login.
fn accept(text: &str, state: &str) -> Result<String, OAuthError> {
    let pasted = paste::read(text);
    if pasted.state.as_deref().is_some_and(|theirs| theirs != state) {
        return Err(OAuthError::Invalid("OAuth state mismatch: the code belongs to another login".into()));
    }
    match (pasted.code, pasted.error) {
        (Some(code), _) => Ok(code),
        (None, Some(error)) => Err(denied(&error)),
        (None, None) => Err(OAuthError::Invalid("Missing authorization code".into())),
    }
}

fn denied(error: &str) -> OAuthError {
    let error: String = error.chars().filter(|c| !c.is_control()).take(200).collect();
    OAuthError::Invalid(format!("The sign-in was refused: {error}"))
}
