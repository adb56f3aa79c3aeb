//! `secrets`: where the secrets that profiles refer to are stored.

use std::collections::BTreeMap;
use std::time::Duration;

use pinch_coding_agent::auth::config_value::{self, ValueOrigin};
use pinch_coding_agent::document::Problem;
use pinch_stdx::secret::Secret;
use serde_json::Value;

use super::node::Node;

/// Provider of a reference that names none.
const DEFAULT_PROVIDER: &str = "default";

/// Source of a key or a token.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// This text. `${NAME}` stands for a variable.
    Text(Secret),
    /// A reference to a secret stored elsewhere.
    Reference(SecretRef),
    /// A value of `auth.json`, which may refer to variables and a command.
    Value(Secret),
}

impl KeySource {
    /// Returns the variables that it refers to.
    pub(crate) fn variables(&self) -> Vec<String> {
        match self {
            Self::Text(text) | Self::Value(text) => match config_value::origin(text.reveal().trim()) {
                ValueOrigin::Variables(names) => names,
                ValueOrigin::Literal | ValueOrigin::Command => Vec::new(),
            },
            Self::Reference(SecretRef { source: SecretPlace::Env, id, .. }) => vec![id.clone()],
            Self::Reference(_) => Vec::new(),
        }
    }

    /// Returns whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Value(text) => text.is_empty(),
            Self::Reference(_) => false,
        }
    }
}

/// A reference to a secret: `{source, provider, id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// Kind of secret store.
    pub source: SecretPlace,
    /// Key of the store in `secrets.providers`.
    pub provider: String,
    /// Name of the secret in the store.
    pub id: String,
}

/// Kinds of secret stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// The environment; the id is a variable name.
    Env,
    /// A file; the id is a JSON pointer, or `value` for the whole file.
    File,
    /// A program that prints secrets.
    Exec,
}

impl SecretPlace {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "env" => Self::Env,
            "file" => Self::File,
            "exec" => Self::Exec,
            _ => return None,
        })
    }
}

impl SecretRef {
    /// Reads a reference; `None` if it is incomplete.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::trim).filter(|text| !text.is_empty());
        Some(Self {
            source: SecretPlace::parse(text("source")?)?,
            provider: text("provider").unwrap_or(DEFAULT_PROVIDER).to_owned(),
            id: text("id")?.to_owned(),
        })
    }

    pub(super) fn read_node(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        let read = node.value().and_then(Self::read);
        if read.is_none() {
            problems.push(node.problem("is not a reference to a secret").remedy(
                "Write {source: \"env\", id: \"NAME\"}, or a source \"file\" or \"exec\" with provider and id",
            ));
        }
        read
    }
}

/// The secret stores that references may name.
#[derive(Clone, Debug, Default)]
pub struct SecretsConfig {
    /// `secrets.providers`, by name.
    pub providers: BTreeMap<String, SecretProvider>,
}

/// A secret store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretProvider {
    /// The environment.
    Env {
        /// The only variables that may be read; `None`: all.
        allowed: Option<Vec<String>>,
    },
    /// A file.
    File {
        /// Path of the file.
        path: String,
        /// Whether the whole file is one secret; otherwise it is JSON.
        is_single: bool,
    },
    /// A program. It reads `{"protocolVersion": 1, "provider", "ids"}` and prints `{"values": {id: secret}}`.
    Exec {
        /// The program, as an absolute path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables to set.
        env: Vec<(String, String)>,
        /// Names of variables of this process to pass on.
        pass_env: Vec<String>,
        /// Time limit.
        timeout: Duration,
        /// Whether it must print JSON. Otherwise its output is the secret.
        json_only: bool,
    },
}

impl SecretsConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let mut providers = BTreeMap::new();
        for (name, entry) in node.get("providers").members(problems) {
            if let Some(provider) = read_provider(&entry, problems) {
                providers.insert(name.to_owned(), provider);
            }
        }
        Self { providers }
    }
}

fn read_provider(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<SecretProvider> {
    /// Time limit of a program if none is configured.
    const DEFAULT_TIMEOUT_MS: u64 = 10_000;
    node.object(problems)?;
    let text = |name: &str, problems: &mut Vec<Problem>| {
        let member = node.get(name);
        let text = member.text(problems).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if text.is_none() {
            problems.push(member.problem("is missing").remedy("Correct it; until then it is not used"));
        }
        text
    };
    let source = node.get("source").word(problems, &["env", "file", "exec"], SecretPlace::parse)?;
    Some(match source {
        SecretPlace::Env => SecretProvider::Env { allowed: node.get("allowlist").texts(problems) },
        SecretPlace::File => {
            let is_single = node.get("mode").word(problems, &["json", "singleValue"], |word| match word {
                "json" => Some(false),
                "singleValue" => Some(true),
                _ => None,
            });
            SecretProvider::File { path: text("path", problems)?, is_single: is_single.unwrap_or(false) }
        }
        SecretPlace::Exec => {
            let members = node.get("env").members(problems).into_iter();
            let env = members.filter_map(|(name, value)| Some((name.to_owned(), value.text(problems)?))).collect();
            let timeout = node.get("timeoutMs").count(problems).unwrap_or(DEFAULT_TIMEOUT_MS);
            SecretProvider::Exec {
                command: text("command", problems)?,
                args: node.get("args").texts(problems).unwrap_or_default(),
                env,
                pass_env: node.get("passEnv").texts(problems).unwrap_or_default(),
                timeout: Duration::from_millis(timeout),
                json_only: node.get("jsonOnly").flag(problems).unwrap_or(true),
            }
        }
    })
}
