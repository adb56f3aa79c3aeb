//! Displays tool calls: an emoji, a title, and a short description.

use serde_json::Value;

pub mod table;

pub mod shown;

use table::{Display, display_of};

/// Normalises a tool's name for lookup in tables.
pub fn normal_name(name: &str) -> String {
    match name.trim().to_lowercase().as_str() {
        "bash" => "exec".to_owned(),
        "apply-patch" => "apply_patch".to_owned(),
        other => other.to_owned(),
    }
}

const MAX_VALUE: usize = 160;
const MAX_DETAILS: usize = 8;

/// Describes a call in a few words; `None` if there is nothing to say. `home` is shown as `~`.
pub fn tool_meta(name: &str, args: &Value, home: Option<&str>) -> Option<String> {
    let name = normal_name(name);
    let display = display_of(&name);
    let action = args["action"].as_str().map(str::trim).filter(|action| !action.is_empty());
    let known = action.and_then(|action| display.and_then(|d| d.actions.iter().find(|(name, ..)| *name == action)));
    let verb = action.map(|action| {
        known.map_or_else(
            || action.replace('_', " "),
            |(name, label, _)| {
                if label.is_empty() { name.replace('_', " ") } else { (*label).to_owned() }
            },
        )
    });
    let detail = match name.as_str() {
        "read" => read_detail(args),
        "write" | "edit" | "attach" => path_arg(args),
        _ => None,
    };
    let detail = detail.or_else(|| {
        let keys = known.map_or_else(|| display.map_or(table::FALLBACK, |d| d.keys), |(_, _, keys)| keys);
        detail_of(args, keys)
    });
    let mut parts: Vec<String> = verb.into_iter().chain(detail).collect();
    if name == "exec" {
        parts.extend(
            ["pty", "elevated"].iter().filter(|flag| args[**flag] == Value::Bool(true)).map(|f| (*f).to_owned()),
        );
    }
    let meta = parts.join(" · ");
    let meta = match home.filter(|home| home.len() > 1) {
        Some(home) => meta.replace(home, "~"),
        None => meta,
    };
    (!meta.is_empty()).then_some(meta)
}

fn path_arg(args: &Value) -> Option<String> {
    args["path"].as_str().or_else(|| args["file_path"].as_str()).map(str::to_owned)
}

fn read_detail(args: &Value) -> Option<String> {
    let path = path_arg(args)?;
    Some(match (args["offset"].as_f64(), args["limit"].as_f64()) {
        (Some(offset), Some(limit)) => format!("{path}:{offset}-{}", offset + limit),
        _ => path,
    })
}

fn detail_of(args: &Value, keys: &[&str]) -> Option<String> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for key in keys {
        let value = key.split('.').fold(args, |value, part| &value[part]);
        if let Some(shown) = shown_value(value) {
            let entry = (label_of(key), shown);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    match entries.as_slice() {
        [] => None,
        [(_, value)] => Some(value.clone()),
        _ => {
            let parts: Vec<String> =
                entries.iter().take(MAX_DETAILS).map(|(label, value)| format!("{label} {value}")).collect();
            Some(parts.join(" · "))
        }
    }
}

fn shown_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let line = text.trim().lines().next().unwrap_or("").trim();
            let shown = if line.chars().count() > MAX_VALUE {
                line.chars().take(MAX_VALUE - 3).chain(['…']).collect()
            } else {
                line.to_owned()
            };
            (!shown.is_empty()).then_some(shown)
        }
        Value::Bool(true) => Some("true".to_owned()),
        Value::Number(number) => number.as_f64().filter(|n| *n != 0.0 && n.is_finite()).map(|_| number.to_string()),
        Value::Array(items) => {
            let shown: Vec<String> = items.iter().filter_map(shown_value).collect();
            let more = if shown.len() > 3 { "…" } else { "" };
            (!shown.is_empty()).then(|| shown[..shown.len().min(3)].join(", ") + more)
        }
        _ => None,
    }
}

fn label_of(key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let fixed = match last {
        "agentId" => "agent",
        "sessionKey" => "session",
        "targetId" => "target",
        "targetUrl" => "url",
        "nodeId" => "node",
        "requestId" => "request",
        "messageId" => "message",
        "threadId" => "thread",
        "channelId" => "channel",
        "guildId" => "guild",
        "userId" => "user",
        "runTimeoutSeconds" | "timeoutSeconds" => "timeout",
        "includeTools" => "tools",
        "pollQuestion" => "poll",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let mut label = String::new();
    for c in last.chars() {
        if c.is_uppercase() && !label.is_empty() {
            label.push(' ');
        }
        label.extend(if c == '_' { ' '.to_lowercase() } else { c.to_lowercase() });
    }
    label
}

/// Formats one or more calls of a tool as one line.
pub fn aggregate(name: &str, metas: &[String], markdown: bool) -> String {
    let name = normal_name(name);
    let head = match display_of(&name) {
        Some(Display { emoji, title, .. }) => format!("{emoji} {title}"),
        None => format!("🧩 {}", title_of(&name)),
    };
    let metas: Vec<&str> = metas.iter().map(|meta| meta.trim()).filter(|meta| !meta.is_empty()).collect();
    if metas.is_empty() {
        return head;
    }
    let (flags, body) = if name == "exec" { split_flags(&grouped(&metas)) } else { (String::new(), grouped(&metas)) };
    let body = if markdown && !body.is_empty() && !body.contains('`') { format!("`{body}`") } else { body };
    let shown: Vec<String> = [flags, body].into_iter().filter(|part| !part.is_empty()).collect();
    format!("{head}: {}", shown.join(" · "))
}

/// Separates the flags before a command from the command.
fn split_flags(meta: &str) -> (String, String) {
    let is_flag = |part: &&str| matches!(*part, "elevated" | "pty");
    let parts: Vec<&str> = meta.split(" · ").map(str::trim).collect();
    let flags: Vec<&str> = parts.iter().copied().filter(|part| is_flag(part)).collect();
    let rest: Vec<&str> = parts.into_iter().filter(|part| !is_flag(part)).collect();
    (flags.join(" · "), rest.join(" · "))
}

/// Groups paths by directory, after everything else.
fn grouped(metas: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    for meta in metas {
        match meta.rsplit_once('/').filter(|_| is_path(meta)) {
            Some((folder, file)) => match folders.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, files)) => files.push(file),
                None => folders.push((folder, vec![file])),
            },
            None => parts.push((*meta).to_owned()),
        }
    }
    parts.extend(folders.into_iter().map(|(folder, files)| match files.as_slice() {
        [file] => format!("{folder}/{file}"),
        files => format!("{folder}/{{{}}}", files.join(", ")),
    }));
    parts.join("; ")
}

fn is_path(meta: &str) -> bool {
    let rest = meta.strip_prefix('~').unwrap_or(meta);
    let odd = ["://", "·", "&&", "||", "→"].iter().any(|odd| meta.contains(odd));
    rest.starts_with('/') && !odd && !meta.contains(char::is_whitespace) && !rest.ends_with('/')
}

fn title_of(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut chars = word.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
    });
    let title = words.collect::<Vec<_>>().join(" ");
    if title.is_empty() { "Tool".to_owned() } else { title }
}

#[cfg(test)]
mod tests;
