//! Stored approvals: OpenClaw's file `exec-approvals.json`.

use std::io;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinch_stdx::fs::{Access, FileLock, create_private_dir, write_atomic};
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::contents::ContentHashes;
use super::modes::{ExecAsk, ExecSecurity};

/// The supported version of the file.
const VERSION: u64 = 1;
/// How long another process may change the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The agent that inherits the entries of the legacy agent `default`.
const MAIN: &str = "main";

/// The contents of the file. Unknown members are preserved.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalsFile {
    root: Map<String, Value>,
    /// Whether the content was not understood. It is not overwritten then.
    is_foreign: bool,
}

/// An entry of an allow list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedProgram {
    /// The program: a path with the wildcards `*`, `**` and `?`.
    pub pattern: String,
    /// Hash of the arguments the entry is limited to; `None` for any.
    pub arguments_hash: Option<String>,
    /// Directory the entry is limited to; `None` for any.
    pub cwd: Option<String>,
    /// Contents of the files the entry is limited to. An entry with an arguments hash applies only with them.
    pub contents: Option<ContentHashes>,
}

/// The settings that apply to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveApprovals {
    /// Which commands may run.
    pub security: ExecSecurity,
    /// When to ask a person.
    pub ask: ExecAsk,
    /// Which commands may run if nobody can be asked.
    pub ask_fallback: ExecSecurity,
    /// Whether the programs that skills name may run.
    pub auto_allow_skills: bool,
    /// Allowed programs: those of all agents, then those of the agent.
    pub allowlist: Vec<AllowedProgram>,
}

/// Values for settings missing from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApprovalDefaults {
    /// Which commands may run.
    pub security: Option<ExecSecurity>,
    /// When to ask a person.
    pub ask: Option<ExecAsk>,
}

impl Default for ApprovalsFile {
    fn default() -> Self {
        Self { root: Map::from_iter([("version".to_owned(), VERSION.into())]), is_foreign: false }
    }
}

impl ApprovalsFile {
    /// Parses the content of a file. An unsupported version or unreadable content counts as empty.
    pub fn read(content: &Value) -> Self {
        let Some(root) = content.as_object().filter(|root| root.get("version") == Some(&VERSION.into())) else {
            return Self { is_foreign: true, ..Self::default() };
        };
        let mut file = Self { root: root.clone(), is_foreign: false };
        file.merge_old_agent();
        if let Some(agents) = file.root.get_mut("agents").and_then(Value::as_object_mut) {
            agents.values_mut().filter_map(Value::as_object_mut).for_each(tidy_allowlist);
        }
        file
    }

    /// Loads a file; a missing one is empty.
    ///
    /// # Errors
    /// Fails if the file exists but cannot be read.
    pub fn load(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(content) => Ok(Self::read(&serde_json::from_slice(&content).unwrap_or_default())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Changes a file on disk while it is locked, so that simultaneous changes are all kept.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, or if its content is of an unknown version: then it is left unchanged.
    pub async fn update(path: &Path, host: &Host, change: impl FnOnce(&mut Self) + Send) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            create_private_dir(directory)?;
        }
        let lock = FileLock::acquire_async(&path.with_extension("lock"), PATIENCE).await.map_err(io::Error::other)?;
        let mut file = Self::load(path)?;
        if file.is_foreign {
            return Err(io::Error::other(format!("{} has an unknown version, or is no JSON object", path.display())));
        }
        change(&mut file);
        file.save(path, host)?;
        drop(lock);
        Ok(())
    }

    /// Writes the file, readable by the user only. Missing ids, the socket path and its token are generated.
    ///
    /// # Errors
    /// Returns the I/O error.
    pub fn save(&mut self, path: &Path, host: &Host) -> io::Result<()> {
        let socket = self.root.entry("socket").or_insert_with(|| json!({}));
        if !socket.is_object() {
            *socket = json!({});
        }
        if socket["path"].as_str().is_none_or(str::is_empty) {
            socket["path"] = path.with_extension("sock").to_string_lossy().into_owned().into();
        }
        if socket["token"].as_str().is_none_or(str::is_empty) {
            let random = Sha256::digest(format!("{}{}", host.ids().uuid_v4(), host.ids().uuid_v4()));
            socket["token"] = URL_SAFE_NO_PAD.encode(&random[..24]).into();
        }
        let agents = self.root.get_mut("agents").and_then(Value::as_object_mut);
        for entry in agents.into_iter().flat_map(|agents| agents.values_mut()) {
            for entry in entry.get_mut("allowlist").and_then(Value::as_array_mut).into_iter().flatten() {
                if entry["id"].as_str().is_none_or(str::is_empty) {
                    entry["id"] = host.ids().uuid_v4().into();
                }
            }
        }
        let mut text = serde_json::to_string_pretty(&self.root)?;
        text.push('\n');
        write_atomic(path, text.as_bytes(), Access::Private)
    }

    /// Merges the entries of the legacy agent `default` into `main`, whose own settings take precedence.
    fn merge_old_agent(&mut self) {
        let Some(agents) = self.root.get_mut("agents").and_then(Value::as_object_mut) else { return };
        let Some(Value::Object(old)) = agents.shift_remove("default") else { return };
        let main = agents.entry(MAIN).or_insert_with(|| json!({}));
        let Some(main) = main.as_object_mut() else { return };
        for (key, value) in old {
            if key != "allowlist" {
                main.entry(key).or_insert(value);
                continue;
            }
            let list = main.entry("allowlist").or_insert_with(|| json!([]));
            if let (Some(list), Value::Array(old)) = (list.as_array_mut(), value) {
                for entry in old {
                    let pattern = pattern_of(&entry).map(str::to_lowercase);
                    let is_known = list.iter().any(|known| pattern_of(known).map(str::to_lowercase) == pattern);
                    if !is_known {
                        list.push(entry);
                    }
                }
            }
        }
    }

    fn agent(&self, id: &str) -> Option<&Value> {
        self.root.get("agents")?.get(id)
    }

    /// Returns the settings for an agent: its own values, then those of `*`, then the file's defaults, then those given.
    pub fn effective(&self, agent: &str, given: ApprovalDefaults) -> EffectiveApprovals {
        let agent = if agent.trim().is_empty() { MAIN } else { agent.trim() };
        let levels = [self.agent(agent), self.agent("*"), self.root.get("defaults")];
        let word =
            |key: &str| -> Vec<&str> { levels.iter().flatten().filter_map(|level| level[key].as_str()).collect() };
        let security = |key: &str| word(key).into_iter().find_map(|word| word.parse::<ExecSecurity>().ok());
        let is_own = agent != "*";
        let lists = [Some("*"), is_own.then_some(agent)];
        let entries = lists.into_iter().flatten().filter_map(|id| self.agent(id)?["allowlist"].as_array()).flatten();
        EffectiveApprovals {
            security: security("security").or(given.security).unwrap_or_default(),
            ask: word("ask").into_iter().find_map(|word| word.parse().ok()).or(given.ask).unwrap_or_default(),
            ask_fallback: security("askFallback").unwrap_or_default(),
            auto_allow_skills: levels
                .iter()
                .flatten()
                .find_map(|level| level["autoAllowSkills"].as_bool())
                .unwrap_or(false),
            allowlist: entries.filter_map(allowed).collect(),
        }
    }

    /// Always allows a program with exactly these arguments in this directory while the contents of its files are these.
    pub fn allow_always(&mut self, agent: &str, program: &Path, argv: &[String], cwd: &Path, contents: &ContentHashes) {
        let mut entry = json!({
            "pattern": program.to_string_lossy(),
            "argumentsHash": arguments_hash(argv),
            "cwd": cwd.to_string_lossy(),
            "contentHashes": contents,
            "source": "allow-always",
        });
        if self
            .effective(agent, ApprovalDefaults::default())
            .allowlist
            .iter()
            .any(|known| Some(known) == allowed(&entry).as_ref())
        {
            return;
        }
        let list = self.root.entry("agents").or_insert_with(|| json!({}));
        if let Some(agents) = list.as_object_mut()
            && let Some(agent) = agents.entry(agent).or_insert_with(|| json!({})).as_object_mut()
            && let Some(list) = agent.entry("allowlist").or_insert_with(|| json!([])).as_array_mut()
        {
            // An approval of changed files replaces the earlier one.
            let is_same = |known: &Value| {
                known.is_object() && ["pattern", "argumentsHash", "cwd"].iter().all(|key| known[*key] == entry[*key])
            };
            let at = list.iter().position(is_same);
            match at.and_then(|at| list.get_mut(at)) {
                Some(known) => known["contentHashes"] = entry["contentHashes"].take(),
                None => list.push(entry),
            }
        }
    }

    /// Records that an entry of an agent, or of all agents, allowed a command.
    pub fn note_use(&mut self, agent: &str, used: &AllowedProgram, command: &str, program: &Path, now_ms: i64) {
        let agents = self.root.get_mut("agents").and_then(Value::as_object_mut);
        let lists = agents.into_iter().flatten().filter(|(id, _)| *id == agent || *id == "*");
        for entry in lists.filter_map(|(_, agent)| agent.get_mut("allowlist")?.as_array_mut()).flatten() {
            if allowed(entry).as_ref() == Some(used) {
                entry["lastUsedAt"] = now_ms.into();
                entry["lastUsedCommand"] = command.into();
                entry["lastResolvedPath"] = program.to_string_lossy().into_owned().into();
            }
        }
    }
}

/// Returns the hash of a program's arguments.
pub(super) fn arguments_hash(argv: &[String]) -> String {
    let text = Value::from(argv.get(1..).unwrap_or_default().to_vec()).to_string();
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pattern_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry["pattern"].as_str()).map(str::trim)
}

/// Turns bare strings into entries and drops blank ones.
fn tidy_allowlist(agent: &mut Map<String, Value>) {
    let Some(list) = agent.get_mut("allowlist").and_then(Value::as_array_mut) else { return };
    list.retain(|entry| pattern_of(entry).is_some_and(|pattern| !pattern.is_empty()));
    for entry in list {
        if let Some(pattern) = entry.as_str() {
            *entry = json!({"pattern": pattern.trim()});
        }
    }
}

fn contents(value: &Value) -> Option<ContentHashes> {
    let hash = |(path, hash): (&String, &Value)| match hash {
        Value::Null => Some((path.clone(), None)),
        hash => Some((path.clone(), Some(hash.as_str()?.to_owned()))),
    };
    value.as_object()?.iter().map(hash).collect()
}

fn allowed(entry: &Value) -> Option<AllowedProgram> {
    // An entry that restricts arguments in an unsupported way allows nothing.
    if entry.get("argPattern").is_some_and(|pattern| !pattern.is_null()) {
        return None;
    }
    let text = |key: &str| entry[key].as_str().map(str::to_owned);
    Some(AllowedProgram {
        pattern: pattern_of(entry)?.to_owned(),
        arguments_hash: text("argumentsHash"),
        cwd: text("cwd"),
        contents: contents(&entry["contentHashes"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_survives_a_round_trip_and_preserves_unknown_members() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("exec-approvals.json");
        let content = json!({"version": 1, "defaults": {"ask": "always", "mood": 7}, "agents": {
            "*": {"allowlist": ["/bin/ls"]},
            "default": {"security": "full", "ask": "off", "allowlist": [{"pattern": "/BIN/a"}, {"pattern": "/bin/b"}]},
            "main": {"ask": "on-miss", "allowlist": [{"pattern": "/bin/A"}]},
        }});
        let contents =
            |hash: &str| ContentHashes::from([("/w/a".to_owned(), Some(hash.to_owned())), ("/w/b".to_owned(), None)]);
        let mut file = ApprovalsFile::read(&content);
        file.allow_always(
            "main",
            Path::new("/usr/bin/git"),
            &["git".into(), "push".into()],
            Path::new("/w"),
            &contents("1"),
        );
        file.allow_always(
            "main",
            Path::new("/usr/bin/git"),
            &["git".into(), "push".into()],
            Path::new("/w"),
            &contents("2"),
        );
        let used = AllowedProgram { pattern: "/bin/A".into(), ..AllowedProgram::default() };
        file.note_use("main", &used, "A x", Path::new("/bin/a"), 5);
        file.save(&path, &Host::system()).unwrap();
        let saved: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(saved["defaults"]["mood"], 7);
        assert_eq!(saved["socket"]["token"].as_str().map(str::len), Some(32));
        assert_eq!(saved["agents"]["main"]["allowlist"][0]["lastUsedAt"], 5);
        let loaded = ApprovalsFile::load(&path).unwrap();
        let found = loaded.effective("main", ApprovalDefaults::default());
        let patterns: Vec<&str> = found.allowlist.iter().map(|entry| entry.pattern.as_str()).collect();
        assert_eq!(patterns, ["/bin/ls", "/bin/A", "/bin/b", "/usr/bin/git"]);
        assert_eq!(found.allowlist[3].contents, Some(contents("2")));
        assert_eq!((found.security, found.ask), (ExecSecurity::Full, ExecAsk::OnMiss));
        assert_eq!(loaded.effective("other", ApprovalDefaults::default()).ask, ExecAsk::Always);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn unsupported_entries_allow_nothing() {
        let given = ApprovalDefaults::default();
        let other = ApprovalsFile::read(&json!({"version": 2, "defaults": {"security": "full"}}));
        assert_eq!(other.effective("main", given), EffectiveApprovals::default());
        let list = json!([{"pattern": "/bin/a", "argPattern": "^x$"}, 7, {"id": "x"}]);
        let file =
            ApprovalsFile::read(&json!({"version": 1, "agents": {"main": {"allowlist": list, "security": "most"}}}));
        assert_eq!(file.effective("main", given), EffectiveApprovals::default());
    }
}
