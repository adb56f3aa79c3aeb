//! Request headers: layers of overrides, the API key, and headers for individual providers.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use pinch_stdx::secret::Secret;
use sha2::{Digest, Sha256};

use crate::error::{LlmError, LlmErrorKind};
use crate::keys;
use crate::message::{Block, Content, Message};
use crate::model::Model;
use crate::model::dialect::{AffinityFormat, KeyHeader};
use crate::request::{CacheRetention, Request};

/// Conversation ids longer than this are sent as their hash, because of OpenAI's limit.
const MAX_SESSION_CHARACTERS: usize = 64;

/// Headers that contain credentials.
const AUTHORISING: [&str; 5] = ["authorization", "x-api-key", "api-key", "cf-aig-authorization", "x-goog-api-key"];

/// Headers under construction: later layers replace and remove headers of earlier ones. Headers with credentials are marked as sensitive.
///
/// All formats use this order: the format's own headers, then those of the model, the credential, and the call.
#[derive(Debug)]
pub struct HeaderLayers<'a> {
    model: &'a Model,
    headers: HeaderMap,
}

impl<'a> HeaderLayers<'a> {
    /// Creates an empty set of headers.
    pub fn new(model: &'a Model) -> Self {
        Self { model, headers: HeaderMap::new() }
    }

    /// Sets a header, replacing an earlier one.
    ///
    /// # Errors
    /// Returns an error if name or value contain invalid characters. The error does not show the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), LlmError> {
        let (name, mut value) = match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => (name, value),
            _ => {
                // The value may be a secret, so it is not part of the text.
                let text =
                    format!("header \"{name}\" cannot be sent: its name or value holds characters no header may have");
                return Err(LlmError::new(self.model.provider.clone(), LlmErrorKind::InvalidRequest, text));
            }
        };
        value.set_sensitive(is_secret(&name));
        self.headers.insert(name, value);
        Ok(())
    }

    /// Adds a layer on top; `None` removes a header.
    ///
    /// # Errors
    /// See [`HeaderLayers::set`].
    pub fn lay(&mut self, list: &[(String, Option<String>)]) -> Result<(), LlmError> {
        for (name, value) in list {
            match value {
                Some(value) => self.set(name, value)?,
                None => drop(self.headers.remove(name.as_str())),
            }
        }
        Ok(())
    }

    /// Returns the finished headers.
    pub fn finish(self) -> HeaderMap {
        self.headers
    }
}

fn is_secret(name: &HeaderName) -> bool {
    AUTHORISING.contains(&name.as_str())
}

/// Returns whether the caller supplies an authorization header, so that no key is needed.
pub(crate) fn brings_authorisation(request: &Request) -> bool {
    let given = request.model.headers.iter().chain(&request.auth.headers).chain(&request.options.headers);
    given
        .filter(|(_, value)| value.is_some())
        .any(|(name, _)| AUTHORISING.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// The API key or access token of a request.
#[derive(Clone, Debug)]
pub struct AuthKey {
    secret: Secret,
    /// Whether its variable holds bearer tokens.
    pub is_bearer: bool,
}

impl AuthKey {
    /// Returns the secret, for the header that contains it.
    pub fn reveal(&self) -> &str {
        self.secret.reveal()
    }

    /// Returns the value of an `Authorization: Bearer` header.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.secret.reveal())
    }
}

/// Returns the key of a request: the given one, else that of the provider in the request's environment; `None` if the server needs none or
/// the caller authorizes with headers.
///
/// # Errors
/// Returns [`LlmErrorKind::Auth`] if a required key is missing.
pub fn key(request: &Request) -> Result<Option<AuthKey>, LlmError> {
    let provider = &request.model.provider;
    if let Some(secret) = request.auth.key.clone().filter(|key| !keys::is_placeholder(key)) {
        return Ok(Some(AuthKey { secret, is_bearer: false }));
    }
    if request.auth.keyless || brings_authorisation(request) {
        return Ok(None);
    }
    match keys::look_up(provider.as_str(), request.host.env()).filter(|found| !keys::is_placeholder(&found.key)) {
        Some(found) => Ok(Some(AuthKey { secret: found.key, is_bearer: found.is_bearer })),
        None => {
            let text = format!("No API key for provider: {provider}");
            Err(LlmError::new(provider.clone(), LlmErrorKind::Auth, text))
        }
    }
}

/// Sets the key as in OpenAI's formats.
pub(crate) fn bearer(layers: &mut HeaderLayers<'_>, request: &Request, key: Option<&AuthKey>) -> Result<(), LlmError> {
    let Some(key) = key else { return Ok(()) };
    let name = match request.model.dialect.wire.key_header {
        KeyHeader::CloudflareGateway => "cf-aig-authorization",
        KeyHeader::Usual | KeyHeader::Bearer => "authorization",
    };
    layers.set(name, &key.bearer())
}

/// Sets the headers of every request: `accept`, `content-type` and `user-agent`.
///
/// # Errors
/// See [`HeaderLayers::set`].
pub fn common(layers: &mut HeaderLayers<'_>) -> Result<(), LlmError> {
    layers.set("accept", "application/json")?;
    layers.set("content-type", "application/json")?;
    layers.set("user-agent", concat!("pinch/", env!("CARGO_PKG_VERSION")))
}

/// Sets headers with conversation details that some providers need.
pub(crate) fn provider_quirks(layers: &mut HeaderLayers<'_>, request: &Request) -> Result<(), LlmError> {
    let wire = &request.model.dialect.wire;
    if wire.copilot_headers {
        let last = request.messages.iter().rev().find(|m| !matches!(***m, Message::System(_)));
        let by_user = last.is_none_or(|message| matches!(**message, Message::User(_)));
        layers.set("x-initiator", if by_user { "user" } else { "agent" })?;
        layers.set("openai-intent", "conversation-edits")?;
        if request.messages.iter().any(|message| has_image(message)) {
            layers.set("copilot-vision-request", "true")?;
        }
    }
    if let (Some(name), Some(session)) = (wire.session_header, session(request)) {
        layers.set(name, &session)?;
    }
    Ok(())
}

fn has_image(message: &Message) -> bool {
    let any = |blocks: &[Block]| blocks.iter().any(|block| matches!(block, Block::Image(_)));
    match message {
        Message::User(user) => matches!(&user.content, Content::Blocks(blocks) if any(blocks)),
        Message::ToolResult(result) => any(&result.content),
        Message::System(_) | Message::Assistant(_) | Message::Other(_) => false,
    }
}

/// Returns the requested retention.
pub(crate) fn retention(request: &Request) -> CacheRetention {
    request.options.cache_retention.unwrap_or_else(|| match request.host.env().get("PI_CACHE_RETENTION") {
        Some("long") => CacheRetention::Long,
        _ => CacheRetention::Short,
    })
}

/// Returns the conversation's id in a form that providers accept.
pub(crate) fn session(request: &Request) -> Option<Cow<'_, str>> {
    let id = request.options.session_id.as_deref().filter(|id| !id.is_empty())?;
    if id.chars().count() <= MAX_SESSION_CHARACTERS {
        return Some(Cow::Borrowed(id));
    }
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(id.as_bytes()) {
        // Writing to a string cannot fail.
        let _ok = write!(hex, "{byte:02x}");
    }
    Some(Cow::Owned(hex))
}

/// Sets headers that keep a conversation on one machine, if the model's server supports them and caching is enabled.
pub(crate) fn affinity(layers: &mut HeaderLayers<'_>, request: &Request, names: &[&str]) -> Result<(), LlmError> {
    let wanted = request.model.dialect.wire.affinity;
    let Some(session) = session(request).filter(|_| wanted.send && retention(request) != CacheRetention::None) else {
        return Ok(());
    };
    let names = match wanted.format {
        AffinityFormat::OpenRouter => &["x-session-id"],
        AffinityFormat::OpenAi | AffinityFormat::OpenAiNoSession => names,
    };
    for name in names {
        let names_session = matches!(*name, "session_id" | "session-id");
        if !names_session || wanted.format == AffinityFormat::OpenAi {
            layers.set(name, &session)?;
        }
    }
    Ok(())
}
