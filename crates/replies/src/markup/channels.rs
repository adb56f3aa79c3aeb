//! Channel tokens by which a model marks the parts of its answer, when they arrive as text.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::{Leak, and_then, code_at};

/// Separates planning from the answer.
const DELIMITER: &str = "<channel|>";

/// Begins planning.
const PLANNING: &str = "<|channel>";

/// The longest header between two tokens, in bytes.
const MAX_HEADER: usize = 128;

#[expect(clippy::unwrap_used, reason = "the pattern is constant")]
static TOKEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<[|｜]([\w▁.:-]{1,64})[|｜]>").unwrap());

/// Removes the tokens together with parts that are not for people. Code is left alone.
pub fn strip_channels(text: &str) -> Cow<'_, str> {
    and_then(without_planning(text), without_tokens)
}

/// Drops everything before `<channel|>`, and between `<|channel>` and it. Of several answers the last is kept.
fn without_planning(text: &str) -> Cow<'_, str> {
    if !text.contains(DELIMITER) && !text.contains(PLANNING) {
        return text.into();
    }
    let is_code = code_at(text);
    let openings: Vec<usize> = text.match_indices(PLANNING).map(|(at, _)| at).filter(|at| !is_code(*at)).collect();
    let opening = |from: usize, to: usize| {
        let next = openings.partition_point(|at| *at < from);
        openings.get(next).copied().filter(|at| *at < to)
    };
    let (mut shown, mut from, mut continues) = (String::new(), 0, true);
    // Start of the first word after `from`.
    let first_word = |from: usize| text.len() - text[from..].trim_start().len();
    let mut word = first_word(0);
    for (at, _) in text.match_indices(DELIMITER) {
        let opened = opening(from, at);
        if is_code(at) || (opened.is_none() && (word >= at || !delimits(text, at))) {
            continue;
        }
        match opened.map_or(&text[from..at], |end| &text[from..end]) {
            before if opened.is_some() && continues => shown.push_str(before),
            part if !part.trim().is_empty() && (opened.is_some() || from > 0) => part.clone_into(&mut shown),
            _ => {}
        }
        continues = opened.is_some();
        from = at + DELIMITER.len();
        word = first_word(from);
    }
    let rest = &text[from..opening(from, text.len()).unwrap_or(text.len())];
    if continues {
        shown.push_str(rest);
    } else if !rest.trim().is_empty() {
        rest.clone_into(&mut shown);
    }
    shown.into()
}

/// Returns whether a delimiter after text is in a position where a model puts it: at the start of a line or directly between two texts.
/// Between spaces it is an ordinary word.
fn delimits(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + DELIMITER.len()..]);
    let is_tight = !before.ends_with(char::is_whitespace) && !after.starts_with([' ', '\t']);
    before.ends_with('\n') || is_tight
}

/// Removes tokens and names of parts, and the parts themselves if they are reasoning or addressed to a tool.
fn without_tokens(text: &str) -> Cow<'_, str> {
    // Compiling the pattern takes longer than a whole run, so it is only compiled if needed.
    if !text.contains("<|") && !text.contains("<｜") {
        return text.into();
    }
    let tokens: Vec<_> =
        TOKEN.captures_iter(text).filter_map(|found| Some((found.get(0)?.range(), found.get(1)?.as_str()))).collect();
    if tokens.is_empty() {
        return text.into();
    }
    let is_code = code_at(text);
    let tokens: Vec<_> = tokens.into_iter().filter(|(range, _)| !is_code(range.start)).collect();
    let (mut kept, mut header, mut hidden) = (String::with_capacity(text.len()), String::new(), false);
    kept.push_str(&text[..tokens.first().map_or(text.len(), |(range, _)| range.start)]);
    for (n, (range, name)) in tokens.iter().enumerate() {
        let next = tokens.get(n + 1);
        let part = &text[range.end..next.map_or(text.len(), |(next, _)| next.start)];
        let names_part = match *name {
            "start" | "end" | "return" | "call" => {
                header.clear();
                hidden = false;
                *name == "start"
            }
            "message" => {
                hidden = is_hidden(&header);
                false
            }
            name => matches!(name, "channel" | "constrain"),
        };
        let is_header = names_part && part.len() <= MAX_HEADER && next.is_some_and(|(_, next)| is_after_header(next));
        if is_header {
            header.push_str(part);
            header.push('\n');
        } else if !hidden {
            // Two words must not be joined.
            if kept.ends_with(char::is_alphanumeric) && part.starts_with(char::is_alphanumeric) {
                kept.push(' ');
            }
            kept.push_str(part);
        }
    }
    kept.into()
}

/// What the channel tokens so far say about the text after them.
#[derive(Clone, Debug, Default)]
pub(super) struct ChannelState {
    header: String,
    /// Whether a name or address may follow.
    expects_header: bool,
    /// Whether the text is not for people.
    pub(super) is_hidden: bool,
}

impl ChannelState {
    /// Decides about the token at the start of a text, or the planning that it begins.
    pub(super) fn token_at(&mut self, text: &str) -> Leak {
        if text.starts_with(PLANNING) {
            return text.find(DELIMITER).map_or(Leak::Undecided, |at| Leak::Whole(at + DELIMITER.len()));
        }
        let token = match read_token(text) {
            TextToken::None => return Leak::None,
            TextToken::Undecided => return Leak::Undecided,
            TextToken::Whole(token) => token,
        };
        self.expects_header = false;
        match token.name {
            "start" | "end" | "return" | "call" => {
                self.header.clear();
                (self.is_hidden, self.expects_header) = (false, token.name == "start");
            }
            "message" => self.is_hidden = is_hidden(&self.header),
            "channel" | "constrain" => self.expects_header = true,
            _ => {}
        }
        Leak::Whole(token.len)
    }

    /// Decides about the name or address at the start of a text.
    pub(super) fn header_at(&mut self, text: &str) -> Leak {
        if !self.expects_header {
            return Leak::None;
        }
        let next = text.match_indices('<').find_map(|(at, _)| match read_token(&text[at..]) {
            TextToken::None => None,
            found => Some((at, found)),
        });
        let leak = match next {
            Some((at, TextToken::Whole(token))) if at <= MAX_HEADER && is_after_header(token.name) => Leak::Whole(at),
            Some((at, TextToken::Undecided)) if at <= MAX_HEADER => return Leak::Undecided,
            None if text.len() <= MAX_HEADER => return Leak::Undecided,
            _ => Leak::None,
        };
        self.expects_header = false;
        if let Leak::Whole(len) = leak {
            self.header.push_str(&text[..len]);
            self.header.push('\n');
        }
        leak
    }
}

/// What stands at the start of a text.
enum TextToken<'t> {
    None,
    Undecided,
    Whole(ChannelToken<'t>),
}

struct ChannelToken<'t> {
    name: &'t str,
    len: usize,
}

/// The longest name of a token, in characters.
const MAX_TOKEN_NAME: usize = 64;

fn read_token(text: &str) -> TextToken<'_> {
    let is_bar = |c: char| c == '|' || c == '｜';
    let Some(inner) = text.strip_prefix('<') else { return TextToken::None };
    let Some(bar) = inner.chars().next() else { return TextToken::Undecided };
    let name = if is_bar(bar) { &inner[bar.len_utf8()..] } else { return TextToken::None };
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '▁' | '.' | ':' | '-');
    let rest = name.trim_start_matches(is_of_name);
    let name = &name[..name.len() - rest.len()];
    if name.chars().count() > MAX_TOKEN_NAME {
        return TextToken::None;
    }
    let mut end = rest.chars();
    match (end.next(), end.next()) {
        (None, _) => TextToken::Undecided,
        (Some(bar), None) if is_bar(bar) && !name.is_empty() => TextToken::Undecided,
        (Some(bar), Some('>')) if is_bar(bar) && !name.is_empty() => {
            TextToken::Whole(ChannelToken { name, len: text.len() - end.as_str().len() })
        }
        _ => TextToken::None,
    }
}

fn is_after_header(name: &str) -> bool {
    matches!(name, "start" | "channel" | "constrain" | "message")
}

fn is_hidden(header: &str) -> bool {
    header.lines().any(|line| line.trim() == "analysis" || line.contains("to="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cases: &[(&str, &str)]) {
        for (text, expect) in cases {
            assert_eq!(strip_channels(text).trim(), *expect, "{text}");
        }
    }

    #[test]
    fn planning_is_removed() {
        check(&[
            ("internal planning<channel|>Visible", "Visible"),
            ("I plan é.\n<channel|> Sichtbar 🙂", "Sichtbar 🙂"),
            ("I plan.\n<channel|>", ""),
            ("plan<channel|><|assistant|>Visible", "Visible"),
            ("plan<channel|>Visible<channel|>", "Visible"),
            ("plan<channel|>Use token <channel|>", "Use token <channel|>"),
            ("The marker <channel|> splits streams.", "The marker <channel|> splits streams."),
            ("<channel|>Visible", "<channel|>Visible"),
            ("Hi <|channel>thought\nplan<channel|>there", "Hi there"),
            ("<|channel>thought\nplan", ""),
            ("`<channel|>` and\n```\na<channel|>b\n```", "`<channel|>` and\n```\na<channel|>b\n```"),
        ]);
    }

    #[test]
    fn channel_tokens_are_removed() {
        check(&[
            ("<|assistant|>Here it is<|end|>", "Here it is"),
            ("<｜begin▁of▁sentence｜>Hello", "Hello"),
            ("Start <|tool_begin|>middle<|tool_end|> end<|a|><|b|>é", "Start middle end é"),
            ("<|channel|>Visible", "Visible"),
            ("`<|end|>` and ``` <|end|>", "`<|end|>` and ``` <|end|>"),
            ("```\n<|end|>\n```", "```\n<|end|>\n```"),
            ("f <| g |> h, a <|> b", "f <| g |> h, a <|> b"),
        ]);
    }

    #[test]
    fn parts_that_are_not_for_people_are_removed() {
        check(&[
            (
                "<|channel|>analysis<|message|>Plan<|end|><|start|>assistant<|channel|>final<|message|>Answer<|return|>",
                "Answer",
            ),
            ("<|channel|>commentary<|message|>I look.<|end|>", "I look."),
            ("Hi<|channel|>commentary to=functions.x <|constrain|>json<|message|>{}<|call|>", "Hi"),
        ]);
    }

    #[test]
    fn answers_between_planning_are_joined_and_after_planning_the_last_counts() {
        check(&[
            ("One <|channel>plan<channel|>two <|channel>plan<channel|>three", "One two three"),
            ("One <|channel>plan<channel|>two <|channel>plan", "One two"),
            ("plan<channel|>One<|channel>plan<channel|>two", "Onetwo"),
            ("<|channel>", ""),
            ("<|channel|>One", "One"),
        ]);
    }

    #[test]
    fn a_token_has_a_name_between_bars() {
        for (text, expect) in [
            ("<", "undecided"),
            ("<|", "undecided"),
            ("<|a", "undecided"),
            ("<|a|", "undecided"),
            ("<|a|>b", "a"),
            ("<｜a｜>", "a"),
            ("<|▁.:-_é|>", "▁.:-_é"),
            ("<|channel>", "none"),
            ("<|a>", "none"),
            ("<||", "none"),
            ("<||>", "none"),
            ("<|a b|>", "none"),
            ("<|a|b", "none"),
            ("<a|>", "none"),
            ("a", "none"),
        ] {
            let found = match read_token(text) {
                TextToken::None => "none",
                TextToken::Undecided => "undecided",
                TextToken::Whole(token) => token.name,
            };
            assert_eq!(found, expect, "{text}");
        }
    }

    #[test]
    fn only_a_token_of_a_header_ends_a_name() {
        for (text, expect) in [
            ("analysis<|message|>", Leak::Whole("analysis".len())),
            ("analysis<|end|>", Leak::None),
            ("analysis", Leak::Undecided),
            ("analysis<|mess", Leak::Undecided),
            ("a < b <|channel|>", Leak::Whole("a < b ".len())),
        ] {
            let mut state = ChannelState { expects_header: true, ..ChannelState::default() };
            assert_eq!(state.header_at(text), expect, "{text}");
        }
        let long = "a".repeat(MAX_HEADER + 1);
        for text in [long.clone(), format!("{long}<|message|>"), format!("{long}<|mess")] {
            let mut state = ChannelState { expects_header: true, ..ChannelState::default() };
            assert_eq!(state.header_at(&text), Leak::None);
        }
    }
}
