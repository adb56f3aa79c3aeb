//! API keys in the environment: which variables belong to which provider.

use std::path::{Path, PathBuf};

use pinch_stdx::host::Env;
use pinch_stdx::secret::Secret;

use crate::catalog::canonical_provider;

/// Placeholder key for providers whose own credential chain is used. It is never sent.
pub const AMBIENT: &str = "<authenticated>";

/// Placeholder key in older settings of Google Cloud.
const VERTEX_PLACEHOLDER: &str = "gcp-vertex-credentials";

/// Returns whether a key is empty or a placeholder such as [`AMBIENT`]. Such a key is never sent.
pub fn is_placeholder(key: &Secret) -> bool {
    let key = key.reveal().trim();
    key.is_empty() || (key.starts_with('<') && key.ends_with('>')) || key == VERTEX_PLACEHOLDER
}

/// Variables by provider, in order of preference.
const VARIABLES: &[(&str, &[&str])] = &[
    ("ant-ling", &["ANT_LING_API_KEY"]),
    ("anthropic", &["ANTHROPIC_OAUTH_TOKEN", ANTHROPIC_BEARER, "ANTHROPIC_API_KEY"]),
    ("azure", &["AZURE_OPENAI_API_KEY"]),
    ("baseten", &["BASETEN_API_KEY"]),
    ("cerebras", &["CEREBRAS_API_KEY"]),
    ("cloudflare-ai-gateway", &["CLOUDFLARE_API_KEY"]),
    ("cloudflare-workers-ai", &["CLOUDFLARE_API_KEY"]),
    ("deepseek", &["DEEPSEEK_API_KEY"]),
    ("fireworks", &["FIREWORKS_API_KEY"]),
    ("github-copilot", &["COPILOT_GITHUB_TOKEN"]),
    ("google", &["GEMINI_API_KEY"]),
    ("google-vertex", &["GOOGLE_CLOUD_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("huggingface", &["HF_TOKEN"]),
    ("kimi-coding", &["KIMI_API_KEY"]),
    ("meta", &["META_API_KEY"]),
    ("minimax", &["MINIMAX_API_KEY"]),
    ("minimax-cn", &["MINIMAX_CN_API_KEY"]),
    ("mistral", &["MISTRAL_API_KEY"]),
    ("moonshotai", &["MOONSHOT_API_KEY"]),
    ("moonshotai-cn", &["MOONSHOT_API_KEY"]),
    ("nvidia", &["NVIDIA_API_KEY"]),
    ("openai", &["OPENAI_API_KEY"]),
    ("opencode", &["OPENCODE_API_KEY"]),
    ("opencode-go", &["OPENCODE_API_KEY"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("qwen-token-plan", &["QWEN_TOKEN_PLAN_API_KEY"]),
    ("qwen-token-plan-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ("qwen-token-plan-individual", &["QWEN_TOKEN_PLAN_API_KEY"]),
    ("qwen-token-plan-individual-cn", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    ("together", &["TOGETHER_API_KEY"]),
    ("vercel-ai-gateway", &["AI_GATEWAY_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
    ("xiaomi", &["XIAOMI_API_KEY"]),
    ("xiaomi-token-plan-ams", &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]),
    ("xiaomi-token-plan-cn", &["XIAOMI_TOKEN_PLAN_CN_API_KEY"]),
    ("xiaomi-token-plan-sgp", &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]),
    ("zai", &["ZAI_API_KEY"]),
    ("zai-coding-cn", &["ZAI_CODING_CN_API_KEY"]),
];

/// A variable that holds a bearer token, not a key.
const ANTHROPIC_BEARER: &str = "ANTHROPIC_AUTH_TOKEN";

/// Each of these alone indicates AWS credentials; the pair of access keys does too.
const AWS_SIGNS: &[&str] = &[
    "AWS_PROFILE",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/// Further variables that contain secrets.
const SECRETS: &[&str] = &["AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// Returns all variables that hold keys and other secrets, of any provider.
pub fn secret_variables() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().flat_map(|(_, variables)| *variables).chain(SECRETS).copied()
}

/// A key found in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvKey {
    /// The variable; `None` for the provider's own credential chain.
    pub variable: Option<&'static str>,
    /// The key, or [`AMBIENT`].
    pub key: Secret,
    /// Whether the variable holds bearer tokens, whatever the value looks like.
    pub is_bearer: bool,
}

/// Returns all variables that may hold a provider's key, in order of preference.
pub fn variables(provider: &str) -> &'static [&'static str] {
    let provider = canonical_provider(provider);
    VARIABLES.iter().find(|(name, _)| *name == provider).map_or(&[], |(_, variables)| variables)
}

/// Returns whether a variable is known to hold a credential of a provider, or of the cloud that serves one.
pub fn is_credential(variable: &str) -> bool {
    const OF_CLOUDS: [&str; 4] =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"];
    OF_CLOUDS.contains(&variable) || VARIABLES.iter().any(|(_, variables)| variables.contains(&variable))
}

/// Returns the variables of a provider that are set; empty ones count as not set.
pub fn found_vars(provider: &str, env: &Env) -> Vec<&'static str> {
    variables(provider).iter().copied().filter(|name| env.non_empty(name).is_some()).collect()
}

/// Looks up a provider's key in the environment. Values are used unchanged.
pub fn look_up(provider: &str, env: &Env) -> Option<EnvKey> {
    if let Some(variable) = found_vars(provider, env).first().copied() {
        let key = Secret::new(env.non_empty(variable)?);
        return Some(EnvKey { variable: Some(variable), key, is_bearer: variable == ANTHROPIC_BEARER });
    }
    let is_ambient = provider == "amazon-bedrock" && has_aws_credentials(env);
    is_ambient.then(|| EnvKey { variable: None, key: AMBIENT.into(), is_bearer: false })
}

/// Returns a provider's key in the environment, or [`AMBIENT`] if the environment has other credentials for it.
pub fn api_key(provider: &str, env: &Env) -> Option<Secret> {
    look_up(provider, env).map(|found| found.key)
}

fn has_aws_credentials(env: &Env) -> bool {
    let has = |name: &str| env.non_empty(name).is_some();
    AWS_SIGNS.iter().any(|name| has(name))
        || (has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY"))
        || env.get("AWS_BEDROCK_SKIP_AUTH") == Some("1")
}

/// Returns files whose existence indicates that a provider has other credentials on this machine. The caller checks whether they exist:
/// this module reads no files.
pub fn credentials_files(provider: &str, env: &Env, home: Option<&Path>) -> Vec<PathBuf> {
    match provider {
        "google-vertex" => google_credentials_file(env, home).into_iter().collect(),
        "amazon-bedrock" => {
            let file = |variable: &str, name: &str| {
                env.non_empty(variable).map(PathBuf::from).or_else(|| Some(home?.join(".aws").join(name)))
            };
            let files = [file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), file("AWS_CONFIG_FILE", "config")];
            files.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns how to supply a key for a provider, as the start of a sentence, or `None` if there is no way other than passing one.
pub fn remedy(provider: &str) -> Option<String> {
    let variables = variables(provider);
    // Some providers accept other tokens first; most people have a key.
    let usual = variables.iter().find(|name| name.ends_with("_API_KEY")).or(variables.first());
    match provider {
        "amazon-bedrock" => Some(
            "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK".to_owned(),
        ),
        "google-vertex" => Some(
            "Set GOOGLE_CLOUD_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION after \
             `gcloud auth application-default login`"
                .to_owned(),
        ),
        "openai-codex" => {
            Some("Sign in with a ChatGPT subscription (pi's /login writes the same auth.json)".to_owned())
        }
        _ => usual.map(|name| format!("Set {name}")),
    }
}

/// Returns the path of Google's application default credentials, if project and location are set as well. The caller checks whether it
/// exists: nothing is read here.
pub fn google_credentials_file(env: &Env, home: Option<&Path>) -> Option<PathBuf> {
    env.non_empty("GOOGLE_CLOUD_PROJECT").or_else(|| env.non_empty("GCLOUD_PROJECT"))?;
    env.non_empty("GOOGLE_CLOUD_LOCATION")?;
    google_default_file(env, home)
}

/// Returns the path of Google's application default credentials, whatever else is set: the named file, else the one that `gcloud` writes.
pub(crate) fn google_default_file(env: &Env, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(named) = env.non_empty("GOOGLE_APPLICATION_CREDENTIALS") {
        return Some(named.into());
    }
    const FILE: &str = "gcloud/application_default_credentials.json";
    env.non_empty("APPDATA").map(|dir| Path::new(dir).join(FILE)).or_else(|| Some(home?.join(".config").join(FILE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[track_caller]
    fn check(provider: &str, env: &[(&str, &str)], key: Option<&str>, found: &[&str]) {
        let env: Env = env.iter().copied().collect();
        assert_eq!(api_key(provider, &env), key.map(Secret::from));
        assert_eq!(found_vars(provider, &env), found);
    }

    #[test]
    fn the_first_variable_that_is_set_supplies_the_key() {
        check(
            "anthropic",
            &[("ANTHROPIC_API_KEY", "a"), ("ANTHROPIC_OAUTH_TOKEN", "")],
            Some("a"),
            &["ANTHROPIC_API_KEY"],
        );
        check("github-copilot", &[("GITHUB_TOKEN", "g")], None, &[]);
        check("azure-openai-responses", &[("AZURE_OPENAI_API_KEY", " z ")], Some(" z "), &["AZURE_OPENAI_API_KEY"]);
        check("unknown-co", &[("UNKNOWN_CO_API_KEY", "u")], None, &[]);
        check("amazon-bedrock", &[("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y")], Some(AMBIENT), &[]);
        check("amazon-bedrock", &[("AWS_ACCESS_KEY_ID", "x")], None, &[]);
        let env: Env = [("ANTHROPIC_AUTH_TOKEN", "t"), ("ANTHROPIC_API_KEY", "a")].into_iter().collect();
        assert!(look_up("anthropic", &env).unwrap().is_bearer);
    }

    #[test]
    fn every_provider_of_the_catalog_has_a_variable_or_a_reason() {
        let keyless = ["amazon-bedrock", "openai-codex", "radius", "typesafe"];
        let catalog = Catalog::built_in();
        let missing: Vec<&str> = catalog.providers().map(|p| p.as_str()).filter(|p| variables(p).is_empty()).collect();
        assert_eq!(missing, keyless);
    }

    #[test]
    fn cloud_credentials_files_follow_the_environment() {
        let env: Env = [("AWS_CONFIG_FILE", "/c")].into_iter().collect();
        let files = credentials_files("amazon-bedrock", &env, Some(Path::new("/h")));
        assert_eq!(files, [Path::new("/h/.aws/credentials"), Path::new("/c")]);
        assert_eq!(credentials_files("amazon-bedrock", &env, None), [Path::new("/c")]);
        assert!(credentials_files("openai", &env, Some(Path::new("/h"))).is_empty());
    }

    #[test]
    fn remedies_name_the_variable_to_set() {
        assert_eq!(remedy("anthropic").as_deref(), Some("Set ANTHROPIC_API_KEY"));
        assert_eq!(remedy("mine"), None);
        assert!(remedy("amazon-bedrock").is_some_and(|text| text.contains("AWS_PROFILE")));
    }

    #[test]
    fn google_credentials_need_project_and_location() {
        let env: Env = [("GOOGLE_CLOUD_PROJECT", "p")].into_iter().collect();
        assert_eq!(google_credentials_file(&env, Some(Path::new("/h"))), None);
        let env = env.with([("GOOGLE_CLOUD_LOCATION", "l")]);
        let file = google_credentials_file(&env, Some(Path::new("/h"))).unwrap();
        assert_eq!(file, Path::new("/h/.config/gcloud/application_default_credentials.json"));
        assert_eq!(google_credentials_file(&env, None), None);
    }
}
