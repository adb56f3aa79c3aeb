//! Proof Key for Code Exchange (RFC 7636).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinch_stdx::host::ids::Ids;
use pinch_stdx::secret::Secret;
use sha2::{Digest, Sha256};

/// A secret and its public challenge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pkce {
    /// The secret, sent when the code is exchanged.
    pub verifier: Secret,
    /// Its hash, sent when the code is requested.
    pub challenge: String,
}

impl Pkce {
    /// Creates a new secret.
    pub fn new(ids: &Ids) -> Self {
        Self::of(URL_SAFE_NO_PAD.encode(random(ids)))
    }

    /// Creates the pair for a known secret.
    pub fn of(verifier: String) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        Self { verifier: verifier.into(), challenge }
    }
}

/// Returns a random state: 32 hexadecimal digits.
pub fn state(ids: &Ids) -> String {
    random(ids)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes three ids, which have more random bits than the hash.
fn random(ids: &Ids) -> [u8; 32] {
    let mut hash = Sha256::new();
    for _ in 0..3 {
        hash.update(ids.uuid_v4());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinch_stdx::host::Host;

    #[test]
    fn the_challenge_matches_the_example_of_the_standard() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn secrets_and_states_are_unique() {
        let host = Host::builder().build();
        let (first, second) = (Pkce::new(host.ids()), Pkce::new(host.ids()));
        assert_eq!(first.verifier.reveal().len(), 43);
        assert_ne!(first.verifier, second.verifier);
        assert_eq!(state(host.ids()).len(), 32);
        assert_ne!(state(host.ids()), state(host.ids()));
    }
}
