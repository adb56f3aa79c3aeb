//! GitHub Copilot.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::Method;
use pinch_http::url_parts::{host, host_is};
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::transport::OAuthRequest;
use super::{LoginPrompt, LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow, SignInPage};
use crate::catalog::Catalog;

const ID: &str = "github-copilot";
const CLIENT: &str = "Iv1.b507a08c87ecfe98";
const SCOPE: &str = "read:user";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const AGENT: &str = "GitHubCopilotChat/0.35.0";
/// Prefixes of GitHub tokens; Copilot accepts only its own tokens.
const GITHUB_TOKENS: [&str; 3] = ["gho_", "ghu_", "github_pat_"];
/// How long before its expiry an access token counts as expired.
const MARGIN_MS: i64 = 5 * 60 * 1_000;
/// Number of models enabled concurrently.
const N_AT_ONCE: usize = 4;
/// Time limit for enabling all models.
const ENABLE_LIMIT: Duration = Duration::from_secs(30);
/// Base URL if neither the token nor the enterprise determines it.
const BASE_URL: &str = "https://api.individual.githubcopilot.com";
/// The credential's member for the enterprise's GitHub host.
const ENTERPRISE: &str = "enterpriseUrl";

/// Signs in to GitHub Copilot.
///
/// By default, a login enables the catalog's models.
#[derive(Clone, Debug, Default)]
pub struct Copilot {
    /// Models to enable after a login; `None` means those of the catalog, which is loaded then.
    models: Option<Vec<String>>,
}

impl Copilot {
    /// Enables these models after a login.
    pub fn with_models(models: Vec<String>) -> Self {
        Self { models: Some(models) }
    }

    async fn sign_in(&self, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let prompt =
            LoginPrompt::new("GitHub Enterprise URL/domain (blank for github.com)").optional("company.ghe.com");
        let asked = cx.cancel.run(ui.prompt(&prompt)).await;
        let given = asked.ok().flatten().ok_or(OAuthError::Cancelled)?;
        let enterprise = normalize_domain(&given);
        if enterprise.is_none() && !given.trim().is_empty() {
            return Err(OAuthError::Invalid("Invalid GitHub Enterprise URL/domain".into()));
        }
        let domain = enterprise.as_deref().unwrap_or("github.com");
        let device = Device::begin(domain, cx).await?;
        ui.show(&SignInPage::with_code(&*device.page, &*device.user_code));
        let github = device.wait(domain, ui, cx).await?;
        let mut extra = Map::new();
        if let Some(domain) = &enterprise {
            extra.insert(ENTERPRISE.into(), domain.as_str().into());
        }
        let signed_in = OAuthCredential { refresh: github.into(), access: "".into(), expires: 0, extra };
        let credential = self.renew(&signed_in, cx).await?;
        ui.progress("Enabling models…");
        self.enable_models(&credential, cx).await?;
        Ok(credential)
    }

    /// Gets a new Copilot token for the GitHub token, which stays.
    async fn renew(&self, old: &OAuthCredential, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let domain = enterprise(old).unwrap_or_else(|| "github.com".into());
        let what = "GitHub Copilot token request failed";
        let url = format!("https://api.{domain}/copilot_internal/v2/token");
        let ask = OAuthRequest::new(what, Method::GET, url).bearer(old.refresh.reveal());
        let given = as_editor(ask).good(cx).await?;
        let (Some(token), Some(expires)) = (given["token"].as_str(), given["expires_at"].as_f64()) else {
            return Err(OAuthError::Invalid(format!("{what}: the answer has no token, or no expires_at")));
        };
        let expires = ((expires * 1_000.0) as i64).saturating_sub(MARGIN_MS);
        Ok(OAuthCredential { access: token.into(), expires, ..old.clone() })
    }

    /// Enables models that require it. Failures are ignored.
    async fn enable_models(&self, credential: &OAuthCredential, cx: OAuthCx<'_>) -> Result<(), OAuthError> {
        let base = base_url(credential.access.reveal(), enterprise(credential).as_deref());
        let enable = |model: &String| {
            let url = format!("{base}/models/{model}/policy");
            let ask = OAuthRequest::new("model policy", Method::POST, url).bearer(credential.access.reveal());
            let ask = as_editor(ask).json(&json!({"state": "enabled"}));
            let ask = ask.header("openai-intent", "chat-policy").header("x-interaction-type", "chat-policy");
            async move {
                match ask.answer(cx).await {
                    Err(OAuthError::Cancelled) => Err(OAuthError::Cancelled),
                    _ => Ok(()),
                }
            }
        };
        let built_in = || Catalog::built_in().models(ID).iter().map(|model| model.id.to_string()).collect();
        let models = self.models.clone().unwrap_or_else(built_in);
        let mut enabling = futures::stream::iter(models.iter().map(enable)).buffer_unordered(N_AT_ONCE);
        let all = async {
            while let Some(done) = enabling.next().await {
                done?;
            }
            Ok(())
        };
        // Models that are not enabled by then can be enabled on GitHub's website: the login is valid without them.
        tokio::time::timeout(ENABLE_LIMIT, all).await.unwrap_or(Ok(()))
    }
}

/// Adds the headers of the editor that this client identifies as.
fn as_editor(ask: OAuthRequest<'_>) -> OAuthRequest<'_> {
    ask.header("user-agent", AGENT)
        .header("editor-version", "vscode/1.107.0")
        .header("editor-plugin-version", "copilot-chat/0.35.0")
        .header("copilot-integration-id", "vscode-chat")
}

/// A code that the user enters on GitHub's page.
struct Device {
    device_code: String,
    user_code: String,
    page: String,
    interval: f64,
    lasts: f64,
}

impl Device {
    async fn begin(domain: &str, cx: OAuthCx<'_>) -> Result<Self, OAuthError> {
        let what = "GitHub device code request failed";
        let ask = OAuthRequest::new(what, Method::POST, format!("https://{domain}/login/device/code"));
        let given = ask.form(&[("client_id", CLIENT), ("scope", SCOPE)]).header("user-agent", AGENT).good(cx).await?;
        let text = |name: &str| given[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let number = |name: &str| given[name].as_f64().filter(|number| *number >= 0.0 && *number < 1e6);
        let device = || {
            let page = text("verification_uri").filter(|page| is_web_page(page))?;
            let user_code = text("user_code")?.chars().filter(|c| !c.is_control()).collect();
            let (interval, lasts) = (number("interval")?, number("expires_in")?);
            Some(Self { device_code: text("device_code")?, user_code, page, interval, lasts })
        };
        device().ok_or_else(|| OAuthError::Invalid(format!("{what}: the answer is incomplete")))
    }

    /// Polls until the code has been entered, at the interval that the server requests.
    async fn wait(&self, domain: &str, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<String, OAuthError> {
        let end = Instant::now() + Duration::from_secs_f64(self.lasts);
        let (mut interval, mut stretch, mut was_slowed) = (self.interval.max(1.0), 1.2, false);
        while Instant::now() < end {
            let pause = Duration::from_secs_f64((interval * stretch).ceil());
            let wake = (Instant::now() + pause).min(end);
            let slept = cx.cancel.run(tokio::time::sleep_until(wake)).await;
            slept.map_err(|_| OAuthError::Cancelled)?;
            let url = format!("https://{domain}/login/oauth/access_token");
            let pairs = [("client_id", CLIENT), ("device_code", &self.device_code), ("grant_type", GRANT)];
            let ask = OAuthRequest::new("GitHub device flow failed", Method::POST, url).form(&pairs);
            let said = match ask.header("user-agent", AGENT).answer(cx).await {
                Err(error @ OAuthError::Network { .. }) => {
                    interval = back_off(interval, &error, ui);
                    continue;
                }
                said => said?,
            };
            if let Some(token) = said.json["access_token"].as_str().filter(|token| !token.is_empty()) {
                return Ok(token.to_owned());
            }
            match said.json["error"].as_str() {
                Some("authorization_pending") => {}
                Some("slow_down") => {
                    was_slowed = true;
                    stretch = 1.4;
                    let given = said.json["interval"].as_f64().filter(|seconds| *seconds >= 1.0 && *seconds < 1e6);
                    interval = given.unwrap_or(interval + 5.0);
                }
                Some(error) => {
                    let more = said.json["error_description"].as_str().map(|more| format!(": {more}"));
                    let text: String = format!("{error}{}", more.unwrap_or_default()).chars().take(300).collect();
                    return Err(OAuthError::Invalid(format!("Device flow failed: {text}")));
                }
                None if said.status >= 500 => interval = back_off(interval, &said.refused(), ui),
                None => return Err(said.refused()),
            }
        }
        let drift = ". The server asked to slow down: if the code was entered in time, check this machine's clock.";
        Err(OAuthError::Invalid(format!("Device flow timed out{}", if was_slowed { drift } else { "" })))
    }
}

/// Returns the interval after a transient failure: RFC 8628 requires a longer one.
fn back_off(interval: f64, error: &OAuthError, ui: &dyn LoginUi) -> f64 {
    ui.progress(&format!("{error}. Trying again…"));
    interval * 2.0
}

fn is_web_page(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://")) && !url.chars().any(char::is_control)
}

fn enterprise(credential: &OAuthCredential) -> Option<String> {
    credential.extra.get(ENTERPRISE).and_then(Value::as_str).and_then(normalize_domain)
}

/// Returns the host name in a user's input, in lower case and without port, or `None` if there is none.
pub fn normalize_domain(typed: &str) -> Option<String> {
    let typed = typed.trim();
    let host = if typed.contains("://") { host(typed) } else { host(&format!("https://{typed}")) };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let is_name = !host.is_empty() && host.chars().all(is_fine) && !host.starts_with(['.', '-']);
    is_name.then_some(host)
}

/// Returns the base URL for a token: the one it contains, if it belongs to GitHub or the enterprise, else the default.
pub fn base_url(token: &str, enterprise: Option<&str>) -> String {
    let named = token.split(';').find_map(|part| part.trim().strip_prefix("proxy-ep="));
    let named = named.map(|named| match named.strip_prefix("proxy.") {
        Some(rest) => format!("api.{rest}"),
        None => named.to_owned(),
    });
    let trusted = named.filter(|named| {
        let url = format!("https://{named}");
        let domains = ["githubcopilot.com", "ghe.com"].into_iter().chain(enterprise);
        // Only a host name: no port, no path, no user.
        host(&url) == named.to_ascii_lowercase() && domains.into_iter().any(|domain| host_is(&url, domain))
    });
    match (trusted, enterprise) {
        (Some(host), _) => format!("https://{host}"),
        (None, Some(domain)) => format!("https://copilot-api.{domain}"),
        (None, None) => BASE_URL.to_owned(),
    }
}

impl OAuthFlow for Copilot {
    fn id(&self) -> &str {
        ID
    }

    fn name(&self) -> &str {
        "GitHub Copilot"
    }

    fn login<'a>(&'a self, ui: &'a dyn LoginUi, cx: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(self.sign_in(ui, cx))
    }

    fn refresh<'a>(
        &'a self,
        credential: &'a OAuthCredential,
        cx: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(self.renew(credential, cx))
    }

    fn is_initial_token(&self, key: &Secret) -> bool {
        GITHUB_TOKENS.iter().any(|prefix| key.reveal().starts_with(prefix))
    }

    fn base_url(&self, credential: &OAuthCredential) -> Option<String> {
        Some(base_url(credential.access.reveal(), enterprise(credential).as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enterprise_domains_are_read_from_urls_and_hosts() {
        let typed =
            ["", "  ", "company.ghe.com", "https://company.ghe.com/login", "::bad::", "COMPANY.GHE.com:8443", "a b"];
        let expected =
            [None, None, Some("company.ghe.com"), Some("company.ghe.com"), None, Some("company.ghe.com"), None];
        assert_eq!(typed.map(normalize_domain), expected.map(|domain| domain.map(str::to_owned)));
    }

    #[test]
    fn tokens_name_the_api_host() {
        for (token, enterprise, expect) in [
            (
                "tid=1;exp=2;proxy-ep=proxy.enterprise.githubcopilot.com;x=1",
                None,
                "https://api.enterprise.githubcopilot.com",
            ),
            ("tid=1", None, BASE_URL),
            ("tid=1", Some("ghe.corp.com"), "https://copilot-api.ghe.corp.com"),
            ("proxy-ep=proxy.ghe.corp.com", Some("ghe.corp.com"), "https://api.ghe.corp.com"),
            ("tid=1;proxy-ep=proxy.evil.example;x=1", None, BASE_URL),
            ("proxy-ep=evilgithubcopilot.com", None, BASE_URL),
            ("proxy-ep=evil.example/.githubcopilot.com", None, BASE_URL),
            ("proxy-ep=evil.example#.githubcopilot.com", None, BASE_URL),
            ("proxy-ep=x@y.githubcopilot.com:80", None, BASE_URL),
        ] {
            assert_eq!(base_url(token, enterprise), expect, "{token}");
        }
    }
}
