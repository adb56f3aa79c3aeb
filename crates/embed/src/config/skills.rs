//! `skills`: which skills agents may use, and the environment of a skill's commands.

use std::collections::BTreeMap;

use pinch_coding_agent::document::Problem;
use pinch_stdx::secret::Secret;

use super::node::Node;

/// `skills`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SkillsConfig {
    /// Settings of individual skills (`entries`), by the skill's key, or by its name if it has none.
    pub entries: BTreeMap<String, SkillEntry>,
    /// The only bundled skills that may be used (`allowBundled`); empty: all.
    pub allow_bundled: Vec<String>,
    /// Further directories with skills (`load.extraDirs`).
    pub extra_dirs: Vec<String>,
    /// Directories to which links in skill directories may lead (`load.allowSymlinkTargets`).
    pub link_targets: Vec<String>,
    /// How much is loaded and listed (`limits`).
    pub limits: SkillLimits,
    /// The package manager for Node.js packages (`install.nodeManager`).
    pub node_manager: NodeManager,
    /// Whether Homebrew is not preferred over other package managers (`install.preferBrew: false`).
    pub avoids_brew: bool,
}

/// Settings of one skill.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SkillEntry {
    /// Whether it may be used; default: yes.
    pub enabled: Option<bool>,
    /// API key of the service it uses: the value of its main variable (`apiKey`).
    pub api_key: Option<Secret>,
    /// Variables for commands while it may be used.
    pub env: BTreeMap<String, String>,
}

/// The package manager for Node.js packages (`install.nodeManager`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeManager {
    /// npm.
    #[default]
    Npm,
    /// pnpm.
    Pnpm,
    /// Yarn 1.
    Yarn,
    /// Bun.
    Bun,
}

impl NodeManager {
    const WORDS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

    fn parse(word: &str) -> Option<Self> {
        [Self::Npm, Self::Pnpm, Self::Yarn, Self::Bun].into_iter().find(|manager| manager.as_str() == word)
    }

    /// Returns the name of its program.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }
}

/// How many skills are loaded and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillLimits {
    /// Number of skills in the system prompt (`maxSkillsInPrompt`).
    pub in_prompt: usize,
    /// Characters in that list (`maxSkillsPromptChars`).
    pub prompt_chars: usize,
    /// Directories scanned per root (`maxCandidatesPerRoot`).
    pub candidates: usize,
    /// Skills loaded per source (`maxSkillsLoadedPerSource`).
    pub per_source: usize,
    /// Size of a `SKILL.md`, in bytes (`maxSkillFileBytes`).
    pub file_bytes: u64,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self { in_prompt: 150, prompt_chars: 18_000, candidates: 300, per_source: 200, file_bytes: 256_000 }
    }
}

impl SkillsConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let install = node.get("install");
        let entries = node.get("entries").members(problems).into_iter();
        let entries = entries.map(|(name, entry)| (name.to_owned(), SkillEntry::read(&entry, problems))).collect();
        Self {
            entries,
            allow_bundled: node.get("allowBundled").texts(problems).unwrap_or_default(),
            extra_dirs: node.get("load").get("extraDirs").texts(problems).unwrap_or_default(),
            link_targets: node.get("load").get("allowSymlinkTargets").texts(problems).unwrap_or_default(),
            limits: SkillLimits::read(&node.get("limits"), problems),
            node_manager: install
                .get("nodeManager")
                .word(problems, &NodeManager::WORDS, NodeManager::parse)
                .unwrap_or_default(),
            avoids_brew: install.get("preferBrew").flag(problems) == Some(false),
        }
    }
}

impl SkillEntry {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        // Read by the skill itself.
        node.get("config").value();
        let env = node.get("env").members(problems).into_iter();
        let env = env.filter_map(|(name, value)| Some((name.to_owned(), value.text(problems)?))).collect();
        let api_key = node.get("apiKey").text(problems).filter(|key| !key.trim().is_empty());
        Self { enabled: node.get("enabled").flag(problems), api_key: api_key.map(Secret::from), env }
    }
}

impl SkillLimits {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let default = Self::default();
        let mut count = |name: &str| node.get(name).count(problems).filter(|n| *n > 0);
        let number = |n: Option<u64>, or: usize| n.map_or(or, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Self {
            in_prompt: number(count("maxSkillsInPrompt"), default.in_prompt),
            prompt_chars: number(count("maxSkillsPromptChars"), default.prompt_chars),
            candidates: number(count("maxCandidatesPerRoot"), default.candidates),
            per_source: number(count("maxSkillsLoadedPerSource"), default.per_source),
            file_bytes: count("maxSkillFileBytes").unwrap_or(default.file_bytes),
        }
    }
}
