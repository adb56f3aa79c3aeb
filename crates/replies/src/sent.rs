//! Records what messaging tools sent during a run, and detects replies that repeat it.

use pinch_agent_core::tool::JsonObject;
use serde_json::Value;

/// Maximum number of entries; the newest are kept.
const MAX_SENT: usize = 200;

/// The shortest text that is compared.
const MIN_COMPARED: usize = 10;

/// Normalises a text for comparison: lower case, no emoji, white space collapsed.
pub fn normal_form(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut is_apart = false;
    // In a single pass, since an answer may be long.
    for c in text.chars().flat_map(char::to_lowercase).filter(|c| !is_emoji(*c)) {
        if c.is_whitespace() {
            is_apart = !normal.is_empty();
            continue;
        }
        if std::mem::take(&mut is_apart) {
            normal.push(' ');
        }
        normal.push(c);
    }
    normal
}

/// Returns whether a character is displayed as emoji by default.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c),
        0xA9 | 0xAE | 0x203C | 0x2049 | 0x2122 | 0x2139 | 0x2194..=0x21AA | 0x231A..=0x23FF | 0x24C2 | 0x25AA..=0x25FE
        | 0x2600..=0x27BF | 0x2934..=0x2935 | 0x2B05..=0x2B55 | 0x3030 | 0x303D | 0x3297 | 0x3299
        | 0x1F000..=0x1FAFF)
}

/// Returns whether a text repeats something already sent: one contains the other. A short sent text does not suppress a long answer.
pub fn is_duplicate<S: AsRef<str>>(text: &str, sent: &[S]) -> bool {
    if sent.is_empty() {
        return false;
    }
    let text = normal_form(text);
    let n_text = text.chars().count();
    n_text >= MIN_COMPARED
        && sent.iter().any(|sent| {
            let sent = normal_form(sent.as_ref());
            let n_sent = sent.chars().count();
            n_sent >= MIN_COMPARED && (sent.contains(&text) || (text.contains(&sent) && n_sent * 2 >= n_text))
        })
}

/// Target of a message sent by a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentTarget {
    /// The tool.
    pub tool: String,
    /// The channel.
    pub provider: String,
    /// The account, if the call names one.
    pub account_id: Option<String>,
    /// The normalised recipient.
    pub to: String,
}

/// Returns whether a tool call sends something.
pub fn is_send(tool: &str, args: &JsonObject) -> bool {
    match tool {
        "sessions_send" => true,
        "message" => matches!(text_arg(args, "action").map(str::trim), Some("send" | "thread-reply")),
        _ => false,
    }
}

/// Returns the text that a call sends.
pub fn text_of(args: &JsonObject) -> Option<String> {
    ["content", "message"]
        .iter()
        .find_map(|name| text_arg(args, name).filter(|text| !text.is_empty()))
        .map(str::to_owned)
}

/// Returns the target of a call; `normalise` is the channel's normalisation of recipients.
pub fn target_of(tool: &str, args: &JsonObject, normalise: &dyn Fn(&str) -> String) -> Option<SentTarget> {
    if tool != "message" || !is_send(tool, args) {
        return None;
    }
    let to = text_arg(args, "to").map(str::trim).filter(|to| !to.is_empty())?;
    let hint =
        ["provider", "channel"].iter().find_map(|name| text_arg(args, name).map(str::trim).filter(|t| !t.is_empty()));
    let provider = hint.map_or_else(|| "message".to_owned(), str::to_lowercase);
    let to = normalise(to);
    let account_id = text_arg(args, "accountId").map(str::to_owned);
    (!to.is_empty()).then(|| SentTarget { tool: tool.to_owned(), provider, account_id, to })
}

/// Normalises a recipient if the channel has no normalisation of its own.
pub fn plain_target(to: &str) -> String {
    to.trim().to_lowercase()
}

fn text_arg<'a>(args: &'a JsonObject, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

/// Returns the media that a call sends.
pub fn media_of(args: &JsonObject) -> Vec<String> {
    let single = ["media", "mediaUrl", "path", "filePath", "audioPath"].iter().filter_map(|name| text_arg(args, name));
    let several = args.get("mediaUrls").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut found: Vec<String> = Vec::new();
    for media in single.chain(several).map(str::trim).filter(|media| !media.is_empty()) {
        if !found.iter().any(|known| known == media) {
            found.push(media.to_owned());
        }
    }
    found
}

fn keep_newest<T>(list: &mut Vec<T>) {
    let n_old = list.len().saturating_sub(MAX_SENT);
    list.drain(..n_old);
}

/// Sent messages, newest last.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    texts: Vec<String>,
    media_urls: Vec<String>,
    targets: Vec<SentTarget>,
}

impl Sent {
    /// Records a successful send.
    pub fn add(&mut self, text: Option<String>, media_urls: Vec<String>, target: Option<SentTarget>) {
        self.texts.extend(text);
        self.media_urls.extend(media_urls);
        self.targets.extend(target);
        keep_newest(&mut self.texts);
        keep_newest(&mut self.media_urls);
        keep_newest(&mut self.targets);
    }

    /// Returns paths and URLs of media.
    pub fn media_urls(&self) -> &[String] {
        &self.media_urls
    }

    /// Returns the texts.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the targets.
    pub fn targets(&self) -> &[SentTarget] {
        &self.targets
    }

    /// Returns whether anything was sent.
    pub fn any(&self) -> bool {
        !self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(value: Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn texts_are_compared_without_emoji_case_and_white_space() {
        for (text, expected) in [
            ("  Hello\n\t World ", "hello world"),
            ("🎉 Done 🎉", "done"),
            ("a 🎉 b", "a b"),
            ("© ™ 5", "5"),
            ("ÄÖ", "äö"),
            ("日本", "日本"),
            ("", ""),
        ] {
            assert_eq!(normal_form(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_repeats_another_if_one_contains_the_other() {
        for (text, sent, expected) in [
            ("The build is green.", "the BUILD is green. 🎉", true),
            ("build is green", "The build is green.", true),
            ("The build is green, at last.", "The build is green", true),
            ("0123456789", "0123456789", true),
            ("123456789", "123456789", false),
            ("0123456789 0123456789", "0123456789", false),
            ("0123456789 012345678", "0123456789", true),
            ("something else entirely", "The build is green.", false),
        ] {
            assert_eq!(is_duplicate(text, &[sent]), expected, "{text:?} {sent:?}");
        }
        assert!(!is_duplicate::<&str>("The build is green.", &[]));
    }

    #[test]
    fn calls_that_send_name_text_target_and_media() {
        let target = |tool: &str, value: Value| {
            let target = target_of(tool, &args(value), &plain_target)?;
            Some(format!("{} {} {} {:?}", target.tool, target.provider, target.to, target.account_id))
        };
        for (tool, value, expected) in [
            ("message", json!({"action": "send", "to": " Ada "}), Some("message message ada None")),
            (
                "message",
                json!({"action": " thread-reply ", "to": "a", "channel": " Slack ", "accountId": "x"}),
                Some("message slack a Some(\"x\")"),
            ),
            (
                "message",
                json!({"action": "send", "to": "a", "provider": "IRC", "channel": "b"}),
                Some("message irc a None"),
            ),
            ("message", json!({"action": "send", "to": " "}), None),
            ("message", json!({"action": "react", "to": "a"}), None),
            ("sessions_send", json!({"action": "send", "to": "a"}), None),
        ] {
            assert_eq!(target(tool, value.clone()).as_deref(), expected, "{tool} {value}");
        }
        assert!(is_send("sessions_send", &args(json!({}))) && !is_send("other", &args(json!({"action": "send"}))));
        assert_eq!(text_of(&args(json!({"content": "", "message": "m"}))).as_deref(), Some("m"));
        assert_eq!(text_of(&args(json!({"content": "c", "message": "m"}))).as_deref(), Some("c"));
        let media = json!({"media": " a ", "path": "b", "filePath": "a", "mediaUrls": ["c", " ", "b", 1]});
        assert_eq!(media_of(&args(media)), ["a", "b", "c"]);
    }

    #[test]
    fn the_newest_messages_are_kept() {
        let mut sent = Sent::default();
        assert!(!sent.any());
        for n in 0..=MAX_SENT {
            let target = SentTarget { to: n.to_string(), ..SentTarget::default() };
            sent.add(Some(n.to_string()), vec![n.to_string()], Some(target));
        }
        assert!(sent.any());
        assert_eq!((sent.texts().len(), sent.texts()[0].as_str()), (MAX_SENT, "1"));
        assert_eq!((sent.media_urls().len(), sent.targets().len()), (MAX_SENT, MAX_SENT));
        assert_eq!((sent.media_urls()[0].as_str(), sent.targets()[0].to.as_str()), ("1", "1"));
    }
}
