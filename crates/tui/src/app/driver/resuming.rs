//! Continuing other sessions, and naming them.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::runtime::RuntimeError;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::SessionRef;
use pinch_stdx::text::with_causes;

use super::Driver;
use crate::app::missing_directory::{DirectoryChoice, MissingDirectory};
use crate::dialog::DialogNews;
use crate::effect::Effect;

impl Driver {
    /// Continues a stored session. If its working directory no longer exists, asks where.
    pub(super) async fn switch(&mut self, path: PathBuf) {
        let target = SessionRef::Path(path);
        let done = self.runtime.switch_session(&target);
        match self.console.during(done).await {
            Err(RuntimeError::DirectoryGone { cwd, .. }) => self.switch_without_directory(&target, &cwd).await,
            done => self.switched(done, "Session resumed"),
        }
    }

    async fn switch_without_directory(&mut self, target: &SessionRef, gone: &str) {
        let services = Arc::clone(self.runtime.services());
        let missing = MissingDirectory::new(gone, services.cwd(), services.host().home());
        let answer = self.console.ask(&missing.question(), &self.stop).await;
        match answer.and_then(|answer| missing.choice(&answer)) {
            Some(DirectoryChoice::Here) => {
                let done = self.runtime.switch_session_here(target);
                let done = self.console.during(done).await;
                self.switched(done, "Session resumed in this directory");
            }
            Some(DirectoryChoice::Copy) => {
                let done = self.runtime.switch_to_copy(target);
                let done = self.console.during(done).await;
                self.switched(done, "Continuing in a copy of the session");
            }
            None => self.console.app.status("The session was not resumed"),
        }
    }

    /// Copies a session file into the sessions of this directory and continues the copy.
    pub(super) async fn import(&mut self, typed: &str) {
        let source = SessionRef::Path(self.path_of(typed));
        let done = self.runtime.switch_to_copy(&source);
        let done = self.console.during(done).await;
        self.switched(done, &format!("Session imported from {typed}"));
    }

    /// Updates the interface after a switch to another session.
    fn switched(&mut self, done: Result<bool, RuntimeError>, status: &str) {
        match done {
            Ok(true) => self.replaced(Ok(None), status),
            Ok(false) => self.console.app.status("An extension keeps this session open"),
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    /// Sets the name of the session in a file, which may be the open one.
    pub(super) async fn rename(&mut self, path: PathBuf, name: String) {
        if self.runtime.session().path().as_ref() == Some(&path) {
            return Box::pin(self.perform(Effect::Name(Some(name)))).await;
        }
        let (store, host) = (Arc::clone(self.runtime.store()), self.console.host.clone());
        let cwd = self.runtime.services().cwd().to_string_lossy().into_owned();
        let renamed = async {
            let at = SessionRef::Path(path);
            let mut log = SessionLog::open(&host, store, &at, &cwd).await?;
            log.append_name(&name).await
        };
        if let Err(error) = renamed.await {
            self.console.app.tell_dialog(DialogNews::Problem(with_causes(&error)));
        }
    }
}
