//! Detects a model's quirks from its provider, host and id.

use pinch_http::url_parts::{host, is_under};

use super::dialect::{Affinity, AffinityFormat, Dialect, GoogleThinking, KeyHeader, MaxTokensField, ThinkingFormat};
use super::transcript::TranscriptRules;
use crate::ids::ApiId;
use crate::schema::clean::SchemaDialect;

/// Facts about a model that determine its quirks.
#[derive(Clone, Copy, Debug)]
pub struct ModelFacts<'a> {
    /// The wire format.
    pub api: &'a str,
    /// The provider.
    pub provider: &'a str,
    /// The base URL.
    pub base_url: &'a str,
    /// The model.
    pub id: &'a str,
    /// Whether the model's thinking is separate from its text.
    pub reasoning: bool,
}

/// [`ModelFacts`] with the host parsed once from the base URL.
#[derive(Clone, Copy)]
struct KnownHost<'a> {
    api: &'a str,
    provider: &'a str,
    host: &'a str,
    id: &'a str,
}

impl KnownHost<'_> {
    /// Returns whether the provider has this name or the host is under this domain.
    fn is(&self, provider: &str, domain: &str) -> bool {
        self.provider == provider || self.on(domain)
    }

    fn on(&self, domain: &str) -> bool {
        is_under(self.host, domain)
    }
}

/// Returns the quirks that follow from provider, host and id.
pub fn detect(facts: ModelFacts<'_>) -> Dialect {
    let ModelFacts { api, provider, base_url, id, reasoning } = facts;
    let mut dialect = by_format(KnownHost { api, provider, host: &host(base_url), id });
    dialect.history.transcript = TranscriptRules::detect(api, provider, id);
    dialect.replies.html_entities = provider == "xai" || is_under(&host(base_url), "api.x.ai");
    dialect.replies.final_tags = !reasoning && writes_reasoning_as_text(provider);
    dialect
}

/// Returns whether models of this provider write their reasoning into the answer unless their thinking is separate.
fn writes_reasoning_as_text(provider: &str) -> bool {
    let provider = provider.trim().to_lowercase();
    matches!(provider.as_str(), "ollama" | "google-gemini-cli" | "google-generative-ai")
        || ["google-antigravity", "minimax"].iter().any(|name| provider.contains(name))
}

/// Returns the quirks of the wire format at this provider.
fn by_format(facts: KnownHost<'_>) -> Dialect {
    let mut dialect = match facts.api {
        ApiId::OPENAI_COMPLETIONS => completions(facts),
        ApiId::ANTHROPIC_MESSAGES => anthropic(facts),
        ApiId::OPENAI_RESPONSES | ApiId::AZURE_RESPONSES | ApiId::CODEX_RESPONSES => responses(facts),
        // Google's own formats accept all of JSON Schema; only models behind other formats need a reduced one.
        ApiId::GOOGLE_GENERATIVE_AI | ApiId::GOOGLE_VERTEX | ApiId::CLOUD_CODE_ASSIST => return google(facts),
        ApiId::MISTRAL_CONVERSATIONS => mistral(facts),
        ApiId::BEDROCK_CONVERSE_STREAM => {
            let mut dialect = Dialect::default();
            dialect.wire.caches_by_default = false;
            dialect
        }
        _ => Dialect::default(),
    };
    by_provider(facts, &mut dialect);
    dialect.schema.family = match SchemaDialect::of(facts.provider, facts.id) {
        SchemaDialect::Plain if facts.on("api.x.ai") => SchemaDialect::Xai,
        SchemaDialect::Plain if facts.on("api.moonshot.") => SchemaDialect::Kimi,
        SchemaDialect::Plain if facts.on("generativelanguage.googleapis.com") => SchemaDialect::Gemini,
        family => family,
    };
    dialect
}

/// Applies the quirks of a provider, whatever the wire format.
fn by_provider(facts: KnownHost<'_>, dialect: &mut Dialect) {
    let Dialect { wire, history, .. } = dialect;
    match facts.provider {
        "cloudflare-ai-gateway" => wire.key_header = KeyHeader::CloudflareGateway,
        "github-copilot" => {
            wire.key_header = KeyHeader::Bearer;
            wire.copilot_headers = true;
            wire.says_thinking_off = false;
        }
        "opencode" | "opencode-go" => wire.session_header = Some("x-opencode-session"),
        "openai" => history.max_call_id = 40,
        "ollama" => wire.num_ctx = true,
        _ => {}
    }
    let azure = matches!(facts.provider, "azure" | "azure-openai-responses");
    history.two_call_ids = azure || matches!(facts.provider, "openai" | "openai-codex" | "opencode");
}

fn anthropic(facts: KnownHost<'_>) -> Dialect {
    let mut dialect = Dialect::default();
    if facts.is("openrouter", "openrouter.ai") {
        dialect.wire.affinity = Affinity { send: true, format: AffinityFormat::OpenRouter };
    }
    dialect
}

fn google(facts: KnownHost<'_>) -> Dialect {
    let id = facts.id.to_lowercase();
    let major = gemini_major(&id);
    let mut dialect = Dialect::default();
    dialect.wire.google_thinking = google_thinking(&id);
    let is_guest = id.starts_with("claude-") || id.starts_with("gpt-oss-");
    dialect.history.google_call_ids = is_guest || major.is_some_and(|major| major >= 3);
    dialect.history.google_images_in_results = major.is_none_or(|major| major >= 3);
    dialect.schema.strict = major.is_some_and(|major| major >= 3);
    dialect
}

fn google_thinking(id: &str) -> GoogleThinking {
    let after_gemini_3 = id.split("gemini-3").skip(1).map(|rest| match rest.strip_prefix('.') {
        Some(minor) => minor.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    });
    for kind in after_gemini_3 {
        if kind.starts_with("-pro") {
            return GoogleThinking::LowHigh;
        } else if kind.starts_with("-flash") {
            return GoogleThinking::Four;
        }
    }
    if id.contains("gemma-4") || id.contains("gemma4") {
        GoogleThinking::MinimalHigh
    } else if id.contains("2.5-pro") {
        GoogleThinking::Budgets([128, 2_048, 8_192, 32_768])
    } else if id.contains("2.5-flash-lite") {
        GoogleThinking::Budgets([512, 2_048, 8_192, 24_576])
    } else if id.contains("2.5-flash") {
        GoogleThinking::Budgets([128, 2_048, 8_192, 24_576])
    } else {
        GoogleThinking::Dynamic
    }
}

/// Returns the major version of a Gemini model id, if it is one.
fn gemini_major(id: &str) -> Option<u32> {
    let name = id.rsplit('/').next().unwrap_or(id).strip_prefix("gemini-")?;
    let version = name.strip_prefix("live-").unwrap_or(name);
    let n_digits = version.bytes().take_while(u8::is_ascii_digit).count();
    version[..n_digits].parse().ok()
}

fn mistral(facts: KnownHost<'_>) -> Dialect {
    let mut dialect = Dialect::default();
    // Records of these may be older than their names for levels.
    dialect.wire.reasoning_effort =
        matches!(facts.id, "mistral-small-2603" | "mistral-small-latest" | "mistral-medium-3.5");
    dialect.wire.prompt_mode = facts.id.starts_with("magistral");
    dialect
}

fn completions(facts: KnownHost<'_>) -> Dialect {
    let zai = matches!(facts.provider, "zai" | "zai-coding-cn") || facts.on("api.z.ai");
    let moonshot = matches!(facts.provider, "moonshotai" | "moonshotai-cn") || facts.on("api.moonshot.");
    let workers = facts.is("cloudflare-workers-ai", "api.cloudflare.com");
    let gateway = facts.is("cloudflare-ai-gateway", "gateway.ai.cloudflare.com");
    let xai = facts.is("xai", "api.x.ai");
    let deepseek = facts.is("deepseek", "deepseek.com");
    let open_router = facts.is("openrouter", "openrouter.ai");
    let chutes = facts.on("chutes.ai");
    // Servers that reject or misread OpenAI's later additions.
    let plain = facts.is("cerebras", "cerebras.ai")
        || facts.is("opencode", "opencode.ai")
        || facts.on("deepseek.com")
        || xai
        || chutes
        || zai
        || moonshot
        || workers
        || gateway;

    let mut dialect = Dialect::default();
    let wire = &mut dialect.wire;
    wire.store = !plain;
    wire.reasoning_effort = !(xai || zai || moonshot || gateway);
    if chutes || moonshot || gateway || zai || deepseek {
        wire.max_tokens_field = MaxTokensField::MaxTokens;
    }
    wire.thinking_format = if deepseek {
        ThinkingFormat::DeepSeek
    } else if zai {
        ThinkingFormat::Zai
    } else if open_router {
        ThinkingFormat::OpenRouter
    } else {
        ThinkingFormat::OpenAi
    };
    wire.cache_markers = facts.provider == "openrouter" && facts.id.starts_with("anthropic/");
    wire.long_cache_retention = !(workers || gateway);
    wire.cache_settings = facts.on("api.openai.com");
    wire.prompt_cache_options = since_gpt_5_6(facts.id);
    if open_router {
        wire.affinity = Affinity { send: true, format: AffinityFormat::OpenRouter };
    }
    dialect.replies.billed_cost = open_router;
    dialect.history.developer_role = !plain;
    dialect.history.reasoning_content = deepseek;
    dialect
}

fn responses(facts: KnownHost<'_>) -> Dialect {
    let mut dialect = Dialect::default();
    let open_router = facts.is("openrouter", "openrouter.ai");
    let format = if open_router { AffinityFormat::OpenRouter } else { AffinityFormat::OpenAi };
    dialect.wire.affinity = Affinity { send: true, format };
    dialect.wire.prompt_cache_options = since_gpt_5_6(facts.id);
    dialect
}

fn since_gpt_5_6(id: &str) -> bool {
    gpt_version(id).is_some_and(|version| version >= (5, 6))
}

/// Parses the generation and version of an OpenAI model: 5 and 6 for `gpt-5.6-sol` or `openai/gpt-5.6`.
fn gpt_version(id: &str) -> Option<(u32, u32)> {
    let name = id.rsplit('/').next()?.strip_prefix("gpt-")?;
    let version = name.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::dialect::WireFlags;

    fn completions_of(provider: &str, base_url: &str) -> Dialect {
        detect(ModelFacts { api: ApiId::OPENAI_COMPLETIONS, provider, base_url, id: "m", reasoning: false })
    }

    #[test]
    fn gpt_versions_are_parsed() {
        let version = |id: &str| gpt_version(id).unwrap_or_default();
        assert_eq!((version("gpt-5.6-sol"), version("openai/gpt-6"), version("gpt-4o")), ((5, 6), (6, 0), (4, 0)));
        assert_eq!((gpt_version("o3"), gpt_version("gpt-daybreak-latest")), (None, None));
    }

    #[test]
    fn gemini_quirks_follow_the_model_id() {
        let of = |id: &str| {
            let facts =
                ModelFacts { api: ApiId::GOOGLE_GENERATIVE_AI, provider: "google", base_url: "", id, reasoning: false };
            let dialect = detect(facts);
            let history = dialect.history;
            (dialect.wire.google_thinking, history.google_call_ids, history.google_images_in_results)
        };
        let lite = GoogleThinking::Budgets([512, 2_048, 8_192, 24_576]);
        assert_eq!(of("models/Gemini-2.5-Flash-Lite"), (lite, false, false));
        assert_eq!(of("gemini-3.1-pro-preview"), (GoogleThinking::LowHigh, true, true));
        assert_eq!(of("gemini-3-flash-preview"), (GoogleThinking::Four, true, true));
        assert_eq!(of("gemini-live-2-x"), (GoogleThinking::Dynamic, false, false));
        assert_eq!(of("gemini-3.x-pro"), (GoogleThinking::Dynamic, true, true));
        assert_eq!(of("gemma-4-31b-it"), (GoogleThinking::MinimalHigh, false, true));
        assert_eq!(of("claude-sonnet-4-5"), (GoogleThinking::Dynamic, true, true));
    }

    #[test]
    fn only_the_host_is_compared_not_the_path() {
        let plain = completions_of("me", "http://localhost/v1");
        assert_eq!(completions_of("me", "http://localhost/openrouter.ai/v1"), plain);
        assert_eq!(plain.wire, WireFlags { cache_settings: false, ..WireFlags::default() });
        assert!(!completions_of("me", "https://api.deepseek.com").wire.store);
        assert!(completions_of("deepseek", "http://localhost").wire.store, "the provider alone keeps OpenAI's members");
    }

    #[test]
    fn final_tags_are_for_models_without_separate_thinking() {
        let of = |provider: &str, reasoning| {
            let facts = ModelFacts { api: ApiId::OPENAI_COMPLETIONS, provider, base_url: "", id: "m", reasoning };
            detect(facts).replies.final_tags
        };
        for provider in
            ["ollama", " Ollama ", "google-gemini-cli", "google-generative-ai", "my-google-antigravity", "minimax-cn"]
        {
            assert_eq!((of(provider, false), of(provider, true)), (true, false), "{provider}");
        }
        assert!(!of("google", false) && !of("anthropic", false) && !of("lab", false));
    }

    #[test]
    fn cache_settings_are_for_servers_that_are_known_to_accept_them() {
        let takes = |base_url: &str| completions_of("me", base_url).wire.takes_cache_retention();
        assert!(takes("https://api.openai.com/v1") && !takes("http://localhost/v1"));
        let of = |api: &str| detect(ModelFacts { api, provider: "me", base_url: "", id: "m", reasoning: false }).wire;
        assert!(
            of(ApiId::ANTHROPIC_MESSAGES).takes_cache_retention()
                && of(ApiId::OPENAI_RESPONSES).takes_cache_retention()
        );
        assert!(
            of(ApiId::ANTHROPIC_MESSAGES).caches_by_default && !of(ApiId::BEDROCK_CONVERSE_STREAM).caches_by_default
        );
    }
}
