//! Writing changed settings to a document that others write as well.

use std::collections::BTreeMap;
use std::path::Path;

use pinch_stdx::fs::Access;
use pinch_stdx::fs::dir_lock::DirLockOptions;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

use super::layer::SettingsScope;
use super::{keys, moves};
use crate::document::{self, ChangeError, Folder};

/// Values by path; `null` removes one.
pub(super) type PendingValues = BTreeMap<String, Value>;

/// Sets these paths in a document, keeping everything else, and returns the resulting document.
pub(super) async fn write(
    scope: SettingsScope,
    path: &Path,
    marks: &PendingValues,
    host: &Host,
) -> Result<Map<String, Value>, ChangeError> {
    let terms = match scope {
        SettingsScope::Global => (Folder::Private, Access::NewPrivate),
        SettingsScope::Project => (Folder::Usual, Access::Keep),
    };
    let change = |root: &mut Map<String, Value>| {
        moves::update(root);
        apply(root, marks);
    };
    document::change(path, terms, &DirLockOptions::QUICK, host, change).await
}

/// Sets these paths.
pub(super) fn apply(root: &mut Map<String, Value>, marks: &PendingValues) {
    for (place, value) in marks {
        keys::put(root, place, value.clone());
    }
}
