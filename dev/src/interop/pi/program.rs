//! Session operations that both programs support, and their implementation with pinch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use pinch_coding_agent::entry::{Entry, EntryBody, EntryId};
use pinch_coding_agent::session_log::{Label, NewSession, SessionLog, convert_to_llm};
use pinch_coding_agent::store::{JsonlStore, SessionRef, SessionStore};
use pinch_llm::message::Message;
use pinch_stdx::host::Host;
use pinch_stdx::json::lossy;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

/// A program that writes and reads sessions; one session is open at a time.
pub(super) trait SessionProgram {
    /// Creates a session in a directory.
    fn create(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()>;
    /// Opens a session.
    fn open(&mut self, path: &Path) -> anyhow::Result<()>;
    /// Appends an entry, given its own fields; returns its ID.
    fn append(&mut self, entry: &Value) -> anyhow::Result<String>;
    /// Moves to an entry, or to before the first one.
    fn move_to(&mut self, id: Option<&str>) -> anyhow::Result<()>;
    /// Switches to a new session that contains the branch up to an entry.
    fn branched(&mut self, id: &str) -> anyhow::Result<()>;
    /// Switches to a copy of the whole session.
    fn fork(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()>;
    /// The session's file, which must exist.
    fn path(&mut self) -> anyhow::Result<PathBuf>;
    /// The program's interpretation of a file.
    fn view(&mut self, path: &Path) -> anyhow::Result<Value>;
}

/// pinch.
pub(super) struct Pinch {
    host: Host,
    runtime: Runtime,
    log: Option<SessionLog>,
}

impl Pinch {
    pub(super) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { host: Host::system(), runtime, log: None })
    }

    fn load(&self, path: &Path) -> anyhow::Result<SessionLog> {
        let at = SessionRef::Path(path.to_owned());
        Ok(self.runtime.block_on(SessionLog::open(&self.host, store(path.parent().context("no folder")?), &at, "/"))?)
    }
}

fn store(folder: &Path) -> Arc<dyn SessionStore> {
    Arc::new(JsonlStore::flat(folder))
}

impl SessionProgram for Pinch {
    fn create(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()> {
        let log = SessionLog::create(&self.host, store(folder), NewSession::in_directory(cwd));
        self.log = Some(self.runtime.block_on(log)?);
        Ok(())
    }

    fn open(&mut self, path: &Path) -> anyhow::Result<()> {
        self.log = Some(self.load(path)?);
        Ok(())
    }

    fn append(&mut self, entry: &Value) -> anyhow::Result<String> {
        let log = self.log.as_mut().context("no session")?;
        let mut named = entry.clone();
        named["id"] = "new".into();
        let body = Entry::from_value(&named).context("no entry")?.body;
        let id = match body {
            EntryBody::BranchSummary(summary) => {
                let target = entry["target"].as_str().map(EntryId::new);
                self.runtime.block_on(log.branch_with_summary(target.as_ref(), summary))
            }
            EntryBody::Label { target_id, label } => {
                self.runtime.block_on(log.append_label(&target_id, label.as_deref()))
            }
            EntryBody::SessionInfo { name } => self.runtime.block_on(log.append_name(&name)),
            body => self.runtime.block_on(log.append(body)),
        };
        Ok(id?.to_string())
    }

    fn move_to(&mut self, id: Option<&str>) -> anyhow::Result<()> {
        let log = self.log.as_mut().context("no session")?;
        match id {
            Some(id) => log.move_to(&EntryId::new(id))?,
            None => log.reset_leaf(),
        }
        Ok(())
    }

    fn branched(&mut self, id: &str) -> anyhow::Result<()> {
        let log = self.log.as_mut().context("no session")?;
        Ok(self.runtime.block_on(log.create_branched_session(&EntryId::new(id)))?)
    }

    fn fork(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()> {
        let source = SessionRef::Path(self.path()?);
        let new = NewSession::in_directory(cwd);
        self.log = Some(self.runtime.block_on(SessionLog::fork_from(&self.host, store(folder), &source, new))?);
        Ok(())
    }

    fn path(&mut self) -> anyhow::Result<PathBuf> {
        let path = self.log.as_ref().and_then(SessionLog::path).context("no session")?;
        anyhow::ensure!(path.exists(), "pinch has written no file");
        Ok(path.to_owned())
    }

    fn view(&mut self, path: &Path) -> anyhow::Result<Value> {
        let log = self.load(path)?;
        let header = log.header();
        let context = log.context();
        let tree = log.tree();
        let name = |at: &usize| tree.nodes[*at].id.as_str();
        let parents = tree.nodes.iter().filter(|node| !node.children.is_empty());
        let children: Map<String, Value> =
            parents.map(|node| (node.id.to_string(), node.children.iter().map(name).collect())).collect();
        let is_entry = |(id, _): &(&EntryId, &Label)| log.entry(id).is_some();
        let label = |text: fn(&Label) -> &String| -> Map<String, Value> {
            log.labels().filter(is_entry).map(|(id, label)| (id.to_string(), text(label).as_str().into())).collect()
        };
        // As stored: a program must not change what it does not know.
        let lines = log.entry_ids().filter_map(|id| log.line(id));
        let entries: Vec<Value> = lines.map(|line| lossy::from_slice(&line)).collect::<Result<_, _>>()?;
        Ok(json!({
            "header": {
                "version": header.version, "id": header.id, "timestamp": header.timestamp, "cwd": header.cwd,
                "parentSession": header.parent_session,
            },
            "entries": entries,
            "tree": {"roots": tree.roots.iter().map(name).collect::<Vec<_>>(), "children": children},
            "labels": label(|label| &label.text),
            "labelTimes": label(|label| &label.timestamp),
            "leaf": log.leaf_id().map(EntryId::as_str),
            "name": log.name(),
            "messages": as_json(&context.messages)?,
            "sent": as_json(&convert_to_llm(&context.messages))?,
            "thinkingLevel": context.thinking_level,
            "model": context.model.map(|model| json!({"provider": model.provider, "modelId": model.model_id})),
        }))
    }
}

fn as_json(messages: &[Arc<Message>]) -> serde_json::Result<Vec<Value>> {
    messages.iter().map(|message| serde_json::to_value(&**message)).collect()
}
