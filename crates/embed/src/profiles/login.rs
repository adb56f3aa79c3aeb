//! Storage backend for the logins of profiles: one entry in a document that has others.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::auth::backend::{AuthBackend, BackendRead, OpenAuth, Revision, StoredCredentials};
use pinch_coding_agent::document::{self, ChangeError, Folder, LockedDocument};
use pinch_llm::catalog::canonical_provider;
use pinch_llm::ids::ProviderId;
use pinch_stdx::fs::dir_lock::DirLockOptions;
use pinch_stdx::fs::{Access, FileStamp};
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

/// Location of a login.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LoginPlace {
    /// The document.
    pub(super) path: Arc<Path>,
    /// Path of members to the entry.
    pub(super) at: Vec<String>,
}

impl LoginPlace {
    pub(super) fn new<'a>(path: &Path, at: impl IntoIterator<Item = &'a str>) -> Self {
        Self { path: path.into(), at: at.into_iter().map(str::to_owned).collect() }
    }
}

/// One login in a document. The rest of the document is preserved.
#[derive(Clone, Debug)]
pub(super) struct LoginBackend {
    place: LoginPlace,
    provider: ProviderId,
}

impl LoginBackend {
    pub(super) fn new(place: LoginPlace, provider: ProviderId) -> Self {
        Self { place, provider }
    }

    /// Returns the entry as credentials by provider; empty if it is gone.
    fn entries(&self, document: &Map<String, Value>) -> StoredCredentials {
        let mut at = self.place.at.iter();
        let entry = at.next().and_then(|first| document.get(first));
        let entry = at.fold(entry, |value, name| value?.get(name));
        let Some(entry) = entry.and_then(Value::as_object) else { return StoredCredentials::new() };
        let mut entry = entry.clone();
        // The oldest files have no type.
        entry.entry("type").or_insert_with(|| "oauth".into());
        StoredCredentials::from_iter([(canonical_provider(self.provider.as_str()).to_owned(), Value::Object(entry))])
    }

    fn revision(&self) -> Revision {
        Revision(FileStamp::of(&self.place.path).map_or_else(String::new, |stamp| format!("{stamp:?}")))
    }
}

impl AuthBackend for LoginBackend {
    fn read(&self, seen: Option<&Revision>) -> BackendRead {
        let revision = self.revision();
        if Some(&revision) == seen {
            return BackendRead::Same;
        }
        match document::read_object(&self.place.path) {
            Ok(document) => BackendRead::New(self.entries(&document), revision),
            Err(problem) => BackendRead::Broken(problem, revision),
        }
    }

    fn open<'a>(
        &'a self,
        terms: &'a DirLockOptions,
        host: &'a Host,
    ) -> BoxFuture<'a, Result<Box<dyn OpenAuth>, ChangeError>> {
        Box::pin(async move {
            let document = LockedDocument::open(&self.place.path, Folder::Private, terms, host).await?;
            Ok(Box::new(OpenLogin { backend: self.clone(), document }) as Box<dyn OpenAuth>)
        })
    }
}

/// The document while it is locked.
struct OpenLogin {
    backend: LoginBackend,
    document: LockedDocument,
}

impl OpenAuth for OpenLogin {
    fn read(&self) -> Result<(StoredCredentials, Revision), ChangeError> {
        let revision = self.backend.revision();
        Ok((self.backend.entries(&self.document.read()?), revision))
    }

    fn write(&self, entries: &StoredCredentials) -> Result<Revision, ChangeError> {
        let mut document = self.document.read()?;
        let entry = self
            .backend
            .place
            .at
            .iter()
            .try_fold(&mut document, |object, name| object.get_mut(name).and_then(Value::as_object_mut));
        // Do not restore a removed entry: the user signed out.
        if let (Some(entry), Some(Value::Object(login))) = (entry, entries.values().next()) {
            entry.extend(login.iter().map(|(name, value)| (name.clone(), value.clone())));
            self.document.write(&document, Access::Private)?;
        }
        Ok(self.backend.revision())
    }

    fn is_held(&self) -> bool {
        self.document.is_held()
    }

    fn renew(&mut self, host: &Host) -> bool {
        self.document.renew(host)
    }
}
