//! JSON Schemas of tool arguments: parsed once, cleaned once for each form that models accept and, with the feature `schema`, compiled on
//! first use to validate arguments.

use std::fmt;
use std::sync::Arc;

use clean::{Cleaned, SchemaDialect};
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
pub use validate::{ArgumentsError, validate_tool_arguments};

/// The schema of a tool's arguments. Clones are cheap and share the compiled schema and the cleaned ones.
#[derive(Clone)]
pub struct Schema(Arc<SchemaInner>);

struct SchemaInner {
    raw: Arc<Value>,
    lenient: bool,
    cleaned: Cleaned,
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
            cleaned: Cleaned::default(),
            #[cfg(feature = "schema")]
            compiled: compiled::Compiled::default(),
        }))
    }

    /// Returns the original schema, for the model.
    pub fn raw(&self) -> &Arc<Value> {
        &self.0.raw
    }

    /// Returns the schema in the form of a family of models: an object at the root, and only keywords that they accept. With `hints`, the
    /// limits that are removed are added to the descriptions of their schemas, such as `(at least 1)`. Each form is computed once.
    pub fn cleaned(&self, family: SchemaDialect, hints: bool) -> &Value {
        self.0.cleaned.get(&self.0.raw, family, hints)
    }

    /// Returns the schema as changed by [`clean::without_const`]. Computed once.
    pub fn without_const(&self) -> &Value {
        self.0.cleaned.without_const(&self.0.raw)
    }

    /// Returns whether arguments are parsed leniently.
    pub fn is_lenient(&self) -> bool {
        self.0.lenient
    }
}

impl From<Value> for Schema {
    fn from(raw: Value) -> Self {
        Self::new(raw)
    }
}

impl From<Arc<Value>> for Schema {
    fn from(raw: Arc<Value>) -> Self {
        Self::new(raw)
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
