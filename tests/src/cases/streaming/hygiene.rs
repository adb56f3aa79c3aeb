//! Transcripts: how a history is processed before it is sent to a model again.

use std::sync::Arc;

use pinch_embed::run::decide::thinking::next_level;
use pinch_llm::catalog::Catalog;
use pinch_llm::ids::ApiId;
use pinch_llm::message::{Block, Message};
use pinch_llm::model::Model;
use pinch_llm::model::detect::{ModelFacts, detect};
use pinch_llm::model::transcript::{CallIdRule, TranscriptRules};
use pinch_llm::normalise::history::{RequestFacts, sanitised};
use pinch_llm::normalise::{call_ids, calls, repair, text, thinking, turns};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use super::text as word;

mod messages;
mod sessions;

use messages::CaseMessages;

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    Some(match op {
        "sanitize_tool_call_id" => rule(&input["mode"])
            .ok_or_else(|| "no such rule".to_owned())
            .map(|rule| call_ids::sanitise(word(&input["id"]), rule).into()),
        "rewrite_tool_ids" => each(input, |messages| match rule(&input["mode"]) {
            Some(rule) => call_ids::rewrite(messages, rule),
            None => messages.to_vec(),
        }),
        "validate_gemini" => {
            each(input, |messages| turns::merge(messages, turns::Merged { answers: true, ..turns::Merged::default() }))
        }
        "validate_anthropic" => each(input, |messages| {
            let messages = turns::without_dangling(messages);
            turns::merge(&messages, turns::Merged { users: true, ..turns::Merged::default() })
        }),
        "validate_strict" => each(input, |messages| {
            turns::merge(messages, turns::Merged { answers: true, users: true, developers: true })
        }),
        "google_turn_ordering" => each(input, turns::user_first),
        "antigravity_thinking" => CaseMessages::read(&input["messages"]).map(|mut read| {
            read.copies_signatures = true;
            read.write(&thinking::signed_only(&read.messages))
        }),
        "downgrade_openai_reasoning" => each(input, thinking::without_orphan_items),
        "downgrade_openai_call_ids" => each(input, thinking::without_item_ids),
        "sanitize_tool_call_inputs" => each(input, calls::without_malformed),
        "inter_session_marker" => CaseMessages::read(&json!([input["message"]]))
            .map(|read| read.write(&text::mark_inter_session(&read.messages))[0].take()),
        "sanitize_session_messages" => {
            each(input, |messages| sanitised(messages, &content_rules(&input["options"]), RequestFacts::default()))
        }
        "strip_thought_signatures" => without_signatures(input),
        "repair_tool_pairing" => CaseMessages::read(&input["messages"]).map(|read| {
            let repaired = repair::repair(&read.messages, true);
            json!({"messages": read.write(&repaired.messages), "added": repaired.n_added,
                "droppedDuplicates": repaired.n_duplicates, "droppedOrphans": repaired.n_orphans})
        }),
        "transcript_policy" => Ok(policy(&rules_of(input))),
        "pick_fallback_thinking" => {
            let tried: Vec<ThinkingLevel> =
                super::strings(&input["attempted"]).iter().filter_map(|level| ThinkingLevel::parse(level)).collect();
            Ok(next_level(word(&input["message"]), &tried).map(ThinkingLevel::as_str).into())
        }
        "refusal_magic" => sessions::scrubbed(input),
        "sanitize_session_history" => sessions::history(input),
        "apply_google_turn_fix_twice" => sessions::google_twice(input),
        "session_guard" => sessions::guard(input),
        _ => return None,
    })
}

fn each(input: &Value, change: impl FnOnce(&[Arc<Message>]) -> Vec<Arc<Message>>) -> Result<Value, String> {
    let read = CaseMessages::read(&input["messages"])?;
    Ok(read.write(&change(&read.messages)))
}

fn rule(mode: &Value) -> Option<CallIdRule> {
    CallIdRule::parse(mode.as_str().unwrap_or("strict"))
}

/// Rules with only the content rules set.
fn content_rules(options: &Value) -> TranscriptRules {
    TranscriptRules {
        clean_content: options["sanitizeMode"] != "images-only",
        call_ids: (options["sanitizeToolCallIds"] == true).then(|| rule(&options["toolCallIdMode"])).flatten(),
        keep_signatures: options["preserveSignatures"] == true,
        ..TranscriptRules::default()
    }
}

/// The rules for a model described by a case.
fn rules_of(input: &Value) -> TranscriptRules {
    let facts = ModelFacts {
        api: word(&input["modelApi"]),
        provider: word(&input["provider"]),
        base_url: "",
        id: word(&input["modelId"]),
        reasoning: false,
    };
    detect(facts).history.transcript
}

/// A model described by a case; fields may be missing.
fn model_of(input: &Value) -> Result<Model, String> {
    let or =
        |name: &str, default: &str| input[name].as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned();
    let record = json!({"id": or("modelId", "m"), "provider": or("provider", "none"), "api": or("modelApi", "none")});
    let mut model = Model::from_record(&record).map_err(|error| error.to_string())?;
    model.dialect.history.transcript = rules_of(input);
    Ok(model)
}

/// Rules under their upstream names.
fn policy(rules: &TranscriptRules) -> Value {
    json!({
        "sanitizeMode": if rules.clean_content { "full" } else { "images-only" },
        "sanitizeToolCallIds": rules.call_ids.is_some(),
        "toolCallIdMode": rules.call_ids.map(CallIdRule::as_str),
        "repairToolUseResultPairing": rules.pair_results,
        "allowSyntheticToolResults": rules.synthetic_results,
        "preserveSignatures": rules.keep_signatures,
        "sanitizeThoughtSignatures":
            rules.base64_signatures.then(|| json!({"allowBase64Only": true, "includeCamelCase": true})),
        "normalizeAntigravityThinkingBlocks": rules.signed_thinking,
        "dropThinkingBlocks": rules.drop_thinking,
        "applyGoogleTurnOrdering": rules.user_first,
        "validateGeminiTurns": rules.merge_answers,
        "validateAnthropicTurns": rules.merge_users,
    })
}

/// Anything that is not a block passes unchanged, as when a file is read.
fn without_signatures(input: &Value) -> Result<Value, String> {
    let Some(blocks) = input["content"].as_array() else { return Ok(input["content"].clone()) };
    let base64_only = input["options"]["allowBase64Only"] == true;
    let camel_case = input["options"]["includeCamelCase"] == true;
    let one = |raw: &Value| -> Result<Value, String> {
        // Only one of the spellings is handled, unless a case says otherwise.
        if !raw.is_object() || (raw.get("thought_signature").is_none() && !camel_case) {
            return Ok(raw.clone());
        }
        let read = CaseMessages::read(&json!([{"role": "assistant", "content": [raw]}]))?;
        let answer = read.messages[0].as_assistant().ok_or("no answer")?;
        let block: &Block = &answer.content[0];
        let changed = thinking::without_foreign_signature(block, base64_only);
        let mut answer = (**answer).clone();
        answer.content = vec![Arc::new(changed.unwrap_or_else(|| block.clone()))];
        Ok(read.write(&[Arc::new(Message::Assistant(Arc::new(answer)))])[0]["content"][0].take())
    };
    blocks.iter().map(one).collect()
}

/// The wire format of a provider's models.
fn api_of(provider: &str) -> &'static str {
    match Catalog::built_in().default_model(provider).map(|model| model.api.as_str()) {
        Some(ApiId::ANTHROPIC_MESSAGES) => ApiId::ANTHROPIC_MESSAGES,
        _ => ApiId::OPENAI_COMPLETIONS,
    }
}
