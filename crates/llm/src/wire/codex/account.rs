//! The account that a token belongs to.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind};
use crate::request::Request;
use crate::wire::headers::AuthKey;

/// The header for the account.
pub(crate) const ACCOUNT_HEADER: &str = "chatgpt-account-id";
/// The token claim that contains OpenAI's own claims.
const CLAIM: &str = "https://api.openai.com/auth";

/// Returns the account of a request: from its token, else from its credential.
pub(super) fn account_id(request: &Request, key: Option<&AuthKey>) -> Result<String, LlmError> {
    let stored = || {
        let known = request.auth.headers.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(ACCOUNT_HEADER));
        known.and_then(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    key.and_then(|key| account_in(key.reveal())).or_else(stored).ok_or_else(|| {
        let text = "Failed to extract accountId from token";
        LlmError::new(request.model.provider.clone(), LlmErrorKind::Auth, text)
    })
}

/// Returns the account in a token's claims.
pub(crate) fn account_in(token: &str) -> Option<String> {
    let payload = token.split('.').nth(1)?.replace('+', "-").replace('/', "_");
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let claims = GeneralPurpose::new(&alphabet::URL_SAFE, config).decode(payload).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let id = claims[CLAIM]["chatgpt_account_id"].as_str().filter(|id| !id.is_empty())?;
    Some(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(payload: &str) -> String {
        format!("h.{payload}.s")
    }

    #[test]
    fn tokens_may_use_padding_and_either_base64_alphabet() {
        let claims = |id: &str| format!("{{\"{CLAIM}\":{{\"chatgpt_account_id\":\"{id}\"}}}}");
        for id in ["acc-1", "acc-12", "acc-123", "ünd>>>???"] {
            let padded = base64::engine::general_purpose::STANDARD.encode(claims(id));
            let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims(id));
            assert_eq!(account_in(&token(&padded)).as_deref(), Some(id));
            assert_eq!(account_in(&token(&url)).as_deref(), Some(id));
        }
        for broken in ["", "a", "h.%%%.s", "h.e30.s"] {
            assert_eq!(account_in(broken), None);
        }
    }
}
