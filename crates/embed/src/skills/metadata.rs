//! What a skill says about its requirements: the JSON5 object `metadata` at the head of its file.

use serde_json::{Map, Value};

/// The members of `metadata` that programs like this one read; the first that is there counts.
const OWNERS: [&str; 2] = ["pinch", "openclaw"];
/// Opening brackets in `metadata`, at most: a file of strangers must not exhaust the stack.
const MAX_BRACKETS: usize = 256;
/// The ways of installing what a skill needs.
const INSTALLERS: [&str; 5] = ["brew", "node", "go", "uv", "download"];

/// What a skill says about itself beside its name and description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillMetadata {
    /// Whether it may be used whatever it requires.
    pub always: Option<bool>,
    /// A picture for lists.
    pub emoji: Option<String>,
    /// Where more about it can be read.
    pub homepage: Option<String>,
    /// The name of its settings in the configuration, if it is not the skill's.
    pub skill_key: Option<String>,
    /// The variable that holds the key of the service it uses.
    pub primary_env: Option<String>,
    /// The systems it works on: `linux`, `darwin`, `win32`; empty: all.
    pub os: Vec<String>,
    /// What must be there.
    pub requires: Option<SkillRequirements>,
    /// How what it needs is installed.
    pub install: Vec<SkillInstaller>,
}

/// What must be there for a skill to be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillRequirements {
    /// Programs, all of them.
    pub bins: Vec<String>,
    /// Programs, at least one of them.
    pub any_bins: Vec<String>,
    /// Variables.
    pub env: Vec<String>,
    /// Members of the configuration that are set.
    pub config: Vec<String>,
}

/// A way to install what a skill needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillInstaller {
    /// `brew`, `node`, `go`, `uv` or `download`.
    pub kind: String,
    /// Names it among the others.
    pub id: Option<String>,
    /// What people read.
    pub label: Option<String>,
    /// The programs that are there afterwards.
    pub bins: Vec<String>,
    /// The systems it works on; empty: all.
    pub os: Vec<String>,
    /// What it installs, by the members of its kind: `formula`, `package`, `module`, `url`, `archive`, `extract`, `stripComponents`, `targetDir`.
    pub what: Map<String, Value>,
}

impl SkillMetadata {
    /// Reads the text of `metadata`; `None` if it is not an object, or says nothing to this program.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count() > MAX_BRACKETS {
            return None;
        }
        let metadata: Value = json5::from_str(text).ok()?;
        let own = OWNERS.iter().find_map(|owner| metadata.get(owner)).filter(|own| own.is_object())?;
        Some(Self::read(own))
    }

    /// Reads the object.
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

/// A list of texts, or one text with commas.
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
    fn lists_may_be_texts_and_strangers_are_passed_over() {
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
