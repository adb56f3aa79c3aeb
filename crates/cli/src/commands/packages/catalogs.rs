//! `pinch update --models`: newer model catalogs.

use pinch_embed::coding_agent::models::remote::{CatalogOutcome, CatalogRefresh, CatalogUpdate};
use pinch_embed::coding_agent::services::Services;
use pinch_embed::llm::catalog::Catalog;
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::text::with_causes;

use super::parse::PackageCommand;
use super::{read_settings, say};
use crate::exit::{Blame, CommandFailure, warn};
use crate::folders::Folders;

/// Fetches the catalogs of the providers with credentials.
pub(super) async fn run(
    folders: &Folders,
    command: &PackageCommand,
    host: &Host,
    cancel: &Cancel,
) -> Result<(), CommandFailure> {
    if ["PINCH_OFFLINE", "PI_OFFLINE"].iter().any(|name| host.env().is_on(name)) {
        return Err(CommandFailure::user("model catalogs are not fetched offline\nhint: unset PINCH_OFFLINE"));
    }
    let services = Services::load_directory(read_settings(folders, command, host), Vec::new());
    let catalog = Catalog::for_build();
    let is_configured =
        |provider: &ProviderId| catalog.n_models(provider.as_str()) > 0 && services.auth().is_configured(provider);
    let providers: Vec<ProviderId> = services.models().providers().into_iter().filter(is_configured).collect();
    if providers.is_empty() {
        return Err(CommandFailure::user(
            "no provider has credentials, so there is no catalog to fetch\nhint: log in with `pinch auth login`",
        ));
    }
    let mut refresh = CatalogRefresh::new(&folders.agent_dir, services.host().clone());
    let of_env = host.env().non_empty("PINCH_MODEL_CATALOG_URL").map(str::to_owned);
    let set = || services.settings().settings().model_catalog_url.clone();
    if let Some(url) = of_env.or_else(set) {
        refresh.base_url = url;
    }
    let updates = refresh.run(&providers, cancel).await;
    let updates = updates.map_err(|error| CommandFailure::new(Blame::Provider, with_causes(&error)))?;
    report(&updates)
}

fn report(updates: &[CatalogUpdate]) -> Result<(), CommandFailure> {
    let mut failures = Vec::new();
    for CatalogUpdate { provider, outcome } in updates {
        match outcome {
            Ok(CatalogOutcome::Updated { n_models, n_refused }) => {
                say(format_args!("{provider}: {n_models} models"))?;
                if *n_refused > 0 {
                    warn(&format!("{n_refused} models of {provider} were skipped: invalid, or on another server"));
                }
            }
            Ok(CatalogOutcome::Unchanged) => say(format_args!("{provider}: up to date"))?,
            Ok(CatalogOutcome::Unknown) => say(format_args!("{provider}: no catalog"))?,
            Err(error) => failures.push(format!("{provider}: {}", with_causes(error))),
        }
    }
    if failures.is_empty() {
        return say("Model catalogs refreshed");
    }
    let text = format!("could not refresh model catalogs: {}", failures.join("; "));
    Err(CommandFailure::new(Blame::Provider, text))
}
