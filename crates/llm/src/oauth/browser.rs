//! The part of a login that happens in a browser: the person signs in there, and a code comes back.

use super::callback::{Callback, Came};
use super::{LoginPrompt, LoginUi, OAuthCx, OAuthError, SignInPage, paste};

const INSTRUCTIONS: &str = "Finish the sign-in in your browser. When the browser runs on another machine, paste the address \
    at which it ends, or the code that it shows.";

/// Where a browser is sent, and where it comes back.
pub(super) struct Visit<'a> {
    pub(super) url: String,
    pub(super) port: u16,
    pub(super) path: &'static str,
    pub(super) state: &'a str,
}

/// Waits for the code: from the browser, or pasted, whichever comes first.
pub(super) async fn code(visit: Visit<'_>, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<String, OAuthError> {
    cx.cancel.run(find_code(visit, ui, cx)).await.unwrap_or(Err(OAuthError::Cancelled))
}

async fn find_code(visit: Visit<'_>, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<String, OAuthError> {
    let host = cx.host.env().non_empty("PI_OAUTH_CALLBACK_HOST").unwrap_or("127.0.0.1");
    let server = Callback::listen(host, visit.port, visit.path, visit.state).await;
    ui.show(&SignInPage { url: visit.url, instructions: Some(INSTRUCTIONS.into()) });
    if server.is_none() {
        ui.progress(&format!("Port {} is in use, so the browser cannot report back.", visit.port));
    }
    let browser = async {
        match &server {
            Some(server) => Some(server.wait().await),
            None => std::future::pending().await,
        }
    };
    let pasted = async {
        match (ui.pasted(), &server) {
            (Some(pasted), _) => Some(pasted.await.ok_or(OAuthError::Cancelled)),
            // Nothing else can come.
            (None, None) => None,
            (None, Some(_)) => std::future::pending().await,
        }
    };
    tokio::select! {
        Some(came) = browser => match came {
            Came::Code(code) => Ok(code),
            Came::Refused(error) => Err(denied(&error)),
        },
        pasted = pasted => {
            let mut text = pasted.transpose()?.unwrap_or_default();
            if text.trim().is_empty() {
                let message = "Paste the code, or the whole address at which the browser ended:".to_owned();
                let prompt = LoginPrompt { message, placeholder: None, allow_empty: false };
                text = ui.prompt(&prompt).await.ok_or(OAuthError::Cancelled)?;
            }
            accept(&text, visit.state)
        }
    }
}

/// The code in what was pasted, if it belongs to this login.
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
