//! A snapshot of environment variables. It is never written back: pinch does not change the process environment.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Environment variables at one moment. Cloning is cheap.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Env(Arc<BTreeMap<String, String>>);

impl Env {
    /// Reads the variables of this process; non-Unicode names or values are skipped.
    pub(super) fn of_process() -> Self {
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
    }

    /// Returns the value of a variable, or `None` if it is not set. An empty value counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the value of a variable if it is set and not empty.
    pub fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    /// Returns whether a variable is `1`, `true` or `yes`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| ["1", "true", "yes"].iter().any(|yes| value.eq_ignore_ascii_case(yes)))
    }

    /// Iterates over all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Returns all variables sorted by name, in the form for starting a program.
    pub fn to_vec(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns a copy in which the given variables replace or extend the old ones.
    #[must_use]
    pub fn with<K: Into<String>, V: Into<String>>(&self, vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut all = (*self.0).clone();
        all.extend(vars.into_iter().map(|(k, v)| (k.into(), v.into())));
        Self(Arc::new(all))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(vars: I) -> Self {
        Self(Arc::new(vars.into_iter().map(|(k, v)| (k.into(), v.into())).collect()))
    }
}

impl std::fmt::Debug for Env {
    /// Shows only names, because values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
