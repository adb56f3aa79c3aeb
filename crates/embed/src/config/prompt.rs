//! What system prompts contain: `agents.defaults`, and how owners are named (`commands`).

use hmac::{Hmac, KeyInit as _, Mac as _};
use pinch_coding_agent::document::Problem;
use pinch_stdx::secret::Secret;
use sha2::{Digest as _, Sha256};

use super::node::Node;

/// Contents of the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptConfig {
    /// How much of the workspace files it includes (`bootstrapMaxChars`, `bootstrapTotalMaxChars`).
    pub files: BootstrapLimits,
    /// Whether it leaves the workspace files out (`contextInjection: "never"`).
    pub omits_files: bool,
    /// Whether it names the files that were shortened (`bootstrapPromptTruncationWarning`).
    pub truncation_warning: TruncationWarning,
    /// The user's time zone (`userTimezone`).
    pub time_zone: Option<String>,
    /// Repository directory, instead of the one around the workspace (`repoRoot`).
    pub repo_root: Option<String>,
    /// Prompt that wakes an agent up (`heartbeat.prompt`).
    pub heartbeat: Option<String>,
}

/// How much of the workspace files a system prompt includes, in UTF-16 code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootstrapLimits {
    /// Limit per file.
    pub file: usize,
    /// Limit for all files together.
    pub total: usize,
}

impl Default for BootstrapLimits {
    fn default() -> Self {
        Self { file: 20_000, total: 60_000 }
    }
}

/// Whether a system prompt names the files that were shortened. It does so in each turn: otherwise the cached prompt would change after the
/// first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TruncationWarning {
    /// It names none.
    Off,
    /// The same as [`TruncationWarning::Always`].
    #[default]
    Once,
    /// It names them.
    Always,
}

impl TruncationWarning {
    const WORDS: [&str; 3] = ["off", "once", "always"];

    fn parse(word: &str) -> Option<Self> {
        [Self::Off, Self::Once, Self::Always].into_iter().find(|warning| warning.as_str() == word)
    }

    /// Returns the value used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Once => "once",
            Self::Always => "always",
        }
    }
}

impl PromptConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let default = BootstrapLimits::default();
        let mut chars = |name: &str, or: usize| {
            let number = node.get(name).number(problems).filter(|n| n.is_finite() && *n >= 1.0);
            number.map_or(or, |n| n as usize)
        };
        let files = BootstrapLimits {
            file: chars("bootstrapMaxChars", default.file),
            total: chars("bootstrapTotalMaxChars", default.total),
        };
        let warning = node.get("bootstrapPromptTruncationWarning");
        let injection = node.get("contextInjection");
        let omits = |word: &str| match word {
            "always" => Some(false),
            "never" => Some(true),
            _ => None,
        };
        Self {
            files,
            omits_files: injection.word(problems, &["always", "never"], omits).unwrap_or(false),
            truncation_warning: warning
                .word(problems, &TruncationWarning::WORDS, TruncationWarning::parse)
                .unwrap_or_default(),
            time_zone: node.get("userTimezone").text(problems),
            repo_root: node.get("repoRoot").text(problems),
            heartbeat: node.get("heartbeat").get("prompt").text(problems),
        }
    }
}

/// How owners are named in system prompts (`commands.ownerDisplay`).
#[derive(Clone, Debug, Default)]
pub enum OwnerDisplay {
    /// By number or id.
    #[default]
    Raw,
    /// By the first 12 digits of a hash: HMAC-SHA-256 with `commands.ownerDisplaySecret`, or SHA-256 without a secret.
    Hash(Option<Secret>),
}

impl OwnerDisplay {
    pub(super) fn read(commands: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let secret = commands.get("ownerDisplaySecret").text(problems).filter(|secret| !secret.trim().is_empty());
        let is_hash = |word: &str| match word {
            "raw" => Some(false),
            "hash" => Some(true),
            _ => None,
        };
        match commands.get("ownerDisplay").word(problems, &["raw", "hash"], is_hash) {
            Some(true) => Self::Hash(secret.map(Secret::from)),
            _ => Self::Raw,
        }
    }

    /// Returns the name of an owner in a prompt.
    pub fn shown(&self, owner: &str) -> String {
        /// Bytes of a hash that are shown, as two digits each.
        const SHOWN: usize = 6;
        let owner = owner.trim();
        let hash: Vec<u8> = match self {
            _ if owner.is_empty() => return String::new(),
            Self::Raw => return owner.to_owned(),
            Self::Hash(None) => Sha256::digest(owner.as_bytes()).to_vec(),
            Self::Hash(Some(secret)) => match Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()) {
                Ok(mac) => mac.chain_update(owner.as_bytes()).finalize().into_bytes().to_vec(),
                // Keys of any length are valid.
                Err(_) => return String::new(),
            },
        };
        hash.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect()
    }
}
