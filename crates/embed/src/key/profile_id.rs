//! Ids of auth profiles.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Id of an auth profile: `<provider>:default`, `<provider>:<email>`, or any label chosen by a user.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileId(Arc<str>);

impl ProfileId {
    /// Wraps the text of an id.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl From<&str> for ProfileId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ProfileId {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl Borrow<str> for ProfileId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for ProfileId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}
