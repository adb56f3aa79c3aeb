//! Checks session files in both directions between pinch and pi's own session managers.
//!
//! Each scenario is written by pinch and read by pi, written by pi and read by pinch, and written by both in turn. A file must mean the
//! same to both: the tree, the labels, the name, the context and what is sent to a model. Where the newest version of pi writes the same
//! session, its lines must match ours byte for byte.

mod program;
pub(crate) mod peer;
mod scenarios;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use pinch_testing::cases::compare::same;
use regex::Regex;
use serde_json::{Map, Value};

use super::matrix::{Cell, Matrix};
use peer::{Installed, PiVersion, TARGET, VERSIONS};
use program::{Pinch, SessionProgram};
use scenarios::{KNOWN, KnownPiDifference, PiScenario};

/// Which program writes a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InteropDirection {
    FromPinch,
    FromPi,
    InTurn,
}

impl InteropDirection {
    const ALL: [Self; 3] = [Self::FromPinch, Self::FromPi, Self::InTurn];

    fn word(self) -> &'static str {
        match self {
            Self::FromPinch => "reads",
            Self::FromPi => "writes",
            Self::InTurn => "in turn",
        }
    }
}

/// The compared versions; the lines of the first must match pinch's byte for byte.
const COMPARED: [PiVersion; 4] = [VERSIONS[0], TARGET, VERSIONS[1], VERSIONS[2]];

/// Runs the check.
pub(super) fn run() -> anyhow::Result<bool> {
    let installed = Installed::get(&COMPARED)?;
    let mut pinch = Pinch::new()?;
    let mut columns: Vec<String> = Vec::new();
    for version in COMPARED {
        columns.extend(InteropDirection::ALL.map(|direction| format!("{} {}", version.number, direction.word())));
    }
    columns.push(format!("{} same bytes", COMPARED[0].number));
    let scenarios = scenarios::all();
    let mut matrix = Matrix::new(columns, scenarios.iter().map(|scenario| scenario.name).collect());
    for (nth, version) in COMPARED.into_iter().enumerate() {
        let mut pi = installed.start(version)?;
        for (row, scenario) in scenarios.iter().enumerate() {
            for (at, direction) in InteropDirection::ALL.into_iter().enumerate() {
                let cell = check(&mut pinch, &mut pi, version.number, scenario, direction);
                matrix.set(row, nth * InteropDirection::ALL.len() + at, cell);
            }
            if nth == 0 {
                matrix.set(
                    row,
                    COMPARED.len() * InteropDirection::ALL.len(),
                    same_bytes(&mut pinch, &mut pi, scenario),
                );
            }
        }
    }
    Ok(matrix.finish())
}

/// Checks that a session file means the same to pinch and to the target version of pi.
pub(super) fn reads_alike(path: &Path) -> anyhow::Result<String> {
    if Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok("left out: npm is not installed".to_owned());
    }
    let mut pi = Installed::get(&[TARGET])?.start(TARGET)?;
    let known: Vec<&KnownPiDifference> =
        KNOWN.iter().filter(|known| known.version == TARGET.number && known.scenario == "*").collect();
    let (ours, theirs) = (Pinch::new()?.view(path).context("pinch")?, pi.view(path)?);
    match compare(&ours, &theirs, &known) {
        Cell::None | Cell::Ok => Ok(format!("pi {} reads the same", TARGET.number)),
        Cell::Known(reason) => Ok(format!("pi {}: {reason}", TARGET.number)),
        Cell::Failed(why) => bail!("pi {}: {why}", TARGET.number),
    }
}

/// Writes a scenario and reads it with both programs.
fn check(
    pinch: &mut Pinch,
    pi: &mut dyn SessionProgram,
    version: &str,
    scenario: &PiScenario,
    direction: InteropDirection,
) -> Cell {
    let known: Vec<&KnownPiDifference> = KNOWN
        .iter()
        .filter(|known| known.version == version && (known.scenario == scenario.name || known.scenario == "*"))
        .collect();
    if direction != InteropDirection::FromPinch
        && let Some(cannot) = known.iter().find(|known| known.members.is_empty())
    {
        return Cell::Known(format!("this version {}", cannot.reason));
    }
    if direction == InteropDirection::InTurn && scenario.steps.iter().any(goes_over) {
        return Cell::None;
    }
    match views(pinch, pi, scenario, direction) {
        Err(why) => Cell::Failed(format!("{why:#}")),
        Ok((ours, theirs)) => compare(&ours, &theirs, &known),
    }
}

/// Whether a step switches to another file.
fn goes_over(step: &Value) -> bool {
    step.get("fork").is_some() || step.get("branched").is_some()
}

fn views(
    pinch: &mut Pinch,
    pi: &mut dyn SessionProgram,
    scenario: &PiScenario,
    direction: InteropDirection,
) -> anyhow::Result<(Value, Value)> {
    let folder = tempfile::tempdir()?;
    let path = match direction {
        InteropDirection::FromPinch => write(pinch, folder.path(), scenario)?,
        InteropDirection::FromPi => write(pi, folder.path(), scenario)?,
        InteropDirection::InTurn => write_in_turn(&mut [pi, pinch], folder.path(), scenario)?,
    };
    Ok((pinch.view(&path).context("pinch")?, pi.view(&path)?))
}

/// Writes a whole scenario.
fn write(program: &mut dyn SessionProgram, folder: &Path, scenario: &PiScenario) -> anyhow::Result<PathBuf> {
    begin(program, folder, scenario)?;
    let mut ids = Vec::new();
    for step in &scenario.steps {
        take(program, folder, step, &mut ids)?;
    }
    program.path()
}

/// The first program writes until there is an answer; then they take turns, each reopening the file. Existing lines must stay unchanged.
fn write_in_turn(
    programs: &mut [&mut dyn SessionProgram; 2],
    folder: &Path,
    scenario: &PiScenario,
) -> anyhow::Result<PathBuf> {
    let is_answer = |step: &Value| step["message"]["role"] == "assistant";
    let n_first = match &scenario.given {
        Some(_) => 0,
        None => scenario.steps.iter().position(is_answer).context("no answer")? + 1,
    };
    let (first, rest) = scenario.steps.split_at(n_first);
    let mut ids = Vec::new();
    begin(programs[0], folder, scenario)?;
    for step in first {
        take(programs[0], folder, step, &mut ids)?;
    }
    let path = programs[0].path()?;
    let mut turn = 0;
    let mut moved = false;
    let mut before = std::fs::read(&path)?;
    for step in rest {
        if !moved {
            turn += 1;
            programs[turn % 2].open(&path)?;
        }
        // A program's current leaf is not stored: it appends before the other program's turn.
        moved = step.get("moveTo").is_some();
        take(programs[turn % 2], folder, step, &mut ids)?;
        let after = std::fs::read(&path)?;
        let is_migrated = scenario.name.starts_with("version");
        if !is_migrated && !after.starts_with(&before) {
            bail!("what stood in the file was changed at {step}");
        }
        before = after;
    }
    Ok(path)
}

fn begin(program: &mut dyn SessionProgram, folder: &Path, scenario: &PiScenario) -> anyhow::Result<()> {
    match &scenario.given {
        None => program.create("/", folder),
        Some(text) => {
            let path = folder.join("given.jsonl");
            std::fs::write(&path, text)?;
            program.open(&path)
        }
    }
}

/// Performs one step; an entry's ID is recorded under the number of its step.
fn take(
    program: &mut dyn SessionProgram,
    folder: &Path,
    step: &Value,
    ids: &mut Vec<Option<String>>,
) -> anyhow::Result<()> {
    let mut step = step.clone();
    put_ids_in(&mut step, ids)?;
    let id = if let Some(id) = step.get("moveTo") {
        program.move_to(id.as_str()).map(|()| None)
    } else if let Some(id) = step["branched"].as_str() {
        program.branched(id).map(|()| None)
    } else if let Some(cwd) = step["fork"].as_str() {
        program.fork(cwd, folder).map(|()| None)
    } else {
        program.append(&step).map(Some)
    };
    ids.push(id.with_context(|| format!("at {step}"))?);
    Ok(())
}

/// Replaces `#n` with IDs.
fn put_ids_in(value: &mut Value, ids: &[Option<String>]) -> anyhow::Result<()> {
    match value {
        Value::String(text) => {
            if let Some(n) = text.strip_prefix('#').and_then(|n| n.parse::<usize>().ok()) {
                let id = ids.get(n).and_then(Option::as_ref).with_context(|| format!("no entry {text}"))?;
                text.clone_from(id);
            }
        }
        Value::Object(map) => map.values_mut().try_for_each(|value| put_ids_in(value, ids))?,
        _ => {}
    }
    Ok(())
}

/// Compares what a file means to both programs. A known difference must show in at least one of its fields.
fn compare(ours: &Value, theirs: &Value, known: &[&KnownPiDifference]) -> Cell {
    let without_null = |value: &Value| -> Value {
        match value.as_object() {
            Some(map) => map
                .iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect::<Map<_, _>>()
                .into(),
            None => value.clone(),
        }
    };
    let mut shown: Vec<&KnownPiDifference> = Vec::new();
    for (name, ours) in ours.as_object().into_iter().flatten() {
        let theirs = theirs.get(name).cloned().unwrap_or_default();
        if let Err(why) = same(&without_null(&theirs), &without_null(ours)) {
            match known.iter().find(|known| known.members.contains(&name.as_str())) {
                Some(known) => shown.push(known),
                None => return Cell::Failed(format!("{name}{why}")),
            }
        }
    }
    let is_shown = |known: &KnownPiDifference| shown.iter().any(|shown| std::ptr::eq(*shown, known));
    let is_gone = |known: &&&KnownPiDifference| known.scenario != "*" && !known.members.is_empty() && !is_shown(known);
    if let Some(known) = known.iter().find(is_gone) {
        return Cell::Failed(format!("there is no difference any more: {}", known.reason));
    }
    let reasons: Vec<&str> = known.iter().filter(|known| is_shown(known)).map(|known| known.reason).collect();
    if reasons.is_empty() { Cell::Ok } else { Cell::Known(format!("this version {}", reasons.join("; "))) }
}

/// Writes the same scenario with both programs and compares the lines, ignoring IDs, times and paths.
fn same_bytes(pinch: &mut Pinch, pi: &mut dyn SessionProgram, scenario: &PiScenario) -> Cell {
    if scenario.given.is_some() {
        return Cell::None;
    }
    let lines = |program: &mut dyn SessionProgram| -> anyhow::Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let text = std::fs::read_to_string(write(program, folder.path(), scenario)?)?;
        neutral(&text, folder.path())
    };
    match lines(pinch).and_then(|ours| Ok((ours, lines(pi)?))) {
        Err(why) => Cell::Failed(format!("{why:#}")),
        Ok((ours, theirs)) if ours == theirs => Cell::Ok,
        Ok((ours, theirs)) => {
            let at = ours
                .iter()
                .zip(&theirs)
                .position(|(ours, theirs)| ours != theirs)
                .unwrap_or(ours.len().min(theirs.len()));
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "(no line)".into());
            Cell::Failed(format!("line {}:\n  pi    {}\n  pinch {}", at + 1, line(&theirs), line(&ours)))
        }
    }
}

/// The lines of a file with IDs replaced by their order, and without times and the directory.
fn neutral(text: &str, folder: &Path) -> anyhow::Result<Vec<String>> {
    let times = Regex::new(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}Z")?;
    let uuids = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")?;
    let numbers = Regex::new(r#"("systemMessage":.*"timestamp":)\d{13}"#)?;
    let mut text = times.replace_all(&text.replace(&*folder.to_string_lossy(), "FOLDER"), "TIME").into_owned();
    let ids: Vec<String> = text
        .lines()
        .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["id"].as_str()?.to_owned()))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        text = text.replace(id.as_str(), &format!("ID{n}"));
    }
    let text = uuids.replace_all(&text, "UUID").into_owned();
    Ok(numbers.replace_all(&text, "${1}NOW").lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests pinch's half, which needs no pi: every scenario can be written and its file read.
    #[test]
    fn every_scenario_is_one() {
        let mut pinch = Pinch::new().unwrap();
        for scenario in scenarios::all() {
            let folder = tempfile::tempdir().unwrap();
            let path = write(&mut pinch, folder.path(), &scenario).unwrap();
            let view = pinch.view(&path).unwrap();
            assert!(view["messages"].as_array().is_some_and(|messages| !messages.is_empty()), "{}", scenario.name);
            assert!(
                KNOWN
                    .iter()
                    .all(|known| known.scenario == "*" || scenarios::all().iter().any(|s| s.name == known.scenario))
            );
        }
    }
}
