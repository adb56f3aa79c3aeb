//! The page of a session for others to read: without credentials, and without the name of the home directory.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use pinch_coding_agent::export::html::{self, PageTheme};
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
pub(super) fn write(
    log: &SessionLog,
    theme: &PageTheme,
    services: &Services,
    path: Option<PathBuf>,
) -> Result<PathBuf, String> {
    let path = path.unwrap_or_else(|| services.cwd().join(format!("shared-{}", html::file_name(log))));
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        return Err("a session file cannot be cleared of credentials; /export writes one as it is".to_owned());
    }
    let mut page = Vec::new();
    html::write(log, theme, &mut page).map_err(|error| with_causes(&error))?;
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

/// Replaces the path of the home directory with `~`, except where it is the beginning of another name.
fn without_home(page: String, home: Option<&Path>) -> String {
    let Some(home) = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/')).filter(|home| home.len() > 1)
    else {
        return page;
    };
    let mut parts = page.split(home);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_longer = part.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '-'));
        hidden.push_str(if is_longer { home } else { "~" });
        hidden.push_str(part);
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_home_directory_itself_is_replaced() {
        let hidden =
            |home: &str| without_home("/home/me /home/me/x.rs /home/melissa".to_owned(), Some(Path::new(home)));
        assert_eq!(hidden("/home/me/"), "~ ~/x.rs /home/melissa");
        assert_eq!(hidden("/"), "/home/me /home/me/x.rs /home/melissa");
    }
}
