//! The page of a session for others to read: without credentials, and without the name of the home directory.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use pinch_coding_agent::export::{html, page_theme};
use pinch_coding_agent::services::Services;
use pinch_coding_agent::session_log::SessionLog;
use pinch_llm::redact::Secrets;
use pinch_stdx::fs::{Access, write_named_with};
use pinch_stdx::text::with_causes;
use serde_json::Value;

/// Members of stored credentials that are secret.
const SECRET_MEMBERS: [&str; 3] = ["key", "access", "refresh"];
/// Minimum length of a stored secret, in characters: shorter ones occur in many texts.
const LEAST_SECRET: usize = 8;

/// Writes the page to a file, by default in the working directory. Returns its path. Blocks.
///
/// # Errors
/// A sentence for people.
pub(super) fn write(log: &SessionLog, services: &Services, path: Option<PathBuf>) -> Result<PathBuf, String> {
    let path = path.unwrap_or_else(|| services.cwd().join(format!("shared-{}", html::file_name(log))));
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        return Err("a session file cannot be cleared of credentials; /export writes one as it is".to_owned());
    }
    let theme = services.theme().ok_or("there is no theme")?;
    let mut page = Vec::new();
    html::write(log, &page_theme(&theme), &mut page).map_err(|error| with_causes(&error))?;
    let page = String::from_utf8(page).map_err(|error| with_causes(&error))?;
    let page = without_home(hidden(page, services), services.host().home());
    log.check_target(&path).map_err(|error| with_causes(&error))?;
    write_named_with(&path, Access::NewPrivate, |file| file.write_all(page.as_bytes()))
        .map_err(|error| format!("{}: {}", path.display(), with_causes(&error)))?;
    Ok(path)
}

/// Hides the keys in the environment, and those in stored credentials.
fn hidden(page: String, services: &Services) -> String {
    let mut page = Secrets::in_env(services.host().env()).hidden_in(&page).unwrap_or(page);
    let storage = services.auth().storage();
    for stored in storage.providers().iter().filter_map(|provider| storage.get(provider)) {
        for secret in SECRET_MEMBERS.iter().filter_map(|member| stored.get(member).and_then(Value::as_str)) {
            if secret.len() >= LEAST_SECRET && page.contains(secret) {
                page = page.replace(secret, "[hidden]");
            }
        }
    }
    page
}

/// Replaces the path of the home directory with `~`.
fn without_home(page: String, home: Option<&Path>) -> String {
    match home.and_then(Path::to_str).map(|home| home.trim_end_matches('/')) {
        Some(home) if home.len() > 1 => page.replace(home, "~"),
        _ => page,
    }
}
