//! Claude subscriptions.

use futures::future::BoxFuture;
use http::Method;
use serde_json::json;

use super::browser::{self, AuthorizationCode};
use super::pkce::{self, Pkce};
use super::transport::{OAuthRequest, TokenSet, form, tokens};
use super::{LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow};

const AUTHORIZE: &str = "https://claude.ai/oauth/authorize";
const TOKEN: &str = "https://platform.claude.com/v1/oauth/token";
const CLIENT: &str = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
const PORT: u16 = 53_692;
const PATH: &str = "/callback";
/// A page that shows the code, for browsers that cannot return to this machine.
const COPY_PAGE: &str = "https://platform.claude.com/oauth/code/callback";
const SCOPE: &str = "org:create_api_key user:profile user:inference user:sessions:claude_code user:mcp_servers \
    user:file_upload";
/// How long before its expiry an access token counts as expired.
const MARGIN_MS: i64 = 5 * 60 * 1_000;

/// Signs in to a Claude subscription.
#[derive(Clone, Copy, Debug)]
pub struct AnthropicLogin {
    callback_port: u16,
}

impl Default for AnthropicLogin {
    fn default() -> Self {
        Self { callback_port: PORT }
    }
}

impl AnthropicLogin {
    /// Uses another callback port than the default; 0 means any free one.
    pub const fn with_callback_port(callback_port: u16) -> Self {
        Self { callback_port }
    }

    async fn sign_in(&self, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let pkce = Pkce::new(cx.host.ids());
        let state = pkce::state(cx.host.ids());
        let url = |redirect: &str| {
            let query = form(&[
                ("code", "true"),
                ("client_id", CLIENT),
                ("response_type", "code"),
                ("redirect_uri", redirect),
                ("scope", SCOPE),
                ("code_challenge", &pkce.challenge),
                ("code_challenge_method", "S256"),
                ("state", &state),
            ]);
            format!("{AUTHORIZE}?{query}")
        };
        let port = self.callback_port;
        let visit = browser::Visit { url: &url, port, path: PATH, state: &state, copy_page: Some(COPY_PAGE) };
        let AuthorizationCode { code, redirect } = browser::code(&visit, ui, cx).await?;
        ui.progress("Exchanging the code for tokens…");
        let what = "Anthropic token exchange failed";
        let body = json!({
            "grant_type": "authorization_code", "client_id": CLIENT, "code": code, "state": state,
            "redirect_uri": redirect, "code_verifier": pkce.verifier.reveal(),
        });
        let given = OAuthRequest::new(what, Method::POST, TOKEN).json(&body).good(cx).await?;
        let tokens = tokens(&given, what)?;
        let refresh = tokens.refresh.clone();
        let refresh = refresh.ok_or_else(|| OAuthError::Invalid(format!("{what}: the answer has no refresh_token")))?;
        Ok(OAuthCredential { refresh: refresh.into(), ..credential(tokens, cx) })
    }

    async fn renew(&self, old: &OAuthCredential, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let what = "Anthropic token refresh failed";
        let body = json!({"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": old.refresh.reveal()});
        let given = OAuthRequest::new(what, Method::POST, TOKEN).json(&body).good(cx).await?;
        let tokens = tokens(&given, what)?;
        let refresh = tokens.refresh.clone().map_or_else(|| old.refresh.clone(), Into::into);
        Ok(OAuthCredential { refresh, extra: old.extra.clone(), ..credential(tokens, cx) })
    }
}

/// Creates the credential from these tokens, without the refresh token.
fn credential(tokens: TokenSet, cx: OAuthCx<'_>) -> OAuthCredential {
    let expires = cx.host.now_ms().saturating_add(tokens.lasts) - MARGIN_MS;
    OAuthCredential { refresh: "".into(), access: tokens.access.into(), expires, extra: serde_json::Map::new() }
}

impl OAuthFlow for AnthropicLogin {
    fn id(&self) -> &str {
        "anthropic"
    }

    fn name(&self) -> &str {
        "Anthropic (Claude Pro/Max)"
    }

    fn uses_callback_server(&self) -> bool {
        true
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
}
