//! `pinch sessions`: maintenance of session files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pinch_embed::coding_agent::store::repair::FileRepair;
use pinch_embed::ports::{RepairError, repair_session_file};
use pinch_embed::stdx::host::Host;
use serde_json::{Value, json};

use crate::exit::{CommandFailure, unwritten};
use crate::folders::{absolute, working_directory};
use crate::output;

/// Subcommands of `pinch sessions`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SessionsCommand {
    /// Remove unreadable lines from session files; a copy of each damaged file is kept
    Repair(RepairArgs),
}

/// Arguments of `pinch sessions repair`.
#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// Session files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print one JSON object per file in an array
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code is 1 if a file could not be repaired.
pub(crate) fn run(command: &SessionsCommand) -> Result<ExitCode, CommandFailure> {
    match command {
        SessionsCommand::Repair(args) => repair(args),
    }
}

fn repair(args: &RepairArgs) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let cwd = working_directory()?;
    let mut reports = Vec::new();
    for file in &args.files {
        let path = absolute(&cwd, &file.to_string_lossy(), &host);
        reports.push((file.as_path(), repair_session_file(&path, &host)));
    }
    print(args.json, &reports).map_err(|error| unwritten(&error))?;
    let is_refused = |report: &RepairResult| report.as_ref().map_or(true, |report| report.reason.is_some());
    let has_failed = reports.iter().any(|(_, report)| is_refused(report));
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Result for one file: a file that is in use does not prevent repairing others.
type RepairResult = Result<FileRepair, RepairError>;

fn print(as_json: bool, reports: &[(&Path, RepairResult)]) -> std::io::Result<()> {
    let mut out = output::stdout();
    if as_json {
        let all: Vec<Value> = reports.iter().map(|(file, report)| with_file(file, report)).collect();
        pinch_embed::stdx::json::write_pretty(&mut out, &json!(all))?;
        writeln!(out)?;
    } else {
        for (file, report) in reports {
            writeln!(out, "{}: {}", file.display(), described(report))?;
        }
    }
    out.flush()
}

fn with_file(file: &Path, report: &RepairResult) -> Value {
    let mut shown = json!({"file": file.to_string_lossy()});
    let report = match report {
        Ok(report) => report.to_json(),
        Err(error) => json!({"repaired": false, "droppedLines": 0, "reason": error.to_string()}),
    };
    if let (Value::Object(shown), Value::Object(report)) = (&mut shown, report) {
        shown.extend(report);
    }
    shown
}

fn described(report: &RepairResult) -> String {
    let report = match report {
        Ok(report) => report,
        Err(error @ RepairError::InUse { .. }) => {
            return format!("not repaired: {error}; try again when the run has ended");
        }
        Err(error) => return format!("not repaired: {error}"),
    };
    if let Some(reason) = &report.reason {
        return format!("not repaired: {reason}");
    }
    if !report.repaired {
        return "nothing to repair".to_owned();
    }
    let lines = if report.dropped_lines == 1 { "line" } else { "lines" };
    let mut text = format!("repaired, {} {lines} removed", report.dropped_lines);
    if report.reattached > 0 {
        text.push_str(&format!(", {} reattached", report.reattached));
    }
    if let Some(backup) = &report.backup {
        text.push_str(&format!("; a copy is in {}", backup.display()));
    }
    text
}
