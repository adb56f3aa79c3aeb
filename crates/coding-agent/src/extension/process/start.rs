//! Starting extensions by command.

use std::cell::LazyCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_stdx::host::Host;
use serde_json::Value;

use super::{ProcessExtension, ProcessSpec, node_host};
use crate::extension::Extension;
use crate::extension::printed::OutputListener;
use crate::resources::ExtensionEntry;

/// Implements [`launch::start`](crate::extension::launch::start).
pub(in crate::extension) async fn start(
    entries: &[ExtensionEntry],
    cwd: &Path,
    agent_dir: &Path,
    has_ui: bool,
    host: &Host,
    output: Option<&OutputListener>,
) -> (Vec<Arc<dyn Extension>>, Vec<String>) {
    let (started, problems) = start_all(entries, cwd, agent_dir, has_ui, host).await;
    let restarting = |(one, spec): (ProcessExtension, ProcessSpec)| -> Arc<dyn Extension> {
        let one = one.restarting(spec, host.clone());
        Arc::new(match output {
            Some(output) => one.printing_to(output.clone()),
            None => one,
        })
    };
    (started.into_iter().map(restarting).collect(), problems)
}

/// Like [`launch::start`](crate::extension::launch::start), for programs that also call the hooks of the processes, and let them serve
/// several sessions.
pub async fn start_processes(
    entries: &[ExtensionEntry],
    cwd: &Path,
    agent_dir: &Path,
    has_ui: bool,
    host: &Host,
) -> (Vec<Arc<ProcessExtension>>, Vec<String>) {
    let (started, problems) = start_all(entries, cwd, agent_dir, has_ui, host).await;
    (started.into_iter().map(|(one, _)| Arc::new(one)).collect(), problems)
}

/// Returns the processes with their specifications, and what is wrong.
async fn start_all(
    entries: &[ExtensionEntry],
    cwd: &Path,
    agent_dir: &Path,
    has_ui: bool,
    host: &Host,
) -> (Vec<(ProcessExtension, ProcessSpec)>, Vec<String>) {
    let (mut started, mut problems) = (Vec::new(), Vec::new());
    let mut specs = Vec::new();
    {
        // Installed once for all scripts, and only if there are any.
        let node_host = LazyCell::new(|| {
            node_host::install(agent_dir).map_err(|error| format!("{} cannot be written: {error}", agent_dir.display()))
        });
        for entry in entries {
            match commands(entry, &|| node_host.clone(), host) {
                Ok(commands) => specs.extend(commands.into_iter().map(|command| (entry, command))),
                Err(why) => problems.push(format!("Extension {} was not loaded: {why}", entry.path.display())),
            }
        }
    }
    let starting = specs.into_iter().map(|(entry, command)| async move {
        let folder = if entry.path.is_dir() { entry.path.as_path() } else { cwd };
        let spec = ProcessSpec {
            name: entry.path.to_string_lossy().into_owned(),
            command,
            cwd: folder.to_owned(),
            agent_dir: agent_dir.to_owned(),
            has_ui,
        };
        (entry, ProcessExtension::start(spec.clone(), host).await.map(|started| (started, spec)))
    });
    for (entry, done) in futures::future::join_all(starting).await {
        match done {
            Ok(done) => started.push(done),
            Err(error) => problems.push(format!("Extension {} was not loaded: {error}", entry.path.display())),
        }
    }
    (started, problems)
}

/// Returns the commands for an entry. `node_host` returns the path of the program that runs scripts.
fn commands(
    entry: &ExtensionEntry,
    node_host: &dyn Fn() -> Result<PathBuf, String>,
    host: &Host,
) -> Result<Vec<Vec<String>>, String> {
    if entry.path.is_dir() {
        return of_manifest(entry);
    }
    let path = entry.path.to_string_lossy().into_owned();
    let is_script =
        ["js", "mjs", "cjs", "ts", "mts"].iter().any(|ending| entry.path.extension().is_some_and(|e| e == *ending));
    if !is_script {
        return Ok(vec![vec![path]]);
    }
    let node = find_program("node", host).ok_or(
        "it needs Node.js 20 or newer, which is not on the PATH. Install it, or start pinch with --no-extensions",
    )?;
    let runner = node_host()?;
    Ok(vec![vec![node.to_string_lossy().into_owned(), runner.to_string_lossy().into_owned(), path]])
}

/// Returns the commands that a package declares: `{"command": ["program", "argument", …]}`; a program with a slash is relative to the
/// package.
fn of_manifest(entry: &ExtensionEntry) -> Result<Vec<Vec<String>>, String> {
    let listed = entry.manifest.as_ref().and_then(|manifest| manifest["extensions"].as_array());
    let objects = listed.into_iter().flatten().filter(|one| one.is_object());
    objects
        .map(|one| {
            let words = one["command"].as_array().into_iter().flatten().map(Value::as_str);
            let mut words: Vec<String> = words
                .map(|word| word.map(str::to_owned))
                .collect::<Option<_>>()
                .filter(|words: &Vec<String>| !words.is_empty())
                .ok_or("\"command\" in package.json must be a list of strings")?;
            if words[0].contains('/') {
                words[0] = entry.path.join(&words[0]).to_string_lossy().into_owned();
            }
            Ok(words)
        })
        .collect()
}

/// Finds a program on the `PATH`.
fn find_program(name: &str, host: &Host) -> Option<PathBuf> {
    let path = host.env().get("PATH")?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(path).map(|folder| folder.join(&file)).find(|path| path.is_file())
}
