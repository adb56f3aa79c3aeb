//! The Google Cloud project that a login's requests are billed to: found, or created if the account has none.

use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};

use super::GoogleLogin;
use crate::oauth::transport::OAuthRequest;
use crate::oauth::{LoginUi, OAuthCx, OAuthError};

/// The account management service.
const SERVICE: &str = "https://cloudcode-pa.googleapis.com";
/// An alternative account management service for Antigravity.
const SANDBOX: &str = "https://daily-cloudcode-pa.sandbox.googleapis.com";
/// Variables for the project.
const VARIABLES: [&str; 2] = ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID"];
/// Poll interval while an account is being set up.
const POLL: Duration = Duration::from_secs(5);
/// Maximum number of polls: ten minutes in total.
const MAX_POLLS: usize = 120;
/// The tier of free accounts, whose project is created by the service.
const FREE_TIER: &str = "free-tier";

/// Finds an account's project.
pub(super) struct ProjectFinder<'a> {
    pub(super) login: GoogleLogin,
    pub(super) access: &'a str,
    pub(super) ui: &'a dyn LoginUi,
    pub(super) cx: OAuthCx<'a>,
}

impl ProjectFinder<'_> {
    /// Returns the project: the account's own, the one in the environment, or a new one.
    pub(super) async fn find(&self) -> Result<String, OAuthError> {
        self.ui.progress("Looking for the project of the account…");
        let configured = VARIABLES.iter().find_map(|name| self.cx.host.env().non_empty(name));
        if self.login == GoogleLogin::ANTIGRAVITY {
            return self.of_antigravity(configured).await;
        }
        let account = self.account(configured).await?;
        if account["currentTier"].is_object() {
            let project = project_in(&account).or_else(|| configured.map(str::to_owned));
            return project.ok_or_else(no_project);
        }
        let tier = default_tier(&account);
        if tier != FREE_TIER && configured.is_none() {
            return Err(no_project());
        }
        self.ui.progress("Setting up a project for the account (this takes up to a minute)…");
        self.onboard(tier, configured).await
    }

    /// Requests the account's data. Accounts behind a security perimeter may not do so; theirs is the standard tier.
    async fn account(&self, project: Option<&str>) -> Result<Value, OAuthError> {
        let what = "Google account lookup failed";
        let request = OAuthRequest::new(what, Method::POST, method_url(SERVICE, "loadCodeAssist"));
        let body = json!({"metadata": metadata(project)});
        let answer = request.bearer(self.access).json(&with_project(body, project)).answer(self.cx).await?;
        if (200..300).contains(&answer.status) {
            return Ok(answer.json);
        }
        let details = answer.json["error"]["details"].as_array();
        let is_perimeter = |detail: &Value| detail["reason"] == "SECURITY_POLICY_VIOLATED";
        match details.is_some_and(|details| details.iter().any(is_perimeter)) {
            true => Ok(json!({"currentTier": {"id": "standard-tier"}})),
            false => Err(answer.refused()),
        }
    }

    async fn onboard(&self, tier: &str, configured: Option<&str>) -> Result<String, OAuthError> {
        let what = "Google project setup failed";
        // The service creates the project of the free tier itself and rejects others.
        let project = configured.filter(|_| tier != FREE_TIER);
        let body = with_project(json!({"tierId": tier, "metadata": metadata(project)}), project);
        let request = OAuthRequest::new(what, Method::POST, method_url(SERVICE, "onboardUser"));
        let mut operation = request.bearer(self.access).json(&body).good(self.cx).await?;
        let mut polls = 0;
        while operation["done"] != true {
            let Some(name) = operation["name"].as_str().filter(|_| polls < MAX_POLLS) else {
                return Err(OAuthError::Invalid(format!("{what}: it did not end. Try again later")));
            };
            polls += 1;
            let url = format!("{SERVICE}/v1internal/{name}");
            self.cx.cancel.run(tokio::time::sleep(POLL)).await.map_err(|_| OAuthError::Cancelled)?;
            operation = OAuthRequest::new(what, Method::GET, url).bearer(self.access).good(self.cx).await?;
        }
        let made = project_in(&operation["response"]).or_else(|| configured.map(str::to_owned));
        made.ok_or_else(no_project)
    }

    async fn of_antigravity(&self, configured: Option<&str>) -> Result<String, OAuthError> {
        let what = "Google account lookup failed";
        let mut failure = None;
        for host in [SERVICE, SANDBOX] {
            let request = OAuthRequest::new(what, Method::POST, method_url(host, "loadCodeAssist"));
            let body = json!({"metadata": metadata(None)});
            match request.bearer(self.access).json(&body).good(self.cx).await {
                Ok(account) => match project_in(&account) {
                    Some(project) => return Ok(project),
                    None => continue,
                },
                Err(OAuthError::Cancelled) => return Err(OAuthError::Cancelled),
                Err(error) => failure = Some(error),
            }
        }
        match (configured, failure) {
            (Some(project), _) => Ok(project.to_owned()),
            (None, Some(error)) => Err(error),
            (None, None) => Err(no_project()),
        }
    }
}

fn method_url(host: &str, method: &str) -> String {
    format!("{host}/v1internal:{method}")
}

fn metadata(project: Option<&str>) -> Value {
    let mut metadata =
        json!({"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"});
    if let Some(project) = project {
        metadata["duetProject"] = project.into();
    }
    metadata
}

fn with_project(mut body: Value, project: Option<&str>) -> Value {
    if let Some(project) = project {
        body["cloudaicompanionProject"] = project.into();
    }
    body
}

/// Returns the project in a response: its id, or an object with it.
fn project_in(answer: &Value) -> Option<String> {
    let project = &answer["cloudaicompanionProject"];
    let id = project.as_str().or_else(|| project["id"].as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Returns the tier of a new account.
fn default_tier(account: &Value) -> &str {
    let tiers: Vec<&Map<String, Value>> =
        account["allowedTiers"].as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let default = tiers.iter().find(|tier| tier.get("isDefault") == Some(&Value::Bool(true)));
    let id = default.and_then(|tier| tier.get("id")).and_then(Value::as_str);
    id.unwrap_or(if tiers.is_empty() { "legacy-tier" } else { FREE_TIER })
}

fn no_project() -> OAuthError {
    let text =
        "this account needs a Google Cloud project of its own. Set GOOGLE_CLOUD_PROJECT to its id and log in again";
    OAuthError::Invalid(text.to_owned())
}
