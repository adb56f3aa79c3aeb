//! Capabilities of Bedrock's models, derived from their ids and names.

use crate::model::Model;
use crate::model::thinking::LevelRule;
use crate::thinking::ThinkingLevel;

/// Returns normalized ids and names: lower case, with uniform separators. An inference profile has an opaque id, but its name may be
/// informative.
fn candidates(model: &Model) -> [String; 2] {
    [model.id.as_str(), &model.name].map(|text| {
        let mut out = String::with_capacity(text.len());
        for c in text.chars().flat_map(char::to_lowercase) {
            let is_separator = c.is_whitespace() || matches!(c, '_' | '.' | ':');
            match (is_separator, out.ends_with('-')) {
                (true, true) => {}
                (true, false) => out.push('-'),
                (false, _) => out.push(c),
            }
        }
        out
    })
}

/// Returns whether a model is one of Anthropic's.
pub(super) fn is_claude(model: &Model) -> bool {
    let (id, name) = (model.id.as_str().to_lowercase(), model.name.to_lowercase());
    let by_id = |text: &str| text.contains("anthropic.claude") || text.contains("anthropic/claude");
    by_id(&id) || by_id(&name) || name.contains("claude")
}

/// Returns whether a model has adaptive thinking and takes an effort instead of a budget: these have levels above `high`.
pub(super) fn is_adaptive(model: &Model) -> bool {
    let has_word = |level| matches!(model.thinking.rule(level), LevelRule::Word(_));
    let named = ["opus-4-6", "opus-4-7", "opus-4-8", "sonnet-4-6"];
    model.dialect.wire.adaptive_thinking
        || has_word(ThinkingLevel::XHigh)
        || has_word(ThinkingLevel::Max)
        || candidates(model).iter().any(|text| named.iter().any(|name| text.contains(name)))
}

/// Returns whether a model accepts cache points. `forced` assumes so for models other than Claude.
pub(super) fn takes_cache_points(model: &Model, forced: bool) -> bool {
    let candidates = candidates(model);
    if !candidates.iter().any(|text| text.contains("claude")) {
        return forced;
    }
    candidates.iter().any(|text| {
        let is_late_third = text.contains("claude-3-7-sonnet") || text.contains("claude-3-5-haiku");
        is_late_third || claude_generation(text).is_some_and(|generation| generation >= 4)
    })
}

/// Returns the first number of one or two digits after `claude`: 4 in `claude-sonnet-4-5-20250929`.
fn claude_generation(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("claude-")?;
    after.split('-').find_map(|word| word.parse().ok().filter(|_| word.len() <= 2))
}

/// Returns whether a model runs in a US government region, which lack newer features.
pub(super) fn is_in_gov_cloud(model: &Model, configured_region: Option<&str>) -> bool {
    let id = model.id.as_str();
    configured_region.is_some_and(|region| region.starts_with("us-gov-"))
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn model(id: &str, name: &str) -> Model {
        Model::from_record(&json!({"id": id, "name": name, "api": "a", "provider": "p", "reasoning": true})).unwrap()
    }

    #[test]
    fn only_models_with_caching_get_cache_points() {
        for (id, name, expect) in [
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", "", true),
            ("us.anthropic.claude-opus-5-5", "", true),
            ("anthropic.claude-3-7-sonnet-20250219-v1:0", "", true),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", "", false),
            ("anthropic.claude-v2:1", "", false),
            ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x", "Claude Sonnet 4.5", true),
            ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x", "Our Claude", false),
            ("amazon.nova-pro-v1:0", "", false),
        ] {
            assert_eq!(takes_cache_points(&model(id, name), false), expect, "{id} {name}");
        }
        assert!(takes_cache_points(&model("x", "y"), true));
        assert!(!takes_cache_points(&model("anthropic.claude-v2", ""), true));
    }

    #[test]
    fn thinking_depends_on_the_model() {
        assert!(is_adaptive(&model("arn:x", "Claude Opus 4.7 (EU)")));
        assert!(!is_adaptive(&model("anthropic.claude-opus-4-5-20251101-v1:0", "")));
        assert!(is_claude(&model("us.anthropic.claude-x", "")) && is_claude(&model("arn:x", "my CLAUDE")));
        assert!(!is_claude(&model("openai.gpt-oss-120b", "gpt")));
    }
}
