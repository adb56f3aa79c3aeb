//! What is known about chat channels: one table.
//!
//! The configuration (`channels.<name>`) replaces single values; what a sink says about itself holds beside them.

use super::unit::{TextLimit, TextUnit};

/// How a channel takes replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRules {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The longest message.
    pub text: TextLimit,
    /// Whether it renders Markdown.
    pub renders_markdown: bool,
    /// Whether replies go out in blocks without `channels.<name>.blockStreaming`, once they do at all.
    pub streams_blocks: bool,
    /// How long joined blocks should be at least, if the channel has an opinion.
    pub coalesce_min: Option<usize>,
    /// Whether explicit reply tags count where threads are off.
    pub tags_when_off: bool,
}

/// A message of at most so many UTF-16 units.
const fn utf16(max: usize) -> TextLimit {
    TextLimit { max, unit: TextUnit::Utf16 }
}

/// A message of at most so many characters.
const fn chars(max: usize) -> TextLimit {
    TextLimit { max, unit: TextUnit::Chars }
}

const fn rules(name: &'static str, text: TextLimit) -> ChannelRules {
    ChannelRules { name, text, renders_markdown: true, streams_blocks: false, coalesce_min: None, tags_when_off: false }
}

/// A channel that is not in the table.
const OTHER: ChannelRules = ChannelRules { renders_markdown: false, ..rules("", chars(4_000)) };

/// All channels that something is known about.
const CHANNELS: &[ChannelRules] = &[
    ChannelRules { streams_blocks: true, ..rules("telegram", utf16(4_000)) },
    ChannelRules { coalesce_min: Some(1_500), ..rules("discord", utf16(2_000)) },
    ChannelRules { coalesce_min: Some(1_500), tags_when_off: true, ..rules("slack", chars(4_000)) },
    ChannelRules { coalesce_min: Some(1_500), renders_markdown: false, ..rules("signal", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("whatsapp", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("imessage", chars(4_000)) },
    ChannelRules { renders_markdown: false, ..rules("irc", TextLimit { max: 350, unit: TextUnit::Bytes }) },
    rules("googlechat", chars(4_000)),
    rules("webchat", chars(4_000)),
    rules("matrix", chars(4_000)),
    rules("mattermost", chars(4_000)),
    rules("msteams", chars(4_000)),
];

/// The rules of a channel; those of any other one where nothing is known about it.
pub fn rules_of(channel: &str) -> &'static ChannelRules {
    CHANNELS.iter().find(|rules| rules.name.eq_ignore_ascii_case(channel.trim())).unwrap_or(&OTHER)
}
