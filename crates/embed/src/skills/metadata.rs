//! Metadata of a skill: the JSON5 object `metadata` in its front matter.

use serde_json::{Map, Value};

/// Members of `metadata` meant for programs like this one; the first one present is used.
const OWNERS: [&str; 2] = ["pinch", "openclaw"];
/// Maximum number of opening brackets in `metadata`: an untrusted file must not exhaust the stack.
const MAX_BRACKETS: usize = 256;
/// Supported kinds of installers.
const INSTALLERS: [&str; 5] = ["brew", "node", "go", "uv", "download"];

/// Metadata of a skill besides its name and description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillMetadata {
    /// Whether it may be used regardless of its requirements.
    pub always: Option<bool>,
    /// Emoji for lists.
    pub emoji: Option<String>,
    /// Home page.
    pub homepage: Option<String>,
    /// Key of its settings in the configuration, if different from its name.
    pub skill_key: Option<String>,
    /// The variable with the API key of the service it uses.
    pub primary_env: Option<String>,
    /// Supported systems: `linux`, `darwin`, `win32`; empty: all.
    pub os: Vec<String>,
    /// Requirements.
    pub requires: Option<SkillRequirements>,
    /// Ways to install its requirements.
    pub install: Vec<SkillInstaller>,
}

/// Requirements of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillRequirements {
    /// Programs, all of which are needed.
    pub bins: Vec<String>,
    /// Programs, at least one of which is needed.
    pub any_bins: Vec<String>,
    /// Environment variables.
    pub env: Vec<String>,
    /// Members of the configuration that must be set.
    pub config: Vec<String>,
}

/// A way to install a requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillInstaller {
    /// `brew`, `node`, `go`, `uv` or `download`.
    pub kind: String,
    /// Id within the list.
    pub id: Option<String>,
    /// Label for people.
    pub label: Option<String>,
    /// Programs that it installs.
    pub bins: Vec<String>,
    /// Supported systems; empty: all.
    pub os: Vec<String>,
    /// What it installs; the members depend on its kind: `formula`, `package`, `module`, `url`, `archive`, `extract`, `stripComponents`,
    /// `targetDir`.
    pub what: Map<String, Value>,
}

impl SkillMetadata {
    /// Parses the text of `metadata`; `None` if it is not an object, or has no member for this program.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() > MAX_BRACKETS {
            return None;
        }
        let metadata: Value = json5::from_str(text).ok()?;
        let own = OWNERS.iter().find_map(|owner| metadata.get(owner)).filter(|own| own.is_object())?;
        Some(Self::read(own))
    }

    /// Reads the object meant for this program.
    pub fn read(own: &Value) -> Self {
        let requires = own.get("requires").filter(|requires| requires.is_object());
        let installers = own["install"].as_array().into_iter().flatten();
        Self {
            always: own["always"].as_bool(),
            emoji: text(&own["emoji"]),
            homepage: text(&own["homepage"]),
            skill_key: text(&own["skillKey"]),
            primary_env: text(&own["primaryEnv"]),
            os: list(&own["os"]),
            requires: requires.map(|requires| SkillRequirements {
                bins: list(&requires["bins"]),
                any_bins: list(&requires["anyBins"]),
                env: list(&requires["env"]),
                config: list(&requires["config"]),
            }),
            install: installers.filter_map(SkillInstaller::read).collect(),
        }
    }
}

impl SkillInstaller {
    fn read(value: &Value) -> Option<Self> {
        const WHAT: [&str; 8] =
            ["formula", "package", "module", "url", "archive", "extract", "stripComponents", "targetDir"];
        let kind = text(&value["kind"]).or_else(|| text(&value["type"]))?.to_lowercase();
        let what = WHAT.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
        INSTALLERS.contains(&kind.as_str()).then(|| Self {
            id: text(&value["id"]),
            label: text(&value["label"]),
            bins: list(&value["bins"]),
            os: list(&value["os"]),
            what: what.collect(),
            kind,
        })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Reads a list of texts, or one text with commas.
fn list(value: &Value) -> Vec<String> {
    let clean = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match value {
        Value::String(text) => text.split(',').filter_map(clean).collect(),
        Value::Array(items) => items.iter().filter_map(|item| clean(item.as_str()?)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_be_texts_and_foreign_members_are_skipped() {
        let read = SkillMetadata::parse(
            "{openclaw: {os: 'linux, darwin', requires: {bins: ['a', 7, ' ']}, install: [{type: 'uv'}]}}",
        );
        let read = read.unwrap();
        assert_eq!(
            (read.os, read.requires.unwrap().bins),
            (vec!["linux".to_owned(), "darwin".into()], vec!["a".to_owned()])
        );
        assert_eq!(read.install[0].kind, "uv");
        assert_eq!(SkillMetadata::parse("{other: {always: true}}"), None);
        assert_eq!(SkillMetadata::parse(&"[".repeat(1_000_000)), None);
    }
}
