//! Calls each provider that has a key in the environment once, the way embedded runs do, to check that configuration settings still take
//! effect.

use std::path::PathBuf;
use std::time::Duration;

use pinch_embed::config::Config;
use pinch_embed::engine::Engine;
use pinch_embed::run::RunResult;
use pinch_embed::stdx::host::Host;
use pinch_llm::catalog::Catalog;
use pinch_llm::{catalog, keys};
use serde_json::json;

/// Arguments of `cargo xtask test --live`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Providers to call, all by default
    providers: Vec<String>,
}

/// Answer limit in tokens.
const MAX_TOKENS: u64 = 64;
/// A prompt whose answer exceeds the limit for every model.
const PROMPT: &str = "Write the numbers from 1 to 300, separated by spaces. Write nothing else.";
/// Time limit of a call.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Sentences in the system prompt: prompts below a few thousand tokens are not cached.
const N_SENTENCES: usize = 600;

/// The result for one provider.
#[derive(Debug, PartialEq, Eq)]
enum LiveOutcome {
    Passed(String),
    Skipped(String),
    Failed(String),
}

/// Runs the command; returns true if no call failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let system = Host::system();
    let catalog = Catalog::built_in();
    let all: Vec<&str> = catalog.providers().map(|provider| provider.as_str()).collect();
    if let Some(unknown) = args.providers.iter().find(|name| !all.contains(&name.as_str())) {
        anyhow::bail!("{unknown} is not a provider of the catalog");
    }
    let is_wanted = |name: &&&str| args.providers.is_empty() || args.providers.iter().any(|wanted| wanted == **name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut n_passed, mut n_skipped, mut n_failed) = (0, 0, 0);
    for provider in all.iter().filter(is_wanted) {
        let (word, text) = match runtime.block_on(check(provider, &system, None))? {
            LiveOutcome::Passed(text) => {
                n_passed += 1;
                ("ok", text)
            }
            LiveOutcome::Skipped(why) => {
                n_skipped += 1;
                ("skipped", why)
            }
            LiveOutcome::Failed(why) => {
                n_failed += 1;
                ("FAILED", why)
            }
        };
        println!("{provider}: {word}: {text}");
    }
    println!("{n_passed} passed, {n_skipped} skipped, {n_failed} failed");
    Ok(n_failed == 0)
}

/// Calls the default model of a provider. `base_url`: the server's address, instead of the provider's own.
async fn check(provider: &str, system: &Host, base_url: Option<&str>) -> anyhow::Result<LiveOutcome> {
    let variables = keys::variables(provider);
    let Some(key) = keys::look_up(provider, system.env()) else {
        return Ok(LiveOutcome::Skipped(match variables {
            [] => "it takes no key from the environment".to_owned(),
            variables => format!("{} is not set", variables.join(" or ")),
        }));
    };
    let Some((_, model)) = catalog::default_ids().find(|(name, _)| *name == provider) else {
        return Ok(LiveOutcome::Skipped("it has no default model".to_owned()));
    };
    let dir = tempfile::tempdir()?;
    // Uses only the environment, not the user's files or logins.
    let host = Host::builder().env(system.env().clone()).temp(dir.path()).build();
    let reference = format!("{provider}/{model}");
    let mut document = json!({"agents": {"defaults": {
        "model": reference,
        "models": {reference.as_str(): {"params": {"maxTokens": MAX_TOKENS, "cacheRetention": "long"}}},
        "thinkingDefault": "off", "workspace": dir.path().join("workspace"),
    }}});
    if let Some(url) = base_url {
        document["models"] = json!({"providers": {provider: {"baseUrl": url}}});
    }
    let document = document.as_object().cloned().unwrap_or_default();
    let (config, problems) = Config::from_document(document, &PathBuf::from("live"));
    anyhow::ensure!(problems.is_empty(), "{problems:?}");
    let engine = Engine::builder(dir.path()).host(host).config(config).build();
    let mut request = engine.request("live", None, None, PROMPT).timeout(Some(TIME_LIMIT)).system_prompt(long_prompt());
    // A single call: failures are not retried.
    request.budget.attempts = Some(1);
    let result = engine.run(request).finish().await;
    let from = key.variable.unwrap_or("credentials of the machine");
    Ok(match result {
        Err(error) => LiveOutcome::Failed(format!("{model}, {from}: {error}")),
        Ok(result) => judge(provider, model, from, &result),
    })
}

fn judge(provider: &str, model: &str, from: &str, result: &RunResult) -> LiveOutcome {
    let usage = result.meta.agent.last_call_usage.unwrap_or_default();
    let mut wrong = Vec::new();
    if let Some(error) = &result.meta.error {
        wrong.push(error.message.clone());
    }
    if usage.output == 0 || usage.output > MAX_TOKENS {
        wrong.push(format!("maxTokens has no effect: the answer has {} tokens, not 1 to {MAX_TOKENS}", usage.output));
    }
    let mut seen = format!("{} tokens of {MAX_TOKENS}", usage.output);
    if provider == "anthropic" {
        let for_an_hour = usage.cache_write_1h.unwrap_or(0);
        if for_an_hour == 0 && usage.cache_read == 0 {
            wrong.push("cacheRetention has no effect: nothing was cached for an hour".to_owned());
        }
        seen = format!("{seen}, {for_an_hour} cached for an hour, {} read from the cache", usage.cache_read);
    }
    match wrong.is_empty() {
        true => LiveOutcome::Passed(format!("{model}, {from}: {seen}")),
        false => LiveOutcome::Failed(format!("{model}, {from}: {}", wrong.join("; "))),
    }
}

fn long_prompt() -> String {
    let sentence = |n: usize| format!("Rule {n}: follow the request of the user exactly, and add nothing to it.\n");
    (1..=N_SENTENCES).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use pinch_embed::stdx::host::Env;
    use pinch_testing::server::{Server, ServerReply};
    use pinch_testing::wires::anthropic::AnthropicResponse;
    use serde_json::Value;

    use super::*;

    async fn outcome(usage: &Value) -> (LiveOutcome, Vec<Value>) {
        let server = Server::start().await.unwrap();
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": usage});
        let frames = AnthropicResponse::with_usage("m1", usage).text("1 2 3").event(end);
        let frames = frames.event(json!({"type": "message_stop"})).frames();
        server.reply(ServerReply::sse(frames.concat()));
        let host = Host::builder().env(Env::from_iter([("ANTHROPIC_API_KEY", "k")])).build();
        let outcome = check("anthropic", &host, Some(&server.url())).await.unwrap();
        (outcome, server.requests().iter().map(pinch_testing::server::Recorded::json).collect())
    }

    #[tokio::test]
    async fn settings_that_have_no_effect_fail() {
        let cached = json!({"input_tokens": 9, "output_tokens": 64,
            "cache_creation_input_tokens": 7000, "cache_creation": {"ephemeral_1h_input_tokens": 7000}});
        let (passed, requests) = outcome(&cached).await;
        assert!(
            matches!(&passed, LiveOutcome::Passed(text) if text.contains("64 tokens of 64, 7000 cached")),
            "{passed:?}"
        );
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0]["max_tokens"], MAX_TOKENS);
        assert!(requests[0]["system"].to_string().contains("\"1h\""));
        let (failed, _) = outcome(&json!({"input_tokens": 9, "output_tokens": 900})).await;
        let why =
            |text: &str| text.contains("maxTokens has no effect") && text.contains("cacheRetention has no effect");
        assert!(matches!(&failed, LiveOutcome::Failed(text) if why(text)), "{failed:?}");
    }

    #[tokio::test]
    async fn a_provider_without_a_key_is_skipped_with_the_reason() {
        let skipped = check("groq", &Host::builder().build(), None).await.unwrap();
        assert_eq!(skipped, LiveOutcome::Skipped("GROQ_API_KEY is not set".to_owned()));
    }
}
