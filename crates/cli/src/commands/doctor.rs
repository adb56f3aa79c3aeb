//! `pinch doctor`: checks pinch's environment on this machine and reports what is missing or broken.
//!
//! It changes nothing. Exit codes: 0 without errors, 2 with errors.

mod report;
mod context;
mod folders;
mod documents;
mod keys;
mod servers;
mod programs;
mod sandbox;
mod sessions;
mod terminal;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use pinch_embed::stdx::host::Host;

use crate::exit::{Blame, CommandFailure, unwritten};
use crate::output;
use context::DoctorContext;
use report::{DoctorReport, FindingStatus};

/// Arguments of `pinch doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent)
    #[arg(long, value_name = "DIR")]
    agent_dir: Option<PathBuf>,

    /// Print a JSON object with version, status and findings
    #[arg(long)]
    json: bool,

    /// Also connect to servers of other networks, for providers with API keys
    #[arg(long, conflicts_with = "offline")]
    online: bool,

    /// Connect to no server, as PINCH_OFFLINE does
    #[arg(long)]
    offline: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, CommandFailure> {
    let host = Host::system();
    let offline = args.offline || ["PINCH_OFFLINE", "PI_OFFLINE"].iter().any(|name| host.env().is_on(name));
    let reach = match (offline, args.online) {
        (true, _) => servers::Reach::Nothing,
        (false, true) => servers::Reach::Everything,
        (false, false) => servers::Reach::Near,
    };
    let context = DoctorContext::look(args.agent_dir.as_deref(), &host)?;
    let needs_node = sessions::needs_node(&context);
    let (keys, servers, programs, sandbox, sessions) = tokio::join!(
        keys::look(&context),
        servers::look(&context, reach),
        programs::look(&host, needs_node),
        sandbox::look(&context),
        sessions::look(&context),
    );
    let sections = vec![
        folders::look(&context),
        documents::look(&context),
        keys,
        servers,
        programs,
        sandbox,
        sessions::extensions(&context),
        sessions,
        terminal::look(&host),
    ];
    let report = DoctorReport { sections };
    let text = if args.json { format!("{}\n", report.to_value()) } else { report.text() };
    output::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(&error))?;
    let is_broken = report.count(FindingStatus::Fail) > 0;
    Ok(if is_broken { ExitCode::from(Blame::Configuration as u8) } else { ExitCode::SUCCESS })
}
