//! `cargo xtask cases`: runs black-box case files recorded from pi and OpenClaw.
//!
//! Each executor handles one kind of case. It may use everything in a case except its ID: the same executors also run cases that are not in
//! this repository.

mod agent_loop;
mod agent_session;
mod coding_agent;
mod llm;
mod llm_pure;
mod pending;
mod pi087;
mod providers;
mod runner;
mod scripted;
mod sessions;
mod streaming;
mod tools;
mod wording;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

/// Arguments of `cargo xtask cases`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Case files or directories of case files; default: tests/cases.
    paths: Vec<PathBuf>,
    /// Print all details of failed cases, not only the first difference.
    #[arg(long)]
    verbose: bool,
    /// Run only cases whose ID contains this text.
    #[arg(long)]
    only: Option<String>,
}

/// Rejects fields that an executor does not read.
fn only(value: &Value, known: &[&str]) -> Result<(), String> {
    let unknown =
        value.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| !known.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| Err(format!("the executor does not know the member {key:?}")))
}

/// Outcome of a case.
pub(crate) enum CaseOutcome {
    /// The case passes.
    Passed,
    /// The case fails; contains the reasons, the first difference first.
    Failed(String),
    /// The case records other implementations' behaviour where pinch differs deliberately; it need not pass.
    Reference,
    /// There is no executor for this kind, or for this form of it.
    NotImplemented,
}

impl From<Result<(), String>> for CaseOutcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(why) => Self::Failed(why),
        }
    }
}

/// A case, with the data that its file holds for all cases.
pub(crate) struct Case<'a> {
    /// The suite: the file name without its extension.
    pub(crate) suite: &'a str,
    /// The whole file, for models, fixtures and groups.
    pub(crate) file: &'a Value,
    /// The kind of the case, which selects the executor.
    pub(crate) kind: &'a str,
    /// The case itself.
    pub(crate) case: &'a Value,
}

/// Counts for one kind.
#[derive(Default, Clone, Copy)]
struct Tally {
    passed: usize,
    failed: usize,
    not_implemented: usize,
    excepted: usize,
    reference: usize,
}

/// Runs the cases and prints the failed ones and the tables; returns true if no case failed.
///
/// # Errors
///
/// Fails if a file cannot be read or is not a case file, or if the output cannot be written.
pub fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let default = [folder.clone()];
    let given = if args.paths.is_empty() { &default[..] } else { &args.paths[..] };
    let files = find_files(given)?;
    let exceptions = read_exceptions(&folder.join("exceptions.toml"))?;
    let mut suites: BTreeMap<String, BTreeMap<String, Tally>> = BTreeMap::new();
    for path in &files {
        let suite = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        let kinds = suites.entry(suite.clone()).or_default();
        for (kind, case) in list_cases(&file) {
            let id = case["id"].as_str().unwrap_or("?");
            if args.only.as_ref().is_some_and(|only| !id.contains(only.as_str())) {
                continue;
            }
            let outcome = execute_guarded(&Case { suite: &suite, file: &file, kind, case });
            let tally = kinds.entry(kind.to_owned()).or_default();
            match outcome {
                CaseOutcome::Passed => tally.passed += 1,
                CaseOutcome::Reference => tally.reference += 1,
                CaseOutcome::NotImplemented => tally.not_implemented += 1,
                CaseOutcome::Failed(_) if exceptions.contains_key(&format!("{suite}/{id}")) => tally.excepted += 1,
                CaseOutcome::Failed(why) => {
                    tally.failed += 1;
                    let shown = if args.verbose { why.as_str() } else { why.lines().next().unwrap_or("") };
                    writeln!(out, "FAILED {suite} [{kind}] {id}: {shown}")?;
                }
            }
        }
    }
    write_tables(&suites, out)?;
    let mut ok = suites.values().flat_map(BTreeMap::values).all(|tally| tally.failed == 0);
    // The total is only known if no files or cases were selected.
    if args.paths.is_empty() && args.only.is_none() {
        let path = folder.join("pending.toml");
        let allowed = pending::read(&path)?;
        for wrong in pending::differences(&allowed, &suites) {
            writeln!(out, "PENDING {wrong}; see {}", path.display())?;
            ok = false;
        }
    }
    Ok(ok)
}

fn find_files(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        if path.is_dir() {
            for entry in std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
                let path = entry?.path();
                if path.extension().is_some_and(|e| e == "json") {
                    files.push(path);
                }
            }
        } else if path.is_file() {
            files.push(path.clone());
        } else {
            bail!("{} is neither a case file nor a folder", path.display());
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("no case files found; name some, or run from the root of the workspace");
    }
    Ok(files)
}

/// Reads `suite/id = "reason"` lines of the exceptions file; the reason is mandatory.
fn read_exceptions(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut exceptions = BTreeMap::new();
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(exceptions) };
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = line.split_once('=').map(|(k, v)| (k.trim().trim_matches('"'), v.trim().trim_matches('"')));
        match parsed {
            Some((id, reason)) if !id.is_empty() && !reason.is_empty() => {
                exceptions.insert(id.to_owned(), reason.to_owned());
            }
            _ => bail!("{}:{}: expected \"suite/case-id\" = \"reason\"", path.display(), at + 1),
        }
    }
    Ok(exceptions)
}

/// All cases of a file with their kinds; the embedded runner's suites group them by area.
fn list_cases(file: &Value) -> Vec<(&str, &Value)> {
    let list = |value: &'_ Value| -> Vec<usize> { (0..value.as_array().map_or(0, Vec::len)).collect() };
    let mut cases = Vec::new();
    for i in list(&file["cases"]) {
        let case = &file["cases"][i];
        let kind = case["kind"].as_str().or_else(|| case["area"].as_str()).or_else(|| case["group"].as_str());
        let kind = kind.unwrap_or("?");
        cases.push((kind, case));
    }
    for g in list(&file["groups"]) {
        let group = &file["groups"][g];
        for i in list(&group["cases"]) {
            cases.push((group["area"].as_str().unwrap_or("?"), &group["cases"][i]));
        }
    }
    cases
}

/// A panic in an executor fails the case without ending the run.
fn execute_guarded(case: &Case<'_>) -> CaseOutcome {
    catch_unwind(AssertUnwindSafe(|| execute(case))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("(no text)");
        CaseOutcome::Failed(format!("the executor panicked: {text}"))
    })
}

fn execute(case: &Case<'_>) -> CaseOutcome {
    match (case.suite_family(), case.kind) {
        ("sessions", "agent_session") => agent_session::execute(case),
        ("sessions", "agent_loop") => agent_loop::execute(case),
        ("sessions", "classify_error" | "silent_overflow" | "thinking_levels") => llm_pure::execute_sessions(case),
        ("sessions", _) => sessions::execute(case),
        ("llm", "request" | "stream") => llm::execute(case),
        ("llm", _) => llm_pure::execute(case),
        ("pi087", _) => pi087::execute(case),
        ("llm-providers", _) => providers::execute(case),
        ("embed-streaming", _) => streaming::execute(case),
        ("embed-runner", _) => runner::execute(case),
        ("coding-agent", _) => coding_agent::execute(case),
        ("embed-tools", _) => tools::execute(case),
        _ => CaseOutcome::NotImplemented,
    }
}

impl Case<'_> {
    /// The suite without a suffix such as `-2`: case files from elsewhere may be numbered.
    fn suite_family(&self) -> &str {
        match self.suite.starts_with("pi087") {
            true => "pi087",
            false => self.suite.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-' || c == '_'),
        }
    }
}

fn write_tables(suites: &BTreeMap<String, BTreeMap<String, Tally>>, out: &mut impl Write) -> std::io::Result<()> {
    for (suite, kinds) in suites {
        writeln!(out, "\n{suite}")?;
        writeln!(
            out,
            "  {:<28} {:>6} {:>6} {:>6} {:>6} {:>6}",
            "kind", "passed", "failed", "n.impl", "except", "refer"
        )?;
        for (kind, t) in kinds {
            writeln!(
                out,
                "  {kind:<28} {:>6} {:>6} {:>6} {:>6} {:>6}",
                t.passed, t.failed, t.not_implemented, t.excepted, t.reference
            )?;
        }
    }
    writeln!(out)?;
    for (suite, kinds) in suites {
        let sum = kinds.values().fold(Tally::default(), |a, b| Tally {
            passed: a.passed + b.passed,
            failed: a.failed + b.failed,
            not_implemented: a.not_implemented + b.not_implemented,
            excepted: a.excepted + b.excepted,
            ..a
        });
        writeln!(
            out,
            "{suite}: {} passed, {} failed, {} not implemented, {} excepted",
            sum.passed, sum.failed, sum.not_implemented, sum.excepted
        )?;
    }
    Ok(())
}
