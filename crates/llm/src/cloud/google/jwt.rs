//! A JSON Web Token signed with a service account's key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pinch_stdx::secret::Secret;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

/// Google rejects tokens with a longer validity.
const SECONDS: i64 = 3_600;

/// The claims of the token.
pub(super) struct Claims<'a> {
    pub(super) email: &'a str,
    pub(super) key_id: Option<&'a str>,
    pub(super) scope: &'a str,
    pub(super) audience: &'a str,
    pub(super) now_ms: i64,
}

/// Returns the signed token.
///
/// # Errors
/// Returns an error if the key is invalid or not an RSA key; the text contains nothing of it.
pub(super) fn sign(claims: &Claims<'_>, private_key: &Secret) -> Result<String, &'static str> {
    let key = read_key(private_key.reveal())?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = claims.key_id {
        header["kid"] = id.into();
    }
    let now = claims.now_ms.div_euclid(1_000);
    let body = json!({
        "iss": claims.email,
        "scope": claims.scope,
        "aud": claims.audience,
        "iat": now,
        "exp": now + SECONDS,
    });
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let said = format!("{}.{}", encode(&header), encode(&body));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), said.as_bytes(), &mut signature)
        .map_err(|_| "its private_key cannot sign")?;
    Ok(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn read_key(pem: &str) -> Result<RsaKeyPair, &'static str> {
    const NOT_PEM: &str = "its private_key is not in PEM form";
    let (_, rest) = pem.split_once("-----BEGIN ").ok_or(NOT_PEM)?;
    let (kind, rest) = rest.split_once("-----").ok_or(NOT_PEM)?;
    let (text, _) = rest.split_once("-----END ").ok_or(NOT_PEM)?;
    let text: String = text.split_whitespace().collect();
    let der = STANDARD.decode(text).map_err(|_| NOT_PEM)?;
    let key = match kind {
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der),
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der),
        _ => return Err("its private_key is of an unknown kind"),
    };
    key.map_err(|_| "its private_key is not an RSA key")
}
