//! JSON Schemas of tool arguments: parsed once and, with the feature `schema`, compiled on first use to validate arguments.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub mod clean;
#[cfg(feature = "schemars")]
pub mod derived;
#[cfg(feature = "schema")]
mod compiled;
#[cfg(feature = "schema")]
mod coerce;
#[cfg(feature = "schema")]
mod validate;

#[cfg(feature = "schema")]
pub use validate::{ArgumentsError, validate_tool_arguments, validate_tool_call};

/// The schema of a tool's arguments. Clones are cheap and share the compiled schema.
#[derive(Clone)]
pub struct Schema(Arc<SchemaInner>);

struct SchemaInner {
    raw: Arc<Value>,
    lenient: bool,
    #[cfg(feature = "schema")]
    compiled: compiled::Compiled,
}

impl Schema {
    /// Wraps a schema without compiling it.
    pub fn new(raw: impl Into<Arc<Value>>) -> Self {
        Self::with(raw.into(), false)
    }

    /// Makes the schema lenient: a single value is accepted as a list of one, and a list or object may be JSON text.
    #[must_use]
    pub fn lenient(self) -> Self {
        Self::with(Arc::clone(&self.0.raw), true)
    }

    fn with(raw: Arc<Value>, lenient: bool) -> Self {
        Self(Arc::new(SchemaInner {
            raw,
            lenient,
            #[cfg(feature = "schema")]
            compiled: compiled::Compiled::default(),
        }))
    }

    /// Returns the original schema, for the model.
    pub fn raw(&self) -> &Arc<Value> {
        &self.0.raw
    }

    /// Returns whether arguments are parsed leniently.
    pub fn is_lenient(&self) -> bool {
        self.0.lenient
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("raw", &self.0.raw).field("lenient", &self.0.lenient).finish_non_exhaustive()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw && self.0.lenient == other.0.lenient
    }
}
