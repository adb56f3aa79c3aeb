//! Cases about session files, session trees, contexts and compaction.

use std::path::{Path, PathBuf};

use pinch_stdx::host::Host;
use pinch_testing::cases::notation;
use serde_json::Value;

use super::{Case, CaseOutcome};

pub(crate) mod compaction;
mod list;
mod open;
mod ops;
mod pure;

/// Placeholder for the working directory of the process.
const PROCESS_CWD: &str = "/process/cwd";

/// A running case: its directory, and its input with the notation expanded.
struct SessionWorld {
    host: Host,
    dir: tempfile::TempDir,
    input: Value,
}

impl SessionWorld {
    /// The path of a file in the case's directory.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A text field of the input.
    fn text(&self, name: &str) -> Result<&str, String> {
        self.input[name].as_str().ok_or_else(|| format!("input.{name} is no text"))
    }

    /// Writes the initial file of the case, if it has one.
    fn write_file(&self) -> Result<PathBuf, String> {
        let path = self.path("s.jsonl");
        if let Some(text) = self.input["fileText"].as_str() {
            std::fs::write(&path, text).map_err(|e| e.to_string())?;
        }
        Ok(path)
    }
}

/// Runs a case of this suite.
pub(crate) fn execute(case: &Case<'_>) -> CaseOutcome {
    if case.kind == "validate_tool_arguments" {
        return pure::validate_tool_arguments(case).into();
    }
    let run: fn(&SessionWorld) -> Result<Value, String> = match case.kind {
        "session_open" => open::session_open,
        "session_fork_from" => open::session_fork_from,
        "session_ops" => ops::session_ops,
        "session_dir_name" => list::session_dir_name,
        "session_list" => list::session_list,
        "session_most_recent" => list::session_most_recent,
        "session_search_parse" => list::session_search_parse,
        "session_search_filter" => list::session_search_filter,
        "prompt_template" => pure::prompt_template,
        kind => match compaction::executor(kind) {
            Some(run) => run,
            None => return CaseOutcome::NotImplemented,
        },
    };
    check(case, run).into()
}

fn check(case: &Case<'_>, run: fn(&SessionWorld) -> Result<Value, String>) -> Result<(), String> {
    let mut input = case.case["input"].clone();
    notation::expand(&mut input);
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let world = SessionWorld { host: Host::builder().build(), dir, input };
    let mut expected =
        case.case.get("betterExpected").or_else(|| case.case.get("expected")).cloned().unwrap_or(Value::Null);
    notation::expand(&mut expected);
    notation::put_in(&mut expected, &[("<dir>", &show(world.dir.path())), ("<process cwd>", PROCESS_CWD)]);
    notation::put_in(&mut expected, &compaction::wording());
    let mut actual = run(&world)?;
    if case.kind == "session_open" || case.kind == "session_fork_from" {
        open::forgive(&expected, &mut actual);
    }
    if case.kind == "prepare_compaction" {
        compaction::forgive(&expected, &mut actual);
    }
    notation::matches(&expected, &actual, &world.input.to_string())
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a future to completion.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    Ok(runtime.block_on(future))
}

/// The lines of a file as JSON; null if the file does not exist.
fn parsed_lines(path: &Path) -> Value {
    let Ok(text) = std::fs::read_to_string(path) else { return Value::Null };
    let lines = text.trim().split('\n').filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| serde_json::json!({ "unparseableLine": line })))
        .collect()
}
