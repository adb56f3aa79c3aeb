//! Logins for Google's Cloud Code Assist, as used by the Gemini CLI and Antigravity.
//!
//! Signing in and refreshing need the id and the secret of an OAuth client, and this crate ships none: they come from
//! `PINCH_GOOGLE_CLIENT_ID` and `PINCH_GOOGLE_CLIENT_SECRET`, or from the user, and are stored with the login as `clientId` and
//! `clientSecret`. A login stored by another program is used unchanged.

use futures::future::BoxFuture;
use http::Method;
use pinch_stdx::secret::Secret;
use serde_json::{Map, json};

mod project;

use super::browser::{self, AuthorizationCode};
use super::pkce::{self, Pkce};
use super::transport::{OAuthRequest, form, tokens};
use super::{LoginPrompt, LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow};
use project::ProjectFinder;

const AUTHORIZE: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const TOKEN: &str = "https://oauth2.googleapis.com/token";
const PROFILE: &str = "https://www.googleapis.com/oauth2/v1/userinfo?alt=json";
/// Variables with the OAuth client's id and secret.
const CLIENT_ID: &str = "PINCH_GOOGLE_CLIENT_ID";
const CLIENT_SECRET: &str = "PINCH_GOOGLE_CLIENT_SECRET";
/// Scopes of every login.
const SCOPES: &str = "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/userinfo.email \
    https://www.googleapis.com/auth/userinfo.profile";
/// Additional scopes of Antigravity.
const MORE_SCOPES: &str =
    " https://www.googleapis.com/auth/cclog https://www.googleapis.com/auth/experimentsandconfigs";
/// How long before its expiry an access token counts as expired.
const MARGIN_MS: i64 = 5 * 60 * 1_000;

/// Signs in to one provider of Cloud Code Assist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoogleLogin {
    id: &'static str,
    name: &'static str,
    port: u16,
    path: &'static str,
}

/// The OAuth client of a login.
struct OAuthClient {
    id: String,
    secret: Secret,
}

impl GoogleLogin {
    /// Logins of the Gemini CLI.
    pub const GEMINI_CLI: Self = Self {
        id: "google-gemini-cli",
        name: "Google Cloud Code Assist (Gemini CLI)",
        port: 8_085,
        path: "/oauth2callback",
    };
    /// Logins of Antigravity.
    pub const ANTIGRAVITY: Self =
        Self { id: "google-antigravity", name: "Antigravity", port: 51_121, path: "/oauth-callback" };

    async fn sign_in(&self, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let client = self.client(ui, cx).await?;
        let pkce = Pkce::new(cx.host.ids());
        let scopes = format!("{SCOPES}{}", if *self == Self::ANTIGRAVITY { MORE_SCOPES } else { "" });
        let state = pkce::state(cx.host.ids());
        let url = |redirect: &str| {
            let query = form(&[
                ("client_id", &client.id),
                ("response_type", "code"),
                ("redirect_uri", redirect),
                ("scope", &scopes),
                ("code_challenge", &pkce.challenge),
                ("code_challenge_method", "S256"),
                ("state", &state),
                ("access_type", "offline"),
                ("prompt", "consent"),
            ]);
            format!("{AUTHORIZE}?{query}")
        };
        let visit = browser::Visit { url: &url, port: self.port, path: self.path, state: &state, copy_page: None };
        let AuthorizationCode { code, redirect } = browser::code(&visit, ui, cx).await?;
        ui.progress("Exchanging the code for tokens…");
        let what = "Google token exchange failed";
        let pairs = [
            ("client_id", client.id.as_str()),
            ("client_secret", client.secret.reveal()),
            ("code", &code),
            ("grant_type", "authorization_code"),
            ("redirect_uri", &redirect),
            ("code_verifier", pkce.verifier.reveal()),
        ];
        let given = OAuthRequest::new(what, Method::POST, TOKEN).form(&pairs).good(cx).await?;
        let tokens = tokens(&given, what)?;
        let refresh = tokens.refresh.clone();
        let refresh = refresh.ok_or_else(|| OAuthError::Invalid(format!("{what}: the answer has no refresh_token")))?;
        let project = ProjectFinder { login: *self, access: &tokens.access, ui, cx }.find().await?;
        let mut extra = Map::new();
        extra.insert("projectId".into(), project.into());
        if let Some(email) = email(&tokens.access, cx).await {
            extra.insert("email".into(), email.into());
        }
        extra.insert("clientId".into(), client.id.into());
        extra.insert("clientSecret".into(), client.secret.reveal().into());
        let expires = cx.host.now_ms().saturating_add(tokens.lasts) - MARGIN_MS;
        Ok(OAuthCredential { refresh: refresh.into(), access: tokens.access.into(), expires, extra })
    }

    /// Returns the OAuth client, from the environment or the user.
    async fn client(&self, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<OAuthClient, OAuthError> {
        let given = async |variable: &str, prompt: LoginPrompt| match cx.host.env().non_empty(variable) {
            Some(value) => Ok(value.to_owned()),
            None => {
                let entered = cx.cancel.run(ui.prompt(&prompt)).await.ok().flatten().ok_or(OAuthError::Cancelled)?;
                let entered = entered.trim().to_owned();
                let none = || OAuthError::Invalid(format!("{} needs an OAuth client: set {variable}", self.name));
                if entered.is_empty() { Err(none()) } else { Ok(entered) }
            }
        };
        let id = given(CLIENT_ID, LoginPrompt::new("ID of your Google OAuth client")).await?;
        let secret = given(CLIENT_SECRET, LoginPrompt::new("Secret of your Google OAuth client").secret()).await?;
        Ok(OAuthClient { id, secret: secret.into() })
    }

    async fn renew(&self, old: &OAuthCredential, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let what = "Google token refresh failed";
        let member = |name: &str| old.extra.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let (Some(client), Some(secret)) = (member("clientId"), member("clientSecret")) else {
            let text = "the login has expired. Log in again, or add clientId and clientSecret of its OAuth client to the entry in \
                 auth.json";
            return Err(OAuthError::Invalid(text.to_owned()));
        };
        let pairs = [
            ("client_id", client),
            ("client_secret", secret),
            ("refresh_token", old.refresh.reveal()),
            ("grant_type", "refresh_token"),
        ];
        let given = OAuthRequest::new(what, Method::POST, TOKEN).form(&pairs).good(cx).await?;
        let tokens = tokens(&given, what)?;
        let refresh = tokens.refresh.clone().map_or_else(|| old.refresh.clone(), Into::into);
        let expires = cx.host.now_ms().saturating_add(tokens.lasts) - MARGIN_MS;
        Ok(OAuthCredential { refresh, access: tokens.access.into(), expires, extra: old.extra.clone() })
    }
}

impl OAuthFlow for GoogleLogin {
    fn id(&self) -> &str {
        self.id
    }

    fn name(&self) -> &str {
        self.name
    }

    fn uses_callback_server(&self) -> bool {
        true
    }

    /// Only if requests can be sent with the login.
    fn signs_in(&self) -> bool {
        cfg!(feature = "cloud-code-assist")
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

    /// Combines the access token and its project, in the wire format's form.
    fn api_key(&self, credential: &OAuthCredential) -> Secret {
        let project = credential.extra.get("projectId");
        json!({"token": credential.access.reveal(), "projectId": project}).to_string().into()
    }
}

/// Returns the account's address, for users with several. A login works without it.
async fn email(access: &str, cx: OAuthCx<'_>) -> Option<String> {
    let profile = OAuthRequest::new("Google profile lookup failed", Method::GET, PROFILE).bearer(access).good(cx).await;
    profile.ok()?["email"].as_str().map(str::to_owned)
}
