//! `pinch sessions`: maintenance of session files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pinch_embed::coding_agent::store::repair::FileRepair;
use pinch_embed::ports::repair_session_file;
use pinch_embed::stdx::host::Host;
use serde_json::{Value, json};

use crate::exit::{CommandFailure, unwritten};
use crate::folders::{absolute, working_directory};
use crate::output;

/// What `pinch sessions` does.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SessionsCommand {
    /// Remove lines that cannot be read from session files; a copy of each damaged file is kept
    Repair(RepairArgs),
}

/// What `pinch sessions repair` takes.
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
        let report = repair_session_file(&path, &host).map_err(|error| {
            CommandFailure::user(format!("{error}\nhint: wait until the run has ended, and try again"))
        })?;
        reports.push((file.as_path(), report));
    }
    print(args.json, &reports).map_err(|error| unwritten(&error))?;
    let has_failed = reports.iter().any(|(_, report)| report.reason.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(as_json: bool, reports: &[(&Path, FileRepair)]) -> std::io::Result<()> {
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

fn with_file(file: &Path, report: &FileRepair) -> Value {
    let mut shown = json!({"file": file.to_string_lossy()});
    if let (Value::Object(shown), Value::Object(report)) = (&mut shown, report.to_json()) {
        shown.extend(report);
    }
    shown
}

fn described(report: &FileRepair) -> String {
    if let Some(reason) = &report.reason {
        return format!("not repaired: {reason}");
    }
    if !report.repaired {
        return "nothing to repair".to_owned();
    }
    let lines = if report.dropped_lines == 1 { "line" } else { "lines" };
    let mut text = format!("repaired, {} {lines} removed", report.dropped_lines);
    if report.reattached > 0 {
        text.push_str(&format!(", {} given another parent", report.reattached));
    }
    if let Some(backup) = &report.backup {
        text.push_str(&format!("; a copy is in {}", backup.display()));
    }
    text
}
