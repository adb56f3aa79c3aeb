//! Allow and deny lists, and how their entries match names.

use std::collections::BTreeMap;

use super::names::{canonical_name, group};

/// An allow list and a deny list.
///
/// An entry is a name, a pattern with `*`, a group (`group:fs`), a plugin id, or a series: `sessions:*` matches the tool `sessions`, each
/// tool whose name continues it (`sessions_list`), and the tools of `group:sessions`. `exec:*` includes `process`; `exec` does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    /// Allowed entries; `None` and an empty list allow everything.
    pub allow: Option<Vec<String>>,
    /// Denied entries; take precedence over `allow`.
    pub deny: Vec<String>,
}

impl ToolRules {
    /// Creates rules that allow these entries.
    pub fn allowing<S: Into<String>>(entries: impl IntoIterator<Item = S>) -> Self {
        Self { allow: Some(entries.into_iter().map(Into::into).collect()), deny: Vec::new() }
    }

    /// Adds entries to the deny list.
    #[must_use]
    pub fn denying<S: Into<String>>(mut self, entries: impl IntoIterator<Item = S>) -> Self {
        self.deny.extend(entries.into_iter().map(Into::into));
        self
    }

    /// Returns whether these rules alone allow a tool.
    pub fn permits(&self, tool: &str) -> bool {
        let (name, plugins) = (canonical_name(tool), PluginNames::default());
        if find_match(&self.deny, &name, &plugins).is_some() {
            return false;
        }
        let Some(allow) = self.allowed_entries() else { return true };
        let has = |name: &str| find_match(allow, name, &plugins).is_some();
        has(&name) || (name == "apply_patch" && has("exec") && find_match(&self.deny, "exec", &plugins).is_none())
    }

    /// Returns the allow list if it restricts anything.
    pub(super) fn allowed_entries(&self) -> Option<&[String]> {
        self.allow.as_deref().filter(|entries| entries.iter().any(|entry| !entry.trim().is_empty()))
    }
}

/// Canonical names of plugin tools, by plugin id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PluginNames(BTreeMap<String, Vec<String>>);

impl PluginNames {
    pub(super) fn add(&mut self, plugin: &str, tool: &str) {
        self.0.entry(plugin.trim().to_lowercase()).or_default().push(canonical_name(tool));
    }

    fn of(&self, plugin: &str) -> Option<&[String]> {
        self.0.get(plugin).map(Vec::as_slice)
    }

    /// Returns whether an entry matches only plugin tools.
    pub(super) fn is_plugin_entry(&self, entry: &str) -> bool {
        let entry = canonical_name(entry);
        entry == "group:plugins" || self.0.contains_key(&entry) || self.has_tool(&entry)
    }

    fn has_tool(&self, name: &str) -> bool {
        self.0.values().flatten().any(|tool| tool == name)
    }
}

/// Returns the first entry that matches a canonical name.
pub(super) fn find_match<'a>(entries: &'a [String], name: &str, plugins: &PluginNames) -> Option<&'a str> {
    entries.iter().map(String::as_str).find(|entry| matches(entry, name, plugins))
}

/// Returns whether an entry matches a canonical name.
pub(super) fn matches(entry: &str, name: &str, plugins: &PluginNames) -> bool {
    let entry = canonical_name(entry);
    if entry.is_empty() {
        return false;
    }
    if entry == "group:plugins" {
        return plugins.has_tool(name);
    }
    if let Some(tools) = entry.strip_prefix("group:").and_then(group) {
        return tools.contains(&name);
    }
    // A plugin may share its name with a tool of another source: then both match.
    if plugins.of(&entry).is_some_and(|tools| tools.iter().any(|tool| tool == name)) {
        return true;
    }
    if let Some(series) = entry.strip_suffix(":*").filter(|series| !series.contains('*')) {
        return is_in_series(&canonical_name(series), name);
    }
    glob(&entry, name)
}

fn is_in_series(series: &str, name: &str) -> bool {
    let continues = |rest: &str| rest.is_empty() || rest.starts_with([':', '.', '_']);
    name.strip_prefix(series).is_some_and(continues)
        || group(series).is_some_and(|tools| tools.contains(&name))
        || (series == "exec" && name == "process")
}

/// Returns whether an entry is a pattern that can match several names.
pub(super) fn is_pattern(entry: &str) -> bool {
    entry.contains('*') && entry.trim() != "*"
}

/// Returns whether a name matches a pattern in which `*` matches any text.
fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_names_aliases_patterns_groups_and_series() {
        let mut plugins = PluginNames::default();
        plugins.add("Lobster", "lobster_run");
        for (entry, yes, no) in [
            (" BASH ", &["exec"][..], &["process", "bash_history"][..]),
            ("apply-patch", &["apply_patch"], &["exec"]),
            ("*", &["read", "exec"], &[]),
            ("sessions_*", &["sessions_list"], &["session_status"]),
            ("sessions:*", &["sessions_list", "session_status", "sessions"], &["sessionsx"]),
            ("exec:*", &["exec", "process", "exec_remote", "exec.run", "exec:x"], &["executor", "apply_patch"]),
            ("bash:*", &["exec", "process"], &["read"]),
            ("fs:*", &["read", "apply_patch", "fs_move"], &["exec"]),
            ("*_s*t*", &["web_search_text"], &["web_fetch"]),
            ("group:memory", &["memory_get"], &["message"]),
            ("group:unknown", &[], &["read", "group:unknown2"]),
            ("group:plugins", &["lobster_run"], &["read"]),
            ("lobster", &["lobster_run", "lobster"], &["read"]),
            ("  ", &[], &["read", ""]),
            ("a.c", &["a.c"], &["abc"]),
        ] {
            assert!(yes.iter().all(|name| matches(entry, name, &plugins)), "{entry}: {yes:?}");
            assert!(!no.iter().any(|name| matches(entry, name, &plugins)), "{entry}: {no:?}");
        }
    }

    #[test]
    fn patches_are_allowed_with_exec_unless_exec_is_denied() {
        let rules = ToolRules::allowing(["exec"]);
        assert!(rules.permits("apply_patch") && rules.permits("bash") && !rules.permits("read"));
        assert!(!rules.denying(["exec:*"]).permits("apply_patch"));
        assert!(ToolRules::allowing([""; 0]).permits("anything"));
    }
}
