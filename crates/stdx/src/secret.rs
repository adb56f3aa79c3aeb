//! Secret text that must not be printed: API keys, tokens, passwords.
//!
//! A separate type instead of `secrecy::SecretString`, because credentials are compared and used as map keys.

use std::fmt;
use std::hash::{Hash, Hasher};

use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A secret string. `Debug` never shows it; [`Secret::reveal`] does. Its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Zeroizing<String>);

impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the secret itself, for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reveal().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", Secret::new("sk-1")), "Secret(…)");
    }

    #[test]
    fn equal_secrets_are_one_key() {
        let known = std::collections::HashMap::from([(Secret::new("sk-1"), 1)]);
        assert_eq!((known.get(&"sk-1".into()), known.get(&"sk-2".into())), (Some(&1), None));
    }
}
