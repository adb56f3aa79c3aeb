//! Deciding about a list of tools, and explaining the decisions.

use std::fmt;

use super::names::{canonical_name, is_owner_only};
use super::rules::{PluginNames, ToolRules, find_match, is_pattern, matches};

/// A tool that could be offered to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// The plugin that provides it.
    pub plugin: Option<String>,
    /// Whether it is reserved for the owner of the agent.
    pub is_owner_only: bool,
    /// Whether it is allowed unless a deny list matches, because it only gives access to tools that have rules of their own.
    pub is_implied: bool,
}

impl OfferedTool {
    /// Creates a tool for everybody, unless its name is reserved for owners.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { is_owner_only: is_owner_only(&canonical_name(&name)), name, plugin: None, is_implied: false }
    }

    /// Sets the plugin that provides it.
    #[must_use]
    pub fn plugin(mut self, id: impl Into<String>) -> Self {
        self.plugin = Some(id.into());
        self
    }

    /// Allows it unless a deny list matches.
    #[must_use]
    pub fn implied(mut self) -> Self {
        self.is_implied = true;
        self
    }
}

/// How unknown entries of an allow list are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownEntries {
    /// They allow nothing, and neither does a list consisting only of them.
    Closed,
    /// A list without an entry for an existing tool is dropped, as in OpenClaw.
    Dropped,
    /// The list is not checked, but someone wrote it.
    Written,
    /// The list is not checked: it is built in or was checked elsewhere.
    Unchecked,
}

/// One step of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicyStep {
    pub(super) label: String,
    pub(super) rules: ToolRules,
    /// Number of entries at the start of the allow list that come from a built-in profile.
    pub(super) n_built_in: usize,
    pub(super) unknown: UnknownEntries,
}

/// Entries of an allow list that match no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWarning {
    /// Path of the list, e.g. `tools.allow`.
    pub label: String,
    /// The entries.
    pub unknown: Vec<String>,
    /// Whether the list was ignored; only with `tools.strictAllow: false`.
    pub stripped: bool,
}

impl fmt::Display for PolicyWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.unknown.join(", ");
        match self.stripped {
            true => write!(f, "{}: no tool matches {entries}; the list is ignored", self.label),
            false => write!(f, "{}: no tool matches {entries}", self.label),
        }
    }
}

/// Why a tool was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// The tool is reserved for the owner, and the sender is someone else.
    OwnerOnly,
    /// An entry of a deny list matches.
    Denied {
        /// The entry.
        entry: String,
    },
    /// No entry of an allow list matches.
    NotAllowed,
}

/// A policy's decision about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The tool, as named by the caller.
    pub tool: String,
    /// The step that removed it, and why; `None` if it is allowed.
    pub removed: Option<(String, RemovalReason)>,
    /// Whether the tool exists.
    pub is_offered: bool,
}

impl Explanation {
    /// Returns the rule that removed the tool, such as `tools.deny` or `agents.main.tools.allow`.
    pub fn rule(&self) -> Option<String> {
        let (label, reason) = self.removed.as_ref()?;
        Some(match (reason, label.strip_suffix(".allow")) {
            (RemovalReason::Denied { .. }, Some(level)) => format!("{level}.deny"),
            _ => label.clone(),
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = &self.tool;
        match &self.removed {
            None if !self.is_offered => write!(f, "{tool} would be allowed, but does not exist"),
            None => write!(f, "{tool} is allowed"),
            Some((_, RemovalReason::OwnerOnly)) => {
                write!(f, "{tool} is reserved for the owner of the agent, and the sender is someone else")
            }
            Some((_, RemovalReason::Denied { entry })) => {
                write!(f, "{tool} is denied by {} ({entry})", self.rule().unwrap_or_default())
            }
            Some((label, RemovalReason::NotAllowed)) => write!(f, "{tool} is not in {label}"),
        }
    }
}

/// Whether a message comes from the owner of the agent, and which tools the owner alone has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolicySender {
    pub(super) is_owner: bool,
    /// Canonical names of reserved tools, besides those that say so themselves.
    pub(super) reserved: Vec<String>,
}

impl PolicySender {
    fn may_have(&self, tool: &OfferedTool) -> bool {
        self.is_owner || !(tool.is_owner_only || self.reserved.contains(&canonical_name(&tool.name)))
    }
}

/// A policy's decisions about a list of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    sender: PolicySender,
    steps: Vec<PolicyStep>,
    plugins: PluginNames,
    verdicts: Vec<(OfferedTool, Option<(String, RemovalReason)>)>,
    warnings: Vec<PolicyWarning>,
}

/// Label of the step before all lists.
const OWNER_STEP: &str = "owner";

impl PolicyDecision {
    pub(super) fn new(sender: &PolicySender, steps: &[PolicyStep], tools: &[OfferedTool]) -> Self {
        let mut plugins = PluginNames::default();
        for tool in tools {
            if let Some(plugin) = &tool.plugin {
                plugins.add(plugin, &tool.name);
            }
        }
        let is_seen = |tool: &&OfferedTool| sender.may_have(tool);
        let core: Vec<String> = tools
            .iter()
            .filter(is_seen)
            .filter(|tool| tool.plugin.is_none())
            .map(|tool| canonical_name(&tool.name))
            .collect();
        let sender = sender.clone();
        let mut decision = Self { sender, steps: Vec::new(), plugins, verdicts: Vec::new(), warnings: Vec::new() };
        for step in steps {
            let step = decision.checked(step, &core);
            decision.steps.push(step);
        }
        decision.verdicts = tools.iter().map(|tool| (tool.clone(), decision.removal(tool))).collect();
        decision
    }

    /// Reports unknown entries of a step's allow list, and drops a list that contains only plugin entries.
    fn checked(&mut self, step: &PolicyStep, core: &[String]) -> PolicyStep {
        let mut step = step.clone();
        let Some(allow) = step
            .rules
            .allowed_entries()
            .filter(|_| matches!(step.unknown, UnknownEntries::Closed | UnknownEntries::Dropped))
        else {
            return step;
        };
        let is_strict = step.unknown == UnknownEntries::Closed;
        let is_core = |entry: &String| {
            let names_pattern = is_pattern(entry) && !is_strict;
            !names_pattern
                && (entry.trim() == "*" || core.iter().any(|name| matches(entry, name, &PluginNames::default())))
        };
        let is_unknown = |entry: &&String| !is_core(entry) && !self.plugins.is_plugin_entry(entry);
        let mut unknown: Vec<String> = Vec::new();
        for entry in allow.iter().skip(step.n_built_in).filter(is_unknown).map(|entry| canonical_name(entry)) {
            if !unknown.contains(&entry) {
                unknown.push(entry);
            }
        }
        let has_core = allow.iter().any(is_core);
        let only_plugins = allow.iter().all(|entry| self.plugins.is_plugin_entry(entry));
        let stripped = !has_core && (only_plugins || !is_strict);
        if stripped {
            step.rules.allow = None;
        }
        if !unknown.is_empty() {
            self.warnings.push(PolicyWarning { label: step.label.clone(), unknown, stripped });
        }
        step
    }

    /// Returns the step that removes a tool, and why.
    fn removal(&self, tool: &OfferedTool) -> Option<(String, RemovalReason)> {
        if !self.sender.may_have(tool) {
            return Some((OWNER_STEP.to_owned(), RemovalReason::OwnerOnly));
        }
        let name = canonical_name(&tool.name);
        // Patches are as powerful as commands: if commands are allowed, so are patches, unless commands are denied anywhere.
        let exec_is_denied =
            self.steps.iter().any(|step| find_match(&step.rules.deny, "exec", &self.plugins).is_some());
        self.steps.iter().find_map(|step| {
            let removed = |reason| Some((step.label.clone(), reason));
            if let Some(entry) = find_match(&step.rules.deny, &name, &self.plugins) {
                return removed(RemovalReason::Denied { entry: entry.to_owned() });
            }
            let allow = step.rules.allowed_entries().filter(|_| !tool.is_implied)?;
            let has = |name: &str| find_match(allow, name, &self.plugins).is_some();
            let through_exec = name == "apply_patch" && !exec_is_denied && has("exec");
            if has(&name) || through_exec { None } else { removed(RemovalReason::NotAllowed) }
        })
    }

    /// Returns the remaining tools, in order.
    pub fn allowed(&self) -> Vec<&str> {
        self.verdicts.iter().filter(|(_, removed)| removed.is_none()).map(|(tool, _)| tool.name.as_str()).collect()
    }

    /// Returns whether a tool with this name remains.
    pub fn allows(&self, tool: &str) -> bool {
        let name = canonical_name(tool);
        self.verdicts.iter().any(|(tool, removed)| removed.is_none() && canonical_name(&tool.name) == name)
    }

    /// Returns the allow list entries that match no tool, in the order of the steps.
    pub fn warnings(&self) -> &[PolicyWarning] {
        &self.warnings
    }

    /// Returns whether a configured allow list left no tools, so that a run should not start. Profiles and built-in lists alone do not
    /// count.
    pub fn is_emptied(&self) -> bool {
        let is_written = |step: &PolicyStep| {
            step.unknown != UnknownEntries::Unchecked
                && step.rules.allowed_entries().is_some_and(|allow| allow.len() > step.n_built_in)
        };
        let mut verdicts = self.verdicts.iter().filter(|(tool, _)| !tool.is_implied).peekable();
        self.steps.iter().any(is_written) && verdicts.peek().is_some() && verdicts.all(|(_, removed)| removed.is_some())
    }

    /// Explains the decision about each tool, in order.
    pub fn explanations(&self) -> impl Iterator<Item = Explanation> {
        self.verdicts.iter().map(|(tool, removed)| Explanation {
            tool: tool.name.clone(),
            removed: removed.clone(),
            is_offered: true,
        })
    }

    /// Explains the decision about a tool, which need not exist.
    pub fn explain(&self, tool: &str) -> Explanation {
        let name = canonical_name(tool);
        let offered = self.verdicts.iter().find(|(offered, _)| canonical_name(&offered.name) == name);
        let removed = match offered {
            Some((_, removed)) => removed.clone(),
            None => self.removal(&OfferedTool::new(tool)),
        };
        Explanation { tool: tool.to_owned(), removed, is_offered: offered.is_some() }
    }
}
