//! Starting and loading the extensions of a session, and asking them about project trust.

use std::sync::Arc;

use super::{CreateError, SessionOptions, change_provider};
use crate::extension::trust::{self, Decided};
use crate::extension::{Extension, Extensions, ProjectTrust, launch};
use crate::resources::trust::TrustDecision;
use crate::resources::{ExtensionEntry, ResourceScope};
use crate::services::Services;

/// Starts the discovered extensions. Those outside the project start first and decide whether to trust it; if that changes the trust,
/// everything is reloaded.
pub(super) async fn found(
    mut services: Services,
    options: &SessionOptions,
    notes: &mut Vec<String>,
) -> (Services, Vec<Arc<dyn Extension>>) {
    let (mut started, mut tried) = (Vec::new(), Vec::new());
    if services.needs_trust() {
        let all = services.resources();
        let first: Vec<ExtensionEntry> =
            all.extensions.iter().filter(|entry| entry.info.scope != ResourceScope::Project).cloned().collect();
        started = start(&services, &first, options, notes).await;
        tried = first;
        let asked: Vec<Arc<dyn Extension>> = options.extensions.iter().chain(&started).cloned().collect();
        let ask = ProjectTrust { cwd: services.cwd().to_owned() };
        let (decided, problems) = trust::ask(&asked, &ask, options.ui.clone()).await;
        notes.extend(problems);
        if let Some(Decided { extension, trusted, remember }) = decided {
            let word = if trusted { "trusts" } else { "does not trust" };
            notes.push(format!("Extension {extension} {word} this project"));
            services = services.decided(trusted, remember).await;
        } else if let (TrustDecision::Ask, Some(prompt), Some(ui)) =
            (services.trust(), &options.trust_prompt, &options.ui)
            && let Some((trusted, remember)) = prompt.ask(services.cwd(), &**ui).await
        {
            services = services.decided(trusted, remember).await;
        }
    }
    let all = services.resources();
    let is_new = |entry: &&ExtensionEntry| !tried.iter().any(|known| known.path == entry.path);
    let rest: Vec<ExtensionEntry> = all.extensions.iter().filter(is_new).cloned().collect();
    started.extend(start(&services, &rest, options, notes).await);
    let place =
        |one: &Arc<dyn Extension>| all.extensions.iter().position(|entry| entry.path.to_string_lossy() == one.name());
    started.retain(|one| place(one).is_some());
    started.sort_by_key(place);
    (services, started)
}

async fn start(
    services: &Services,
    entries: &[ExtensionEntry],
    options: &SessionOptions,
    notes: &mut Vec<String>,
) -> Vec<Arc<dyn Extension>> {
    let Some(agent_dir) = services.agent_dir() else {
        let skipped = |entry: &ExtensionEntry| {
            format!("extension {} was not started: extensions in files need an agent directory", entry.path.display())
        };
        notes.extend(entries.iter().map(skipped));
        return Vec::new();
    };
    let (cwd, has_ui) = (services.cwd(), options.ui.is_some());
    let (started, problems) =
        launch::start(entries, cwd, agent_dir, has_ui, services.host(), options.extension_output.as_ref()).await;
    notes.extend(problems);
    started
}

/// Loads the caller's and the discovered extensions, sets their flags and registers their providers.
pub(super) fn load(
    services: &Services,
    found: Vec<Arc<dyn Extension>>,
    options: &SessionOptions,
    notes: &mut Vec<String>,
) -> Result<Extensions, CreateError> {
    let host = services.host();
    let extensions = Extensions::load(host, options.extensions.iter().cloned().chain(found));
    if let Some(ui) = &options.ui {
        extensions.set_ui(Arc::clone(ui));
    }
    let problems = extensions.set_flags(&options.flags);
    if !problems.is_empty() {
        return Err(CreateError::Flags { problems });
    }
    for (extension, change) in extensions.take_provider_changes() {
        if let Err(error) = change_provider(services, &change) {
            notes.push(format!("Extension \"{extension}\" error: {error}"));
        }
    }
    Ok(extensions)
}
