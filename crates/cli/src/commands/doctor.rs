//! `pinch doctor`: looks at what pinch works with on this machine, and says what is missing or broken.
//!
//! It changes nothing. Exit codes: 0 = nothing is broken, 2 = something is.

mod report;
mod scene;
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

use crate::exit::{Failure, FailureKind, unwritten};
use crate::output;
use report::{Mark, Report};
use scene::Scene;

/// What `pinch doctor` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent).
    #[arg(long, value_name = "DIR")]
    agent_dir: Option<PathBuf>,

    /// Prints an object: version, status, sections with their findings.
    #[arg(long)]
    json: bool,

    /// Connects to servers of other networks too, of those providers that there are keys for.
    #[arg(long, conflicts_with = "offline")]
    online: bool,

    /// Connects to no server at all, as PINCH_OFFLINE does.
    #[arg(long)]
    offline: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let host = Host::system();
    let offline = args.offline || ["PINCH_OFFLINE", "PI_OFFLINE"].iter().any(|name| host.env().is_on(name));
    let reach = match (offline, args.online) {
        (true, _) => servers::Reach::Nothing,
        (false, true) => servers::Reach::Everything,
        (false, false) => servers::Reach::Near,
    };
    let scene = Scene::look(args.agent_dir.as_deref(), &host)?;
    let needs_node = sessions::needs_node(&scene);
    let (keys, servers, programs, sandbox, sessions) = tokio::join!(
        keys::look(&scene),
        servers::look(&scene, reach),
        programs::look(&host, needs_node),
        sandbox::look(&host),
        sessions::look(&scene),
    );
    let sections = vec![
        folders::look(&scene),
        documents::look(&scene),
        keys,
        servers,
        programs,
        sandbox,
        sessions::extensions(&scene),
        sessions,
        terminal::look(&host),
    ];
    let report = Report { sections };
    let text = if args.json { format!("{}\n", report.to_value()) } else { report.text() };
    output::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(&error))?;
    let is_broken = report.count(Mark::Fail) > 0;
    Ok(if is_broken { ExitCode::from(FailureKind::Configuration as u8) } else { ExitCode::SUCCESS })
}
