//! Compares pi's program with pinch: the same command lines and the same model answers, in separate directories.
//!
//! Both must send the same requests, print the same output, write the same session and exit the same way. Exempt are IDs, times,
//! directories, the wording of the system prompt and of tool descriptions, additions in later versions of pi, and known differences.

mod known;
mod scenarios;
mod view;

use std::path::{Path, PathBuf};

use anyhow::Context;
use pinch_testing::cases::program::{self, Program};
use serde_json::{Value, json};

use super::matrix::{Cell, Matrix};
use super::neutral::{self, KnownList};
use super::pi::peer::{Installed, PiVersion};
use scenarios::ModeScenario;
use view::ASPECTS;

/// Arguments of `cargo xtask interop modes`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The version of pi: 1.5.2, the target, or 0.87.1.
    #[arg(long, value_name = "VERSION", default_value = "0.87.1")]
    pi: String,
    /// Run only the scenarios whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write the output of both programs to this directory, in the form in which it is compared.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Runs the check.
pub(super) fn run(args: &Args) -> anyhow::Result<bool> {
    let version = PiVersion::find(&args.pi)?;
    let installed = Installed::get(&[version])?;
    let pi = Program {
        path: installed.node_of(version),
        first_args: vec![installed.program(version).into()],
        variables: vec![("PATH", installed.with_search_programs()?)],
    };
    let pinch = Program { path: program::pinch().map_err(anyhow::Error::msg)?.to_owned(), ..Program::default() };
    let is_wanted =
        |scenario: &ModeScenario| args.only.as_ref().is_none_or(|text| scenario.name.contains(text.as_str()));
    let scenarios: Vec<ModeScenario> = scenarios::all().into_iter().filter(is_wanted).collect();
    println!("==> {} scenarios, about two seconds each", scenarios.len());
    let mut matrix = Matrix::new(
        ASPECTS.iter().map(|aspect| (*aspect).to_owned()).collect(),
        scenarios.iter().map(|scenario| scenario.name).collect(),
    );
    let configuration = scenarios::configuration();
    let mut known = KnownList::new(&known::of(version));
    for (row, scenario) in scenarios.iter().enumerate() {
        let said = [("pi", &pi), ("pinch", &pinch)].map(|(name, program)| {
            let said = said(program, &configuration, scenario).with_context(|| format!("{name}: {}", scenario.name))?;
            keep(args.into.as_deref(), scenario.name, name, &said)?;
            anyhow::Ok(said)
        });
        let [theirs, ours] = said;
        let (theirs, ours) = (theirs?, ours?);
        for (column, aspect) in ASPECTS.iter().enumerate() {
            matrix.set(row, column, compare(&mut known, scenario.name, aspect, &theirs, &ours));
        }
    }
    let ran = |name: &str| scenarios.iter().any(|scenario| scenario.name == name);
    let gone: Vec<String> = (known.gone().iter())
        .filter(|known| ran(known.step) || (known.step == "*" && args.only.is_none()))
        .map(|known| format!("{}: {} does not differ any more: {}", known.step, known.at, known.reason))
        .collect();
    let all_held = matrix.finish();
    for gone in &gone {
        println!("FAILED {gone}");
    }
    Ok(all_held && gone.is_empty())
}

/// Everything a program does in a scenario, without what differs each time.
fn said(program: &Program, configuration: &Value, scenario: &ModeScenario) -> anyhow::Result<Value> {
    let ran = program::run_as(program, configuration, &scenario.input).map_err(anyhow::Error::msg)?;
    view::of(&ran)
}

/// Writes a program's output to the requested directory.
fn keep(folder: Option<&Path>, scenario: &str, program: &str, said: &Value) -> anyhow::Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let path = folder.join(format!("{}.{program}.json", scenario.replace([' ', '/'], "-")));
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(&path, serde_json::to_string_pretty(said)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The result for one aspect of a scenario.
fn compare(known: &mut KnownList, scenario: &str, aspect: &str, theirs: &Value, ours: &Value) -> Cell {
    let is_empty = |side: &Value| match &side[aspect] {
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        other => other.is_null(),
    };
    if is_empty(theirs) && is_empty(ours) {
        return Cell::None;
    }
    let found = neutral::differences(&json!({aspect: theirs[aspect]}), &json!({aspect: ours[aspect]}));
    match known.judge(scenario, found) {
        Ok(reasons) if reasons.is_empty() => Cell::Ok,
        Ok(reasons) => Cell::Known(reasons.join("; ")),
        Err(new) => Cell::Failed(format!("{}: {}", new.at, new.how)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unused name would hide that a difference no longer exists.
    #[test]
    fn every_scenario_is_one_and_every_known_difference_has_one() {
        let scenarios = scenarios::all();
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name} stands there twice");
        }
        for known in known::all() {
            assert!(known.step == "*" || names.contains(&known.step), "no scenario {}", known.step);
            let aspect = known.at.split('/').nth(1).unwrap_or_default();
            assert!(ASPECTS.contains(&aspect), "no aspect {aspect}");
        }
    }

    #[test]
    fn what_is_new_fails_and_what_is_known_does_not() {
        let mut known = KnownList::new(&[&[neutral::KnownDifference { step: "s", at: "/exit", reason: "why" }]]);
        let side = |exit: i32| json!({"exit": [exit], "events": [], "stdout": ["x"]});
        assert_eq!(compare(&mut known, "s", "exit", &side(1), &side(2)), Cell::Known("why".into()));
        assert_eq!(compare(&mut known, "s", "stdout", &side(1), &side(2)), Cell::Ok);
        assert_eq!(compare(&mut known, "s", "events", &side(1), &side(2)), Cell::None);
        let new = compare(&mut known, "t", "exit", &side(1), &side(2));
        assert_eq!(new, Cell::Failed("/exit/0: pi 1, pinch 2".into()));
    }
}
