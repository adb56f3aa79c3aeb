//! Combines the answers of several plugins.

/// Adds the answer of the next plugin.
pub(super) trait CombineAnswers {
    fn combine(&mut self, next: Self);
}

/// Keeps the first of several values: that of the plugin with the highest priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstAnswer<T>(pub Option<T>);

/// Keeps the last of several values: that of the plugin with the lowest priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAnswer<T>(pub Option<T>);

/// Joins all texts with blank lines; skips blank ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedText(Vec<String>);

impl JoinedText {
    /// Returns the whole text; `None` if there is none.
    pub fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join("\n\n"))
    }
}

impl<T> Default for FirstAnswer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for LastAnswer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Into<String>> From<T> for JoinedText {
    fn from(text: T) -> Self {
        let text: String = text.into();
        Self(Some(text).filter(|text| !text.trim().is_empty()).into_iter().collect())
    }
}

impl<T> CombineAnswers for FirstAnswer<T> {
    fn combine(&mut self, next: Self) {
        if self.0.is_none() {
            self.0 = next.0;
        }
    }
}

impl<T> CombineAnswers for LastAnswer<T> {
    fn combine(&mut self, next: Self) {
        if next.0.is_some() {
            self.0 = next.0;
        }
    }
}

impl CombineAnswers for JoinedText {
    fn combine(&mut self, next: Self) {
        self.0.extend(next.0);
    }
}
