//! A table of known chat channels.
//!
//! The configuration (`channels.<name>`) overrides individual values; the limits of a sink apply in addition.

use super::directives::threading::ReplyToMode;
use super::unit::{TextLimit, TextUnit};

/// How a channel handles replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The longest message.
    pub text: TextLimit,
    /// Whether it renders Markdown.
    pub renders_markdown: bool,
    /// Whether replies are sent in blocks without `channels.<name>.blockStreaming`, if block streaming is enabled at all.
    pub streams_blocks: bool,
    /// Minimum length of joined blocks, if the channel prefers one.
    pub coalesce_min: Option<usize>,
    /// Whether explicit reply tags are honoured while threads are off.
    pub tags_when_off: bool,
    /// Which replies stay in a thread without `channels.<name>.replyToMode`.
    pub threads: ReplyToMode,
}

/// Limits messages to this many UTF-16 code units.
const fn utf16(max: usize) -> TextLimit {
    TextLimit { max, unit: TextUnit::Utf16 }
}

/// Limits messages to this many characters.
const fn chars(max: usize) -> TextLimit {
    TextLimit { max, unit: TextUnit::Chars }
}

const fn rules(name: &'static str, text: TextLimit) -> ChannelRules {
    ChannelRules {
        name,
        text,
        renders_markdown: true,
        streams_blocks: false,
        coalesce_min: None,
        tags_when_off: false,
        threads: ReplyToMode::All,
    }
}

/// No replies stay in a thread.
const OFF: ReplyToMode = ReplyToMode::Off { tags_allowed: false };

/// A channel that is not in the table.
const OTHER: ChannelRules = ChannelRules { renders_markdown: false, ..rules("", chars(4_000)) };

/// All known channels.
const CHANNELS: &[ChannelRules] = &[
    ChannelRules { streams_blocks: true, threads: ReplyToMode::First, ..rules("telegram", utf16(4_000)) },
    ChannelRules { coalesce_min: Some(1_500), threads: OFF, ..rules("discord", utf16(2_000)) },
    ChannelRules {
        coalesce_min: Some(1_500),
        tags_when_off: true,
        threads: ReplyToMode::Off { tags_allowed: true },
        ..rules("slack", chars(4_000))
    },
    ChannelRules { coalesce_min: Some(1_500), renders_markdown: false, ..rules("signal", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("whatsapp", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("imessage", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("irc", TextLimit { max: 350, unit: TextUnit::Bytes }) },
    ChannelRules { threads: OFF, ..rules("googlechat", chars(4_000)) },
    rules("webchat", chars(4_000)),
    rules("matrix", chars(4_000)),
    rules("mattermost", chars(4_000)),
    rules("msteams", chars(4_000)),
];

/// Returns whether a name is that of a known channel.
pub fn is_known(channel: &str) -> bool {
    !rules_of(channel).name.is_empty()
}

/// Returns the rules of a channel, or default ones if it is unknown.
pub fn rules_of(channel: &str) -> &'static ChannelRules {
    CHANNELS.iter().find(|rules| rules.name.eq_ignore_ascii_case(channel.trim())).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_known_by_name_in_any_case() {
        assert!(is_known(" Telegram ") && !is_known("pigeon") && !is_known(""));
        let unknown = rules_of("pigeon");
        assert_eq!((unknown.text, unknown.renders_markdown), (TextLimit { max: 4_000, unit: TextUnit::Chars }, false));
        assert_eq!(rules_of("IRC").text, TextLimit { max: 350, unit: TextUnit::Bytes });
    }
}
