//! `exec-analysis`, `exec-allowlist`, `exec-safebins`, `exec-approval`, `exec-env`.

use std::path::{Path, PathBuf};

use pinch_tools::exec::allowlist::matches_program;
use pinch_tools::exec::analysis::{CommandSyntax, analyze};
use pinch_tools::exec::approvals::{ApprovalDefaults, ApprovalsFile};
use pinch_tools::exec::environment::ChildEnvironment;
use pinch_tools::exec::modes::{ExecAsk, ExecSecurity, requires_approval};
use pinch_tools::exec::safe_bins::SafeBins;
use serde_json::{Value, json};

use super::super::Case;
use super::{only, texts};

pub(super) fn analysis(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["command", "platform"])?;
    // What OpenClaw accepts, `tools.exec.scripts: false`.
    let syntax = match input["platform"].as_str() {
        Some("win32" | "windows") => CommandSyntax::Windows,
        _ => CommandSyntax::Simple,
    };
    Ok(match analyze(input["command"].as_str().ok_or("no command")?, syntax) {
        Ok(found) => {
            let argv: Vec<&Vec<String>> = found.segments().collect();
            let names =
                |chain: &Vec<Vec<String>>| chain.iter().filter_map(|argv| argv.first().cloned()).collect::<Vec<_>>();
            json!({"ok": true, "argv": argv, "chains": found.chains.iter().map(names).collect::<Vec<_>>()})
        }
        Err(error) => json!({"ok": false, "reason": error.to_string(), "argv": []}),
    })
}

pub(super) fn allowlist(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["pattern", "resolvedPath", "home"])?;
    let home = input["home"].as_str().map(Path::new);
    let program = input["resolvedPath"].as_str().map(Path::new);
    Ok(json!({"match": matches_program(input["pattern"].as_str().ok_or("no pattern")?, program, home)}))
}

pub(super) fn safe_bins(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["argv", "safeBins", "existingFiles"])?;
    let argv = texts(&input["argv"]);
    let names = match &input["safeBins"] {
        // The defaults of version 2026.2.9.
        Value::Null => ["jq", "grep", "cut", "sort", "uniq", "head", "tail", "tr", "wc"].map(str::to_owned).to_vec(),
        names => texts(names),
    };
    let existing: Vec<PathBuf> =
        texts(&input["existingFiles"]).into_iter().map(|path| Path::new("/w").join(path)).collect();
    let bins = SafeBins { names, trusted_directories: Vec::new() };
    let program = Path::new("/usr/bin").join(argv.first().ok_or("no program")?);
    let exists = |path: &Path| existing.iter().any(|known| known == path);
    Ok(json!({"safe": bins.is_safe(&argv, Some(&program), Some(Path::new("/w")), &exists)}))
}

pub(super) fn approval(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["ask", "security", "analysisOk", "allowlistSatisfied", "pairs", "file", "agentId"])?;
    if let Some(file) = input.get("file") {
        let file = ApprovalsFile::read(file);
        let found = file.effective(input["agentId"].as_str().unwrap_or("main"), ApprovalDefaults::default());
        let patterns: Vec<&String> = found.allowlist.iter().map(|entry| &entry.pattern).collect();
        return Ok(json!({
            "allowlist": patterns,
            "ask": found.ask.name(),
            "security": found.security.name(),
            "agent": {
                "security": found.security.name(),
                "ask": found.ask.name(),
                "askFallback": found.ask_fallback.name(),
                "autoAllowSkills": found.auto_allow_skills,
            },
        }));
    }
    if let Some(pairs) = input["pairs"].as_array() {
        let result: Result<Vec<&str>, String> = pairs.iter().map(picked).collect();
        return Ok(json!({"result": result?}));
    }
    let word = |key: &str| input[key].as_str().ok_or_else(|| format!("no {key}"));
    let ask: ExecAsk = word("ask")?.parse().map_err(|error| format!("{error}"))?;
    let security: ExecSecurity = word("security")?.parse().map_err(|error| format!("{error}"))?;
    let is = |key: &str| input[key] == true;
    Ok(json!({"requiresApproval": requires_approval(ask, security, is("analysisOk"), is("allowlistSatisfied"))}))
}

fn picked(pair: &Value) -> Result<&'static str, String> {
    let words = texts(pair);
    let [a, b] = words.as_slice() else { return Err(format!("{pair} is not a pair of words")) };
    if let (Ok(a), Ok(b)) = (a.parse::<ExecSecurity>(), b.parse::<ExecSecurity>()) {
        return Ok(a.stricter(b).name());
    }
    match (a.parse::<ExecAsk>(), b.parse::<ExecAsk>()) {
        (Ok(a), Ok(b)) => Ok(a.more_demanding(b).name()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

pub(super) fn environment(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["env"])?;
    let overrides: Vec<(String, String)> = input["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    Ok(match ChildEnvironment::default().build([], &overrides) {
        Ok(_) => json!({"ok": true}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    })
}
