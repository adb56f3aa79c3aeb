//! `loop`.

use pinch_llm::message::Block;
use pinch_tools::loops::{CallEnd, CallHistory, LoopConfig, LoopLevel, call_hash};
use serde_json::{Value, json};

use super::{only, texts};

pub(super) fn detect(input: &Value, expect: &Value) -> Result<(), String> {
    only(input, &["config", "agentConfig", "history", "next", "runId", "hashOf"])?;
    let members = [
        "stuck",
        "level",
        "detector",
        "count",
        "messageContains",
        "historyLength",
        "oldestParams",
        "equal",
        "format",
        "toolResultSuffixContains",
    ];
    only(expect, &members)?;
    if let Some(calls) = input["hashOf"].as_array() {
        let hash = |call: &Value| call_hash(call[0].as_str().unwrap_or_default(), &call[1]);
        return hashes(&calls.iter().map(hash).collect::<Vec<_>>(), expect);
    }
    let config = LoopConfig::read(&input["config"], &input["agentConfig"]);
    let mut history = CallHistory::default();
    let mut n = 0;
    for item in input["history"].as_array().into_iter().flatten() {
        only(item, &["repeat", "tool", "params", "runId", "result", "error"])?;
        let tool = item["tool"].as_str().ok_or("a call without a tool")?;
        for _ in 0..item["repeat"].as_u64().unwrap_or(1) {
            n += 1;
            let id = format!("call-{n}");
            history.record(&config, &id, tool, &item["params"], item["runId"].as_str());
            end(&mut history, &id, item)?;
        }
    }
    if let Some(length) = expect["historyLength"].as_u64()
        && u64::try_from(history.hashes().len()) != Ok(length)
    {
        return Err(format!("expected {length} calls, got {}", history.hashes().len()));
    }
    if let Some(params) = expect.get("oldestParams") {
        let tool = input["history"][0]["tool"].as_str().unwrap_or_default();
        if history.hashes().next() != Some(&call_hash(tool, params)) {
            return Err(format!("the oldest call is not that with {params}"));
        }
    }
    let next = &input["next"];
    if next.is_null() {
        return Ok(());
    }
    let tool = next["tool"].as_str().ok_or("the next call has no tool")?;
    let found = history.detect(&config, tool, &next["params"], input["runId"].as_str());
    let message = found.as_ref().map(|found| found.message.as_str()).unwrap_or_default();
    if let Some(missing) = texts(&expect["messageContains"]).iter().find(|part| !message.contains(part.as_str())) {
        return Err(format!("{missing:?} is not in {message:?}"));
    }
    if let Some(suffix) = expect["toolResultSuffixContains"].as_str() {
        let content = found.as_ref().map(|found| found.append_to(&[Block::text("result")]));
        let text = content.as_ref().and_then(|content| content[0].as_text()).unwrap_or_default();
        if !text.strip_prefix("result\n\n").is_some_and(|added| added.contains(suffix)) {
            return Err(format!("{suffix:?} is not appended to the result: {text:?}"));
        }
    }
    let actual = match &found {
        None => json!({"stuck": false}),
        Some(found) => json!({
            "stuck": true,
            "level": match found.level { LoopLevel::Warning => "warning", LoopLevel::Critical => "critical" },
            "detector": found.detector.name(),
            "count": found.count,
        }),
    };
    let compared = ["stuck", "level", "detector", "count"];
    let wanted: Value =
        compared.iter().filter_map(|key| Some(((*key).to_owned(), expect.get(*key)?.clone()))).collect();
    super::check(&wanted, &actual)
}

fn end(history: &mut CallHistory, id: &str, item: &Value) -> Result<(), String> {
    if let Some(text) = item["error"].as_str() {
        history.record_outcome(id, CallEnd::Error(text));
    }
    let result = &item["result"];
    if result.is_null() {
        return Ok(());
    }
    only(result, &["text", "details", "jsonDetails"])?;
    let (text, details) = match result.get("jsonDetails") {
        Some(details) => (serde_json::to_string_pretty(details).unwrap_or_default(), details),
        None => (result["text"].as_str().unwrap_or_default().to_owned(), &result["details"]),
    };
    history.record_outcome(id, CallEnd::Result { text: &text, details });
    Ok(())
}

fn hashes(hashes: &[String], expect: &Value) -> Result<(), String> {
    if let Some(equal) = expect["equal"].as_bool()
        && hashes.iter().all(|hash| *hash == hashes[0]) != equal
    {
        return Err(format!("equal should be {equal}: {hashes:?}"));
    }
    let Some(format) = expect["format"].as_str() else { return Ok(()) };
    let format = regex::Regex::new(format).map_err(|error| error.to_string())?;
    match hashes.iter().find(|hash| !format.is_match(hash)) {
        Some(hash) => Err(format!("{hash} does not match {format}")),
        None => Ok(()),
    }
}
