//! Logins of Google's Cloud Code Assist, as the Gemini CLI's and Antigravity's users have them stored.
//!
//! No one signs in here: that takes the secret of an OAuth client, and this crate ships none. A stored login is used as it is; one that is over
//! is renewed when it names its client with the members `clientId` and `clientSecret`.

use futures::future::BoxFuture;
use http::Method;
use pinch_stdx::secret::Secret;
use serde_json::json;

use super::transport::{OAuthRequest, tokens};
use super::{LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow};

const TOKEN: &str = "https://oauth2.googleapis.com/token";
/// How long before its end access counts as over.
const MARGIN_MS: i64 = 5 * 60 * 1_000;

/// Uses the stored logins of one provider of Cloud Code Assist.
#[derive(Clone, Copy, Debug)]
pub struct GoogleLogin {
    id: &'static str,
    name: &'static str,
}

impl GoogleLogin {
    /// Logins of the Gemini CLI.
    pub const GEMINI_CLI: Self = Self { id: "google-gemini-cli", name: "Google Cloud Code Assist (Gemini CLI)" };
    /// Logins of Antigravity.
    pub const ANTIGRAVITY: Self = Self { id: "google-antigravity", name: "Antigravity" };

    async fn renew(&self, old: &OAuthCredential, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let what = "Google token refresh failed";
        let member = |name: &str| old.extra.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let (Some(client), Some(secret)) = (member("clientId"), member("clientSecret")) else {
            let text = "the login is over. Sign in with the program it is from and store its new access, or add clientId and \
                 clientSecret of its OAuth client to the entry in auth.json";
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

    fn signs_in(&self) -> bool {
        false
    }

    fn login<'a>(&'a self, _: &'a dyn LoginUi, _: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        let text = format!(
            "cannot sign in to {} here: sign in with its own program and copy the login to auth.json",
            self.name
        );
        Box::pin(async { Err(OAuthError::Invalid(text)) })
    }

    fn refresh<'a>(
        &'a self,
        credential: &'a OAuthCredential,
        cx: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(self.renew(credential, cx))
    }

    /// The access and the project it is for, as the wire format takes them.
    fn api_key(&self, credential: &OAuthCredential) -> Secret {
        let project = credential.extra.get("projectId");
        json!({"token": credential.access.reveal(), "projectId": project}).to_string().into()
    }
}
