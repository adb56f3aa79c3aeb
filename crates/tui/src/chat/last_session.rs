//! Stores the last open session of each agent, with which the next chat begins.

use std::path::{Path, PathBuf};

use pinch_coding_agent::document::{ChangeError, Problem, change_object, read_object};
use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

/// Name of the file, next to `keybindings.json`.
const FILE: &str = "chat-sessions.json";

/// The stored sessions of one backend.
#[derive(Clone, Debug)]
pub(super) struct LastSessions {
    file: PathBuf,
    /// Where the agents run.
    target: String,
    host: Host,
}

impl LastSessions {
    pub(super) fn new(dir: &Path, target: String, host: Host) -> Self {
        Self { file: dir.join(FILE), target, host }
    }

    /// Returns the key of an agent's last session. An unreadable file is reported when it is written.
    pub(super) fn of(&self, agent: &str) -> Option<String> {
        let document = read_object(&self.file).ok()?;
        document.get(&self.target)?.get(agent)?.as_str().map(str::to_owned)
    }

    /// Stores the session of an agent. Blocks while another process is writing.
    pub(super) fn keep(&self, agent: &str, session: &str) -> Result<(), ChangeError> {
        change_object(&self.file, Access::NewPrivate, &self.host, |document| {
            let agents = document.entry(&self.target).or_insert_with(|| Value::Object(Map::new()));
            let Some(agents) = agents.as_object_mut() else {
                return Err(Problem::new(&self.file, "must be an object").at(&*self.target));
            };
            let before = agents.insert(agent.to_owned(), session.into());
            Ok(before.as_ref().and_then(Value::as_str) != Some(session))
        })
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_of_each_backend_has_its_own_last_session() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = |target: &str| LastSessions::new(dir.path(), target.to_owned(), Host::builder().build());
        let (here, there) = (sessions("local"), sessions("there"));
        assert_eq!(here.of("main"), None);
        here.keep("main", "agent:main:notes").unwrap();
        here.keep("ops", "agent:ops:main").unwrap();
        there.keep("main", "agent:main:main").unwrap();
        here.keep("main", "agent:main:taxes").unwrap();
        assert_eq!(here.of("main").as_deref(), Some("agent:main:taxes"));
        assert_eq!(here.of("ops").as_deref(), Some("agent:ops:main"));
        assert_eq!(there.of("main").as_deref(), Some("agent:main:main"));
        std::io::Write::write_all(&mut std::fs::File::create(dir.path().join(FILE)).unwrap(), b"{oops").unwrap();
        assert_eq!(here.of("main"), None);
        assert!(here.keep("main", "agent:main:main").is_err());
    }
}
