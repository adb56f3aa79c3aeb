//! `secrets`: where secrets are kept that profiles refer to, instead of containing them.

use std::collections::BTreeMap;
use std::time::Duration;

use pinch_coding_agent::auth::config_value::{self, ValueOrigin};
use pinch_coding_agent::document::Problem;
use pinch_stdx::secret::Secret;
use serde_json::Value;

use super::node::Node;

/// The provider of a reference that names none.
const DEFAULT_PROVIDER: &str = "default";

/// Where the text of a key or a token comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// It is this text. `${NAME}` stands for a variable.
    Text(Secret),
    /// The text is kept elsewhere.
    Reference(SecretRef),
    /// A value of `auth.json`, which can name variables and a command.
    Value(Secret),
}

impl KeySource {
    /// The variables that it stands for.
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

    /// Whether there is nothing.
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
    /// The kind of place.
    pub source: SecretPlace,
    /// Which of `secrets.providers` it is.
    pub provider: String,
    /// The name of the secret there.
    pub id: String,
}

/// Kinds of places that keep secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// The environment; the id is the name of a variable.
    Env,
    /// A file; the id is a JSON pointer, or `value` for all of it.
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

/// The places that references name.
#[derive(Clone, Debug, Default)]
pub struct SecretsConfig {
    /// `secrets.providers`, by name.
    pub providers: BTreeMap<String, SecretProvider>,
}

/// A place that keeps secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretProvider {
    /// The environment.
    Env {
        /// The only variables that may be read; `None`: all.
        allowed: Option<Vec<String>>,
    },
    /// A file.
    File {
        /// The file.
        path: String,
        /// Whether the file is one secret as a whole; otherwise it is JSON.
        is_single: bool,
    },
    /// A program. It reads `{"protocolVersion": 1, "provider", "ids"}` and prints `{"values": {id: secret}}`.
    Exec {
        /// The program, as an absolute path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets.
        env: Vec<(String, String)>,
        /// Variables of this process that it gets, by name.
        pass_env: Vec<String>,
        /// How long it may take.
        timeout: Duration,
        /// Whether it has to print JSON. Otherwise what it prints is the secret.
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
    /// How long a program may take that names no limit.
    const DEFAULT_TIMEOUT_MS: u64 = 10_000;
    node.object(problems)?;
    let text = |name: &str, problems: &mut Vec<Problem>| {
        let member = node.get(name);
        let text = member.text(problems).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if text.is_none() {
            problems.push(member.problem("is missing").remedy("Correct it; until then nothing is read from there"));
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
