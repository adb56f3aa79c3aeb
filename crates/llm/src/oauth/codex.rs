//! ChatGPT subscriptions.

use futures::future::BoxFuture;
use http::Method;
use serde_json::{Map, Value};

use super::browser::{self, AuthorizationCode};
use super::pkce::{self, Pkce};
use super::transport::{OAuthRequest, form, tokens};
use super::{LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow};
use crate::request::Auth;
use crate::wire::codex::{ACCOUNT_HEADER, account_in};

const AUTHORIZE: &str = "https://auth.openai.com/oauth/authorize";
const TOKEN: &str = "https://auth.openai.com/oauth/token";
const CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const PORT: u16 = 1_455;
const PATH: &str = "/auth/callback";
/// The credential's member for the account id.
const ACCOUNT: &str = "accountId";
const SCOPE: &str = "openid profile email offline_access";

/// Signs in to a ChatGPT subscription.
#[derive(Clone, Copy, Debug)]
pub struct CodexLogin {
    callback_port: u16,
}

impl Default for CodexLogin {
    fn default() -> Self {
        Self { callback_port: PORT }
    }
}

impl CodexLogin {
    /// Uses another callback port than the default; 0 means any free one.
    pub const fn with_callback_port(callback_port: u16) -> Self {
        Self { callback_port }
    }

    async fn sign_in(&self, ui: &dyn LoginUi, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let pkce = Pkce::new(cx.host.ids());
        let state = pkce::state(cx.host.ids());
        let url = |redirect: &str| {
            let query = form(&[
                ("response_type", "code"),
                ("client_id", CLIENT),
                ("redirect_uri", redirect),
                ("scope", SCOPE),
                ("code_challenge", &pkce.challenge),
                ("code_challenge_method", "S256"),
                ("state", &state),
                ("id_token_add_organizations", "true"),
                ("codex_cli_simplified_flow", "true"),
                ("originator", "pi"),
            ]);
            format!("{AUTHORIZE}?{query}")
        };
        let port = self.callback_port;
        let visit = browser::Visit { url: &url, port, path: PATH, state: &state, copy_page: None };
        let AuthorizationCode { code, redirect } = browser::code(&visit, ui, cx).await?;
        ui.progress("Exchanging the code for tokens…");
        let pairs = [
            ("grant_type", "authorization_code"),
            ("client_id", CLIENT),
            ("code", &*code),
            ("code_verifier", pkce.verifier.reveal()),
            ("redirect_uri", &redirect),
        ];
        self.ask("OpenAI Codex token exchange failed", &pairs, None, cx).await
    }

    async fn renew(&self, old: &OAuthCredential, cx: OAuthCx<'_>) -> Result<OAuthCredential, OAuthError> {
        let pairs = [("grant_type", "refresh_token"), ("refresh_token", old.refresh.reveal()), ("client_id", CLIENT)];
        self.ask("OpenAI Codex token refresh failed", &pairs, Some(old), cx).await
    }

    async fn ask(
        &self,
        what: &str,
        pairs: &[(&str, &str)],
        old: Option<&OAuthCredential>,
        cx: OAuthCx<'_>,
    ) -> Result<OAuthCredential, OAuthError> {
        let given = OAuthRequest::new(what, Method::POST, TOKEN).form(pairs).good(cx).await?;
        let tokens = tokens(&given, what)?;
        let refresh = tokens.refresh.map(Into::into).or_else(|| old.map(|old| old.refresh.clone()));
        let refresh = refresh.ok_or_else(|| OAuthError::Invalid(format!("{what}: the answer has no refresh_token")))?;
        let mut extra = old.map_or_else(Map::new, |old| old.extra.clone());
        match account_in(&tokens.access) {
            Some(account) => drop(extra.insert(ACCOUNT.into(), account.into())),
            None if extra.contains_key(ACCOUNT) => {}
            None => return Err(OAuthError::Invalid("Failed to extract accountId from token".into())),
        }
        let expires = cx.host.now_ms().saturating_add(tokens.lasts);
        Ok(OAuthCredential { refresh, access: tokens.access.into(), expires, extra })
    }
}

impl OAuthFlow for CodexLogin {
    fn id(&self) -> &str {
        "openai-codex"
    }

    fn name(&self) -> &str {
        "ChatGPT Plus/Pro (Codex Subscription)"
    }

    fn uses_callback_server(&self) -> bool {
        true
    }

    fn login<'a>(&'a self, ui: &'a dyn LoginUi, cx: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(self.sign_in(ui, cx))
    }

    fn auth(&self, credential: &OAuthCredential) -> Auth {
        let account = credential.extra.get(ACCOUNT).and_then(Value::as_str);
        let headers = account.map(|account| (ACCOUNT_HEADER.to_owned(), Some(account.to_owned())));
        Auth { headers: headers.into_iter().collect(), ..Auth::key(self.api_key(credential)) }
    }

    fn refresh<'a>(
        &'a self,
        credential: &'a OAuthCredential,
        cx: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(self.renew(credential, cx))
    }
}
