//! Checks credentials: which providers have some and where they come from, never their values.

use pinch_embed::coding_agent::auth::KeyLookup;
use pinch_embed::coding_agent::models::AuthStatus;
use pinch_embed::coding_agent::models::request_auth::AuthSource;
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::llm::oauth::OAuthCredential;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};

/// Looks for credentials without running commands or calling servers.
pub(super) async fn look(context: &DoctorContext) -> DoctorSection {
    let mut section = DoctorSection::new("Keys");
    let mut providers = context.registry.providers();
    for stored in context.auth.storage().providers() {
        if !providers.contains(&stored) {
            providers.push(stored);
        }
    }
    for provider in &providers {
        let name = provider.as_str();
        let is_login = context.auth.is_using_oauth(provider);
        // A request might renew a login.
        if !is_login && let Err(error) = context.auth.key(provider, KeyLookup::Presence).await {
            section.add(FindingStatus::Warn, name, error.to_string());
            continue;
        }
        let status = context.auth.status(provider);
        if status.is_configured() {
            section.add(FindingStatus::Ok, name, if is_login { login(context, provider) } else { source(&status) });
        }
        if let Some(hint) = context.auth.hint(provider) {
            section.add(FindingStatus::Warn, name, hint);
        }
    }
    if section.is_empty() {
        let text = "none. Set an environment variable such as ANTHROPIC_API_KEY, or add a server to models.json";
        section.add(FindingStatus::Warn, "keys", text);
    }
    section
}

fn login(context: &DoctorContext, provider: &ProviderId) -> String {
    let entry = context.auth.storage().get(provider);
    let is_expired = entry
        .and_then(|entry| OAuthCredential::from_value(&entry))
        .is_some_and(|login| login.is_expired(context.host.now_ms()));
    if is_expired {
        "a login in auth.json, expired; it is refreshed when it is used".to_owned()
    } else {
        "a login in auth.json".to_owned()
    }
}

fn source(status: &AuthStatus) -> String {
    let of = |text: &str| text.to_owned();
    match status.source {
        Some(AuthSource::Stored) => of("auth.json"),
        Some(AuthSource::Runtime) => of("the command line"),
        Some(AuthSource::ModelsJsonCommand) => of("a command in models.json"),
        Some(AuthSource::ModelsJsonKey) => of("models.json"),
        Some(AuthSource::Environment) => status.label.clone().unwrap_or_else(|| of("credentials of this machine")),
        None => of("nowhere"),
    }
}
