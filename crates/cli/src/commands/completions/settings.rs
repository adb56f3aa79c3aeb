//! The settings.json reference as Markdown.

use std::fmt::Write as _;

use pinch_embed::coding_agent::settings::keys::{GROUPS, SettingKey};

const HEAD: &str = "\
# Settings

`settings.json` in the agent directory (`~/.pinch/agent`) contains the user's settings, and `settings.json` in `.pinch` or `.pi` in a working directory those of
its project, which are used if the project is trusted. The project's settings are merged over the user's, member by member; a list replaces a list. A key with a
dot is a member of an object: `compaction.enabled` is `{\"compaction\": {\"enabled\": true}}`. Unknown keys are kept and ignored. A value of the wrong type is
reported and ignored.

This page is generated from the table that the parser uses: `pinch completions settings` prints it.
";

/// Generates the reference.
pub(super) fn markdown() -> String {
    let mut out = HEAD.to_owned();
    for group in GROUPS {
        let _written = write!(out, "\n## {}\n\n| key | values | default | effect |\n|---|---|---|---|\n", group.title);
        for key in group.keys {
            let _written = writeln!(out, "{}", row(key));
        }
    }
    out
}

fn row(key: &SettingKey) -> String {
    let default = key.default().map(|default| format!("`{default}`")).unwrap_or_default();
    let user_only = if key.user_only { ". User settings only" } else { "" };
    // A bar would end the cell.
    let [values, about] = [key.value_type.description(), key.about.to_owned()].map(|text| text.replace('|', "\\|"));
    format!("| `{}` | {values} | {default} | {about}{user_only} |", key.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinch_embed::coding_agent::settings::keys::all;

    #[test]
    fn every_key_has_a_row_with_an_effect() {
        let text = markdown();
        for key in all() {
            let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", key.path))).unwrap();
            assert_eq!(row.matches('|').count() - row.matches("\\|").count(), 5, "{row}");
            assert!(!key.about.is_empty() && !key.about.ends_with('.'), "{row}");
        }
    }
}
