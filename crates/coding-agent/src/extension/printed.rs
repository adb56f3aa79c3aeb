//! Receiving what extensions print.

use std::fmt;
use std::sync::Arc;

/// Called with each line that an extension prints, which is not for pinch but for people.
#[derive(Clone)]
pub struct OutputListener(Arc<dyn Fn(&str) + Send + Sync>);

impl OutputListener {
    /// Creates a listener that calls a function.
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Passes a line on.
    pub fn line(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for OutputListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputListener").finish_non_exhaustive()
    }
}
