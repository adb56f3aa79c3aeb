//! The URL of a request.

#[cfg(any(feature = "bedrock", feature = "vertex"))]
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use pinch_stdx::host::env::Env;

use crate::error::{LlmError, LlmErrorKind};
use crate::model::Model;
use crate::request::Request;

/// Returns the base URL of a request: that of its credentials, else the model's.
pub(crate) fn base(request: &Request) -> &str {
    request.auth.base_url.as_deref().unwrap_or(&request.model.base_url)
}

/// Returns the URL of a path below a request's base URL, with `{NAME}` placeholders replaced by variables in the request's environment.
///
/// # Errors
/// Returns an error if there is no base URL, or a placeholder's variable is not set.
pub fn url(request: &Request, path: &str) -> Result<String, LlmError> {
    url_under(request, base(request), path)
}

/// Returns the URL of a path below a base URL, with placeholders replaced.
///
/// # Errors
/// Returns an error if the base URL is empty, or a placeholder's variable is not set.
pub(crate) fn url_under(request: &Request, base: &str, path: &str) -> Result<String, LlmError> {
    let base = filled(request, base)?;
    Ok(format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/')))
}

/// Returns a request's base URL with placeholders replaced.
///
/// # Errors
/// Returns an error if there is none, or a placeholder's variable is not set.
pub(crate) fn filled_base(request: &Request) -> Result<String, LlmError> {
    filled(request, base(request))
}

fn filled(request: &Request, base: &str) -> Result<String, LlmError> {
    if base.is_empty() {
        let provider = request.model.provider.clone();
        let text = format!("No base URL for provider: {provider}");
        return Err(LlmError::new(provider, LlmErrorKind::InvalidRequest, text));
    }
    fill(base, &request.model, request.host.env())
}

/// Characters that [`encoded`] escapes: all except the unreserved characters of RFC 3986, as required for Amazon's signatures.
#[cfg(any(feature = "bedrock", feature = "vertex"))]
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes a text for a path or query: everything except letters, digits and `-_.~` is escaped.
#[cfg(any(feature = "bedrock", feature = "vertex"))]
pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

/// Encodes pairs for forms and queries, with spaces as `%20`.
#[cfg(any(feature = "bedrock", feature = "vertex"))]
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Replaces each `{NAME}` with the variable of that name.
fn fill(base: &str, model: &Model, env: &Env) -> Result<String, LlmError> {
    let mut filled = String::with_capacity(base.len());
    let mut rest = base;
    while let Some(open) = rest.find('{') {
        let Some(len) = rest[open..].find('}') else { break };
        let name = &rest[open + 1..open + len];
        filled.push_str(&rest[..open]);
        if is_variable(name) {
            filled.push_str(env.non_empty(name).ok_or_else(|| {
                let text = format!("{name} is required for provider {} but is not set.", model.provider);
                LlmError::new(model.provider.clone(), LlmErrorKind::Auth, text)
            })?);
        } else {
            filled.push_str(&rest[open..=open + len]);
        }
        rest = &rest[open + len + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_uppercase() || b == b'_')
        && bytes.all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
