//! Providers that need no configuration: they are enabled if there are credentials for them.

use pinch_llm::keys;
use pinch_stdx::host::Env;
use serde_json::{Map, Value, json};

/// A provider that is not in the catalog.
struct ImplicitProvider {
    id: &'static str,
    base_url: &'static str,
    api: &'static str,
    /// Variables that may contain its key, in order of preference.
    variables: &'static [&'static str],
    /// Its models: id, reasoning, vision, context window and maximum output in tokens.
    models: &'static [(&'static str, bool, bool, u64, u64)],
}

const PROVIDERS: [ImplicitProvider; 7] = [
    ImplicitProvider {
        id: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        api: "openai-completions",
        variables: &["MOONSHOT_API_KEY"],
        models: &[("kimi-k2.5", false, false, 256_000, 8_192)],
    },
    ImplicitProvider {
        id: "synthetic",
        base_url: "https://api.synthetic.new/anthropic",
        api: "anthropic-messages",
        variables: &["SYNTHETIC_API_KEY"],
        models: &[("hf:MiniMaxAI/MiniMax-M2.1", false, false, 192_000, 65_536)],
    },
    ImplicitProvider {
        id: "venice",
        base_url: "https://api.venice.ai/api/v1",
        api: "openai-completions",
        variables: &["VENICE_API_KEY"],
        models: &[("llama-3.3-70b", false, false, 131_072, 8_192)],
    },
    ImplicitProvider {
        id: "qianfan",
        base_url: "https://qianfan.baidubce.com/v2",
        api: "openai-completions",
        variables: &["QIANFAN_API_KEY"],
        models: &[("deepseek-v3.2", true, false, 98_304, 32_768)],
    },
    ImplicitProvider {
        id: "qwen-portal",
        base_url: "https://portal.qwen.ai/v1",
        api: "openai-completions",
        variables: &["QWEN_OAUTH_TOKEN", "QWEN_PORTAL_API_KEY"],
        models: &[("coder-model", false, false, 128_000, 8_192), ("vision-model", false, true, 128_000, 8_192)],
    },
    ImplicitProvider {
        id: "minimax-portal",
        base_url: "https://api.minimax.io/anthropic",
        api: "anthropic-messages",
        variables: &["MINIMAX_OAUTH_TOKEN"],
        models: &[("MiniMax-M2.1", false, false, 200_000, 8_192)],
    },
    ImplicitProvider {
        id: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        api: "openai-completions",
        variables: &["OLLAMA_API_KEY"],
        models: &[],
    },
];

/// Variables that may contain keys of catalog providers, in addition to those in the catalog.
const OTHER_VARIABLES: [(&str, &str); 3] =
    [("zai", "Z_AI_API_KEY"), ("opencode", "OPENCODE_ZEN_API_KEY"), ("kimi-coding", "KIMICODE_API_KEY")];

/// Returns the variables that may contain keys of these providers.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    let own = PROVIDERS.iter().flat_map(|provider| provider.variables.iter().copied());
    own.chain(OTHER_VARIABLES.iter().map(|(_, name)| *name))
}

/// Returns the providers in the format of `models.json`. Keys are references to variables that are set.
pub(crate) fn providers(env: &Env) -> Map<String, Value> {
    let reference = |name: &str| Value::from(format!("${{{name}}}"));
    let mut all = Map::new();
    for provider in &PROVIDERS {
        let models = provider.models.iter().map(|(id, reasons, sees, window, answer)| {
            let input = if *sees { json!(["text", "image"]) } else { json!(["text"]) };
            json!({"id": id, "reasoning": reasons, "input": input, "contextWindow": window, "maxTokens": answer})
        });
        let mut entry = Map::from_iter([
            ("baseUrl".to_owned(), provider.base_url.into()),
            ("api".to_owned(), provider.api.into()),
            ("models".to_owned(), models.collect()),
        ]);
        if let Some(name) = provider.variables.iter().find(|name| env.non_empty(name).is_some()) {
            entry.insert("apiKey".to_owned(), reference(name));
        }
        all.insert(provider.id.to_owned(), Value::Object(entry));
    }
    for (id, name) in OTHER_VARIABLES {
        if env.non_empty(name).is_some() && keys::found_vars(id, env).is_empty() {
            all.insert(id.to_owned(), json!({"apiKey": reference(name)}));
        }
    }
    all
}
