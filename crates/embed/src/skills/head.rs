//! The front matter of a `SKILL.md`.

use std::collections::BTreeMap;

use pinch_stdx::text::to_line_feeds;
use serde_json::Value;

use super::metadata::SkillMetadata;

/// Members of the front matter, each as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillHead(BTreeMap<String, String>);

/// Who may invoke a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkillInvocation {
    /// Whether people may, by a command.
    pub by_user: bool,
    /// Whether the model may; the prompt then lists it.
    pub by_model: bool,
}

impl SkillHead {
    /// Parses the front matter of a file: the lines between a first line `---` and the next one. Without them it is empty. Front matter
    /// that is not YAML is parsed line by line, and a value that begins with `{` or `[` is kept verbatim, because it is JSON5.
    pub fn parse(text: &str) -> Self {
        let text = to_line_feeds(text.trim_start_matches('\u{feff}'));
        let Some(block) = text.strip_prefix("---").and_then(|rest| Some(&rest[..rest.find("\n---")?])) else {
            return Self::default();
        };
        let lines = by_line(block);
        let Some(mut head) = as_yaml(block) else { return Self(lines) };
        head.extend(lines.into_iter().filter(|(_, value)| value.starts_with(['{', '['])));
        Self(head)
    }

    /// Returns a member; `None` if it is blank.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns all members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns its declared requirements, if any.
    pub fn metadata(&self) -> Option<SkillMetadata> {
        self.get("metadata").and_then(SkillMetadata::parse)
    }

    /// Returns who may invoke the skill; by default everybody.
    pub fn invocation(&self) -> SkillInvocation {
        SkillInvocation {
            by_user: self.flag("user-invocable").unwrap_or(true),
            by_model: !self.flag("disable-model-invocation").unwrap_or(false),
        }
    }

    /// Returns the tool that the skill's command calls; `None` if the model reads the skill instead.
    pub fn called_tool(&self) -> Option<&str> {
        let is_called = self.either("command-dispatch").is_some_and(|kind| kind.eq_ignore_ascii_case("tool"));
        // There is no other form of arguments.
        let is_raw = self.either("command-arg-mode").is_none_or(|mode| mode.eq_ignore_ascii_case("raw"));
        self.either("command-tool").filter(|_| is_called && is_raw)
    }

    /// Returns a member, whose name may be written with underscores.
    fn either(&self, name: &str) -> Option<&str> {
        self.get(name).or_else(|| self.get(&name.replace('-', "_")))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        let value = self.either(name)?;
        match value.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }
}

/// Parses a YAML block into texts; `None` if it is not a map.
fn as_yaml(block: &str) -> Option<BTreeMap<String, String>> {
    // `no` and `off` are words here, and are kept verbatim.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let members = match serde_saphyr::from_str_with_options::<Value>(block, options) {
        Ok(Value::Object(members)) => members,
        _ => return None,
    };
    let text = |value: Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.trim().to_owned()),
        other => Some(other.to_string()),
    };
    Some(members.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect())
}

/// Parses a block line by line: `name: value`, or the indented lines below `name:`.
fn by_line(block: &str) -> BTreeMap<String, String> {
    let mut members = BTreeMap::new();
    let mut lines = block.split('\n').peekable();
    while let Some(line) = lines.next() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(is_name) {
            continue;
        }
        let mut value = unquoted(value.trim()).to_owned();
        if value.is_empty() {
            let mut below = Vec::new();
            while let Some(next) = lines.next_if(|next| next.is_empty() || next.starts_with([' ', '\t'])) {
                below.push(next);
            }
            below.join("\n").trim().clone_into(&mut value);
        }
        if !value.is_empty() {
            members.insert(name.to_owned(), value);
        }
    }
    members
}

fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_lines_and_json_are_read() {
        let head = SkillHead::parse("---\nname: a\nn: 7\nflag: no\nempty:\nobject: {a: 1}\n---\nbody: x\n");
        let members: Vec<_> = head.iter().collect();
        assert_eq!(members, [("flag", "no"), ("n", "7"), ("name", "a"), ("object", "{a: 1}")]);
        let head = SkillHead::parse("---\r\nname: 'a b'\r\ndescription: x: y: z\r\nuser_invocable: off\r\n---\r\n");
        assert_eq!((head.get("name"), head.get("description")), (Some("a b"), Some("x: y: z")));
        assert_eq!(head.invocation(), SkillInvocation { by_user: false, by_model: true });
        assert_eq!(SkillHead::parse("text\n---\nname: a\n---\n"), SkillHead::default());
    }
}
