//! `pinch auth logout`: removes stored credentials.

use std::path::PathBuf;
use std::process::ExitCode;

use pinch_embed::coding_agent::login::log_out;
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::stdx::text::with_causes;

use super::{AuthSources, NOT_READY, print};
use crate::exit::{CommandFailure, tell};

/// Arguments of `pinch auth logout`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Provider
    provider: String,

    /// Directory of auth.json (default: ~/.pinch/agent)
    #[arg(long, value_name = "DIR")]
    agent_dir: Option<PathBuf>,
}

/// Runs the command. Succeeds even if nothing is stored, so that it can be repeated.
pub(super) async fn run(args: &Args) -> Result<ExitCode, CommandFailure> {
    let AuthSources { auth, registry, .. } = AuthSources::open(args.agent_dir.as_deref())?;
    let stored = auth.storage().providers();
    if let Some(problem) = auth.storage().drain_problems().first() {
        tell(&format_args!("Could not read stored credentials: {problem}"));
        return Ok(ExitCode::from(NOT_READY));
    }
    let is_named = |id: &&ProviderId| id.as_str() == args.provider;
    let Some(provider) = stored.iter().find(is_named).cloned().or_else(|| registry.provider(&args.provider)) else {
        let names: Vec<&str> = stored.iter().map(ProviderId::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        tell(&format_args!("Unknown provider \"{}\".\nStored credentials: {names}", args.provider));
        return Ok(ExitCode::from(NOT_READY));
    };
    let outcome = log_out(&auth, &provider).await;
    let outcome = outcome.map_err(|error| CommandFailure::internal(with_causes(&error)))?;
    print(&outcome.to_string()).map(|()| ExitCode::SUCCESS)
}
