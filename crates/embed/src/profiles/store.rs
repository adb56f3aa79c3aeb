//! A store of profiles: its files, the health of its profiles, and its logins.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_coding_agent::auth::AuthStorage;
use pinch_coding_agent::document::{self, Problem};
use pinch_ports::HealthStore;
use pinch_stdx::fs::FileStamp;
use pinch_stdx::host::Host;

use super::file::{Credential, Profile, ProfileFile};
use super::login::{LoginBackend, LoginPlace};
use super::marks::HealthMarks;
use crate::config::secrets::KeySource;
use crate::key::ProfileId;
use crate::ports::{FileHealth, MemoryHealth};

/// File in which later versions store order and health.
const STATE_FILE: &str = "auth-state.json";

/// The profiles of an agent directory.
pub(super) struct ProfileStore {
    /// `auth-profiles.json`, and the files of earlier versions that are used as long as it has no profiles.
    files: Vec<PathBuf>,
    /// `auth-state.json`, if it exists.
    state: Option<PathBuf>,
    read: Mutex<StoreRead>,
    pub(super) marks: Arc<HealthMarks>,
    /// Storages of its logins, shared by all requests of this process.
    logins: Mutex<HashMap<LoginPlace, AuthStorage>>,
}

/// The files as last read.
#[derive(Default)]
struct StoreRead {
    stamps: Vec<Option<FileStamp>>,
    content: Arc<StoreContent>,
}

/// Content of a store.
#[derive(Default)]
pub(super) struct StoreContent {
    pub(super) file: ProfileFile,
    pub(super) profiles: Vec<Profile>,
}

impl ProfileStore {
    /// Loads a store. `health`: where its health is stored; by default in its file.
    pub(super) fn load(
        path: Option<PathBuf>,
        legacy: Vec<PathBuf>,
        health: Option<Arc<HealthMarks>>,
        host: &Host,
    ) -> (Self, Vec<Problem>) {
        // Later versions store order and health in a separate file, which takes precedence if it exists.
        let state = path.as_ref().map(|path| path.with_file_name(STATE_FILE)).filter(|path| path.is_file());
        let health_file = state.as_deref().or(path.as_deref());
        let marks = health.unwrap_or_else(|| Arc::new(HealthMarks::new(own_health(health_file, host))));
        let files = path.into_iter().chain(legacy).collect();
        let store = Self { files, state, read: Mutex::default(), marks, logins: Mutex::default() };
        let problems = store.reload();
        store.marks.start_with(FileHealth::records(store.content().file.document()));
        (store, problems)
    }

    /// Returns its content.
    pub(super) fn content(&self) -> Arc<StoreContent> {
        Arc::clone(&self.read().content)
    }

    /// Returns whether it contains a profile.
    pub(super) fn has(&self, id: &ProfileId) -> bool {
        self.content().profiles.iter().any(|profile| profile.id == *id)
    }

    /// Rereads the files if any has changed. If one of them is damaged now, the previous content stays in use.
    pub(super) fn reload(&self) -> Vec<Problem> {
        let stamps: Vec<_> = self.files.iter().chain(&self.state).map(|file| FileStamp::of(file)).collect();
        if self.read().stamps == stamps {
            return Vec::new();
        }
        let (mut content, mut problems) = read_all(&self.files);
        if let Some(state) = &self.state {
            let (state, found) = ProfileFile::load(state);
            content.file = state.over(&content.file);
            problems.extend(found);
        }
        let mut read = self.read();
        read.stamps = stamps;
        if problems.is_empty() {
            read.content = Arc::new(content);
        }
        problems
    }

    /// Returns the storage of a profile's login.
    pub(super) fn login(&self, profile: &Profile, place: &LoginPlace) -> AuthStorage {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = || AuthStorage::over(Box::new(LoginBackend::new(place.clone(), profile.provider.clone())));
        logins.entry(place.clone()).or_insert_with(backend).clone()
    }

    fn read(&self) -> MutexGuard<'_, StoreRead> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own_health(path: Option<&Path>, host: &Host) -> Arc<dyn HealthStore> {
    match path {
        Some(path) => Arc::new(FileHealth::new(path.to_owned(), host.clone())),
        None => Arc::new(MemoryHealth::default()),
    }
}

/// Reads the profile file, and those of earlier versions if it has no profiles. Nothing is copied: a renewable token must not be in two
/// files.
fn read_all(files: &[PathBuf]) -> (StoreContent, Vec<Problem>) {
    let Some((path, legacy)) = files.split_first() else { return (StoreContent::default(), Vec::new()) };
    let (mut file, mut problems) = ProfileFile::load(path);
    let mut profiles = file.profiles();
    for profile in &mut profiles {
        profile.place = Some(LoginPlace::new(path, ["profiles", profile.id.as_str()]));
    }
    if !profiles.is_empty() {
        return (StoreContent { file, profiles }, problems);
    }
    for path in legacy {
        let entries = match document::read_object(path) {
            // It has the format of the newer file.
            Ok(entries) if entries.contains_key("profiles") => continue,
            Ok(entries) => entries,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let old = ProfileFile::of_legacy(&entries);
        for mut profile in old.profiles() {
            if profiles.iter().any(|other: &Profile| other.id == profile.id) {
                continue;
            }
            let name = entries.keys().find(|name| ProfileFile::legacy_id(name) == profile.id);
            profile.place = name.map(|name| LoginPlace::new(path, [name.as_str()]));
            if let Credential::ApiKey(source) = &mut profile.credential
                && let KeySource::Text(text) = source
            {
                *source = KeySource::Value(text.clone());
            }
            profiles.push(profile);
        }
        file = file.over(&old);
    }
    (StoreContent { file, profiles }, problems)
}

impl fmt::Debug for ProfileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileStore").field("files", &self.files).finish_non_exhaustive()
    }
}
