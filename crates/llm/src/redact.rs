//! Removes secrets from foreign texts: some servers repeat the credentials that they reject.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;

use crate::keys;
use crate::request::Request;

/// Minimum length of a secret, in characters: shorter ones occur in many texts.
const LEAST_SECRET: usize = 8;
/// The replacement of a secret.
const HIDDEN: &str = "[hidden]";
/// Headers that are known not to be secret: hiding them would only make texts hard to read.
const HARMLESS: [&str; 15] = [
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "copilot-integration-id",
    "editor-plugin-version",
    "editor-version",
    "http-referer",
    "openai-beta",
    "openai-intent",
    "originator",
    "referer",
    "user-agent",
    "x-initiator",
    "x-title",
];
/// Variables for proxies, whose URLs may contain a password.
const PROXIES: [&str; 6] = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];

/// All secrets that a request may contain.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.0.len()).finish()
    }
}

impl Secrets {
    /// Collects the secrets of a request: its credentials, its headers, the passwords in its URLs, and the keys in its environment.
    pub fn of(request: &Request) -> Self {
        let mut secrets = Self::default();
        let auth = &request.auth;
        secrets.add(auth.key.as_ref().map(Secret::reveal));
        if let Some(keys) = auth.aws.as_ref().and_then(|aws| aws.keys.as_ref()) {
            secrets.add([keys.secret_access_key.reveal()]);
            secrets.add(keys.session_token.as_ref().map(Secret::reveal));
        }
        // A value may be a secret prefixed with `Bearer`.
        let values = auth.headers.iter().filter_map(|(_, value)| value.as_deref());
        secrets.add(values.flat_map(str::split_whitespace));
        let others = request.model.headers.iter().chain(&request.options.headers);
        let others = others.filter(|(name, _)| !HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known)));
        secrets.add(others.filter_map(|(_, value)| value.as_deref()).flat_map(str::split_whitespace));
        secrets.add(request.options.native.get("bearerToken").and_then(|token| token.as_str()));
        for url in [Some(request.model.base_url.as_str()), auth.base_url.as_deref()].into_iter().flatten() {
            secrets.add_url(url);
        }
        secrets.add_env(request.host.env());
        if let Some(env) = &auth.env {
            secrets.add_env(env);
        }
        // One may be part of another.
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.0.dedup();
        secrets
    }

    /// Collects the secrets of an environment: provider keys, and passwords in proxy URLs.
    pub fn in_env(env: &Env) -> Self {
        let mut secrets = Self::default();
        secrets.add_env(env);
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.0.dedup();
        secrets
    }

    /// Adds the headers that were marked as sensitive when they were sent.
    pub(crate) fn add_sent(&mut self, headers: &HeaderMap) {
        let marked = headers.values().filter(|value| value.is_sensitive()).filter_map(|value| value.to_str().ok());
        self.add(marked.flat_map(str::split_whitespace));
    }

    /// Adds the secrets of a request.
    pub(crate) fn and(mut self, request: &Request) -> Self {
        self.0.extend(Self::of(request).0);
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self
    }

    /// Returns a text with its secrets hidden, or `None` if it contains none.
    pub fn hidden_in(&self, text: &str) -> Option<String> {
        let found: Vec<&String> = self.0.iter().filter(|secret| text.contains(secret.as_str())).collect();
        (!found.is_empty())
            .then(|| found.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN)))
    }

    fn add<'a>(&mut self, secrets: impl IntoIterator<Item = &'a str>) {
        let long = secrets
            .into_iter()
            .filter(|secret| secret.len() >= LEAST_SECRET && !keys::is_placeholder(&Secret::new(*secret)));
        self.0.extend(long.map(str::to_owned));
    }

    fn add_env(&mut self, env: &Env) {
        self.add(keys::secret_variables().filter_map(|name| env.non_empty(name)));
        for url in PROXIES.iter().filter_map(|name| env.non_empty(name)) {
            self.add_url(url);
        }
    }

    /// Adds the password of a URL: as written, decoded, and as the header of its scheme contains it. Parsed by hand, because a URL that no
    /// parser accepts may still contain one.
    fn add_url(&mut self, url: &str) {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else { return };
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
        let (plain_user, plain_password) = (decoded(user), decoded(password));
        for (user, password) in [(user, password), (&*plain_user, &*plain_password)] {
            self.add([
                password,
                STANDARD.encode(password).as_str(),
                STANDARD.encode(format!("{user}:{password}")).as_str(),
            ]);
        }
        // A user name alone may be a token.
        if password.is_empty() {
            self.add([user, &plain_user]);
        }
    }
}
