//! Starting the extensions found as files.

use std::path::Path;
use std::sync::Arc;

use pinch_stdx::host::Host;

use super::Extension;
use super::printed::OutputListener;
#[cfg(feature = "extension-process")]
use super::process::start as processes;
use crate::resources::ExtensionEntry;

/// Starts extensions concurrently and returns them in order. Failures are reported with file, cause and remedy.
/// `output` receives what they print.
///
/// Without the feature `extension-process`, none can start.
pub async fn start(
    entries: &[ExtensionEntry],
    cwd: &Path,
    agent_dir: &Path,
    has_ui: bool,
    host: &Host,
    output: Option<&OutputListener>,
) -> (Vec<Arc<dyn Extension>>, Vec<String>) {
    #[cfg(feature = "extension-process")]
    let done = processes::start(entries, cwd, agent_dir, has_ui, host, output).await;
    #[cfg(not(feature = "extension-process"))]
    let done = {
        let _ = (cwd, agent_dir, has_ui, host, output);
        let left_out = |entry: &ExtensionEntry| {
            let path = entry.path.display();
            format!(
                "Extension {path} was not loaded: this program was built without extension processes (feature extension-process)"
            )
        };
        (Vec::new(), entries.iter().map(left_out).collect())
    };
    done
}
