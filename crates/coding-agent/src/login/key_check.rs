//! Checking API keys: the smallest request to the provider's default model works for every wire format.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::StreamEvent;
use pinch_llm::ids::ProviderId;
use pinch_llm::message::Message;
use pinch_llm::provider::Provider as _;
use pinch_llm::request::{Auth, CallOptions, Request};
use pinch_stdx::cancel::{Cancel, Deadline};
use pinch_stdx::secret::Secret;

use crate::auth::{AuthError, KeyLookup, config_value};
use crate::models::RegistryAuth;
use crate::models::dispatch::Dispatch;

/// Timeout of the check.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum tokens of the answer; some providers accept no smaller limit.
const MAX_TOKENS: u64 = 16;
/// Maximum bytes of an API key.
const MAX_BYTES: usize = 16 * 1024;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyCheck {
    /// The provider accepted the key.
    Accepted,
    /// The provider rejected the key, with this message.
    Rejected(String),
    /// The value refers to a variable or a command without a result.
    Unresolved(String),
    /// The check was inconclusive, for this reason.
    Unknown(String),
}

/// Trims an API key.
///
/// # Errors
/// Describes why it is invalid.
pub(super) fn trimmed(entered: &Secret) -> Result<&str, &'static str> {
    let key = entered.reveal().trim();
    // A command may contain anything.
    let has_blanks = !key.starts_with('!') && key.contains(|c: char| c.is_whitespace() || c.is_control());
    match key {
        "" => Err("it is empty"),
        _ if key.len() > MAX_BYTES => Err("it is too long"),
        _ if has_blanks => Err("it contains spaces, line breaks or control characters"),
        key => Ok(key),
    }
}

/// Sends a minimal request with this key: a literal, a `$NAME` or a `!command`, as in auth.json.
pub(super) async fn check(provider: &ProviderId, value: &str, auth: &RegistryAuth, cancel: &Cancel) -> KeyCheck {
    let Some(model) = auth.registry().default_model(provider) else {
        return KeyCheck::Unknown("none of its models is known".to_owned());
    };
    let env = auth.storage().env_of(provider, auth.host().env());
    let key = match config_value::resolve(value, &env).await {
        Ok(key) => key,
        Err(error) => return KeyCheck::Unresolved(format!("it could not be resolved {error}")),
    };
    let cancel = cancel.child_until(Deadline::after(LIMIT));
    let credentials = match cancel.run(auth.complete(&model, Auth::key(key), KeyLookup::Value)).await {
        Ok(Ok(credentials)) => credentials,
        Ok(Err(AuthError::Refresh { reason, is_final: true, .. })) => return KeyCheck::Rejected(reason),
        Ok(Err(error)) => return KeyCheck::Unknown(error.to_string()),
        Err(_) => return timed_out(),
    };
    let host = auth.host().with_env(env);
    let message = Arc::new(Message::user("Hi", host.now_ms()));
    let request = Request::new(model, vec![message])
        .with_options(CallOptions::default().with_max_tokens(MAX_TOKENS))
        .with_auth(credentials)
        .with_host(host);
    let mut events = Dispatch::new(Arc::clone(auth.registry())).stream(request, cancel);
    match events.next().await {
        // The rest of the answer is irrelevant; dropping the stream ends the request.
        Some(StreamEvent::End(end)) => end.error.map_or(KeyCheck::Accepted, |error| judge(&error)),
        Some(_) => KeyCheck::Accepted,
        None => KeyCheck::Unknown("there was no answer".to_owned()),
    }
}

fn judge(error: &LlmError) -> KeyCheck {
    let is_refused = matches!(error.status, Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))
        || matches!(error.kind, LlmErrorKind::Auth | LlmErrorKind::AuthPermanent);
    match error.kind {
        _ if is_refused => KeyCheck::Rejected(error.text.clone()),
        // A key without quota or credit was recognized.
        LlmErrorKind::RateLimit | LlmErrorKind::Quota => KeyCheck::Accepted,
        LlmErrorKind::Aborted => timed_out(),
        _ => KeyCheck::Unknown(error.text.clone()),
    }
}

fn timed_out() -> KeyCheck {
    KeyCheck::Unknown(format!("no answer within {} s", LIMIT.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_trimmed_and_contain_no_whitespace() {
        let check = |text: &str| trimmed(&text.into()).map(str::to_owned);
        assert_eq!(check(" sk-1\r\n"), Ok("sk-1".into()));
        assert_eq!(check("!pass show key"), Ok("!pass show key".into()));
        assert_eq!(check("$KEY"), Ok("$KEY".into()));
        assert_eq!(check(" \n"), Err("it is empty"));
        for bad in ["sk 1", "sk-1\nsk-2", "sk\u{1b}[200~"] {
            assert_eq!(check(bad), Err("it contains spaces, line breaks or control characters"), "{bad:?}");
        }
        assert_eq!(check(&"x".repeat(MAX_BYTES + 1)), Err("it is too long"));
    }
}
