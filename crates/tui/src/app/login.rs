//! `/login` and `/logout`.

use std::pin::pin;
use std::sync::Arc;

use pinch_coding_agent::login::dialog::{self, BrowserLocation};
use pinch_coding_agent::login::{self, LoginDialog, LoginError, LoginEvent, LoginProvider, LoginRequest};
use pinch_coding_agent::services::Services;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::text::with_causes;
use tokio::sync::oneshot;

use super::console::Console;
use crate::dialog::{ChoiceDialog, LoginView};
use crate::effect::{DialogAnswer, Effect};
use crate::widget::PickItem;

/// Offers providers to log in to, or those with stored credentials to log out of.
pub(super) async fn choose(console: &mut Console, services: &Arc<Services>, logs_out: bool) {
    let choices = providers(services, logs_out).await;
    if choices.is_empty() {
        return console.app.status("There are no stored credentials to remove");
    }
    let title = if logs_out { "Log out of a provider" } else { "Log in to a provider" };
    console.app.open(Box::new(ChoiceDialog::new(title, choices)));
}

/// Returns the providers to log in to, or those with stored credentials to log out of.
pub(super) async fn providers(services: &Arc<Services>, logs_out: bool) -> Vec<(PickItem, Vec<Effect>)> {
    let auth = services.auth();
    let mut choices = Vec::new();
    for provider in LoginProvider::all(auth) {
        let is_stored = auth.storage().has(&provider.id);
        if provider.methods.is_empty() || (logs_out && !is_stored) {
            continue;
        }
        let status = login::status(auth, &provider, None).await;
        let id = provider.id.to_string();
        let item =
            PickItem::new(provider.name.clone()).detail(status.to_string()).search(format!("{} {id}", provider.name));
        choices.push((item, vec![if logs_out { Effect::Logout(id) } else { Effect::Login(id) }]));
    }
    choices
}

/// Shows the state of a login as a dialog; its answer arrives on the returned channel.
fn show(console: &mut Console, name: &str, dialog: &LoginDialog) -> oneshot::Receiver<DialogAnswer> {
    let (reply, answer) = oneshot::channel();
    let progress = dialog.progress().next_back().map(str::to_owned);
    let view = LoginView::new(name, dialog.page().cloned(), progress, dialog.question());
    console.app.close_question();
    console.app.open_for(Box::new(view), reply);
    console.front.mark();
    answer
}

/// Logs a user in, in a dialog. Returns whether it succeeded.
pub(super) async fn log_in(console: &mut Console, services: &Arc<Services>, provider: &str, stop: &Cancel) -> bool {
    let auth = services.auth();
    let name = LoginProvider::find(auth, provider).map_or_else(|| provider.to_owned(), |provider| provider.name);
    let cancel = stop.child();
    let place = if console.front.capabilities().remote { BrowserLocation::Elsewhere } else { BrowserLocation::Here };
    let (ui, mut dialog) = dialog::open(place);
    let mut work = pin!(login::log_in(LoginRequest::new(provider), auth, &ui, &cancel));
    let mut answer = show(console, &name, &dialog);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done,
            event = dialog.next() => {
                if event == LoginEvent::Page && let Some(page) = dialog.page() {
                    console.app.open_page(&page.url);
                }
                answer = show(console, &name, &dialog);
            }
            given = &mut answer => {
                let text = match given {
                    Ok(DialogAnswer::Text(text)) => Some(text),
                    _ => None,
                };
                if text.is_none() {
                    cancel.cancel(CancelReason::User);
                }
                dialog.answer(text);
                answer = show(console, &name, &dialog);
            }
            event = console.next() => console.handle(event).await,
        }
        if console.exiting {
            cancel.cancel(CancelReason::User);
        }
    };
    console.app.close_question();
    let is_done = done.is_ok();
    match done {
        Ok(done) => {
            console.app.status(&done.to_string());
            if let Some(why) = &done.unchecked {
                console.app.warning(&format!("The API key could not be checked: {why}"));
            }
            for problem in &done.problems {
                console.app.warning(&problem.to_string());
            }
            console.app.credentials_changed(services, &done.provider);
        }
        Err(LoginError::Cancelled) => console.app.status("Login cancelled"),
        Err(error) => console.app.error(&with_causes(&error)),
    }
    console.front.mark();
    is_done
}

/// Removes the stored credentials of a provider.
pub(super) async fn log_out(console: &mut Console, services: &Arc<Services>, provider: &str) {
    let auth = services.auth();
    let Some(known) = LoginProvider::find(auth, provider) else {
        return console.app.warning(&format!("Unknown provider {provider:?}; /logout lists them"));
    };
    match login::log_out(auth, &known.id).await {
        Ok(outcome) => console.app.status(&outcome.to_string()),
        Err(error) => console.app.error(&with_causes(&error)),
    }
}
