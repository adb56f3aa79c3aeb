//! Parses the JSON of streamed frames: borrowed if it is valid, repaired otherwise.
//!
//! A decoder declares the members it needs as a `Deserialize` struct of these types, which never fail for a member of another type, and
//! parses each frame with [`read`].

use std::borrow::Cow;
use std::fmt;

use pinch_stdx::json::lossy::escaped_unit;
use pinch_stdx::json::repair;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::LlmErrorKind;

/// The content of a frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadFrame<T> {
    /// The content.
    pub value: T,
    /// Whether the frame was repaired. Pass it to [`ReplyBuilder::delta`](super::reply::ReplyBuilder::delta).
    pub quality: TextQuality,
}

/// Whether the text of a frame was valid JSON. Strings of a repaired frame may contain marks for lone surrogates;
/// [`ReplyBuilder::delta`](super::reply::ReplyBuilder::delta) joins or removes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextQuality {
    /// Valid JSON.
    #[default]
    Intact,
    /// The text was repaired before it was parsed.
    Repaired,
}

impl TextQuality {
    /// Returns `Repaired` if either is.
    #[must_use]
    pub(crate) fn worse(self, other: Self) -> Self {
        if self == Self::Repaired { self } else { other }
    }
}

/// Parses the JSON of a frame, retrying once after repairing broken strings (raw control characters, invalid escapes, lone surrogates).
/// `scratch` then holds the repaired text.
///
/// # Errors
/// Returns the strict parser's error.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str, scratch: &'a mut String) -> Result<ReadFrame<T>, serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(ReadFrame { value, quality: TextQuality::Intact }),
        Err(error) => {
            let marked = mark_surrogates(text);
            *scratch = repair::repair(&marked).into_owned();
            serde_json::from_str(scratch)
                .map(|value| ReadFrame { value, quality: TextQuality::Repaired })
                .map_err(|_| error)
        }
    }
}

/// Returns the failure kind for an unreadable frame: JSON that ends too early means that the stream was cut off.
pub fn error_kind(error: &serde_json::Error) -> LlmErrorKind {
    if error.is_eof() { LlmErrorKind::StreamCut } else { LlmErrorKind::Protocol }
}

/// First code point of the marks for lone surrogates: in a private use area, so that no real text is mistaken for one. Only repaired frames
/// are searched for them.
const MARKS: u32 = 0xF_0000;

/// Replaces lone `\udXXX` escapes with marks, so that a strict parser accepts the text.
fn mark_surrogates(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        marked.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = escaped_unit(rest.as_bytes());
        let taken = match unit {
            Some(0xD800..0xDC00) if matches!(escaped_unit(&rest.as_bytes()[6..]), Some(0xDC00..0xE000)) => 12,
            Some(unit @ 0xD800..0xE000) => {
                marked.extend(char::from_u32(MARKS + unit - 0xD800));
                rest = &rest[6..];
                continue;
            }
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        marked.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    marked.push_str(rest);
    marked
}

/// Joins surrogate pairs that a provider split across two deltas of a block, and drops lone surrogates.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    /// The block whose last delta ended with a high surrogate, and that surrogate.
    held: Option<(usize, u32)>,
}

impl Surrogates {
    /// Returns the text of a delta without marks. Costs nothing for intact text.
    pub(crate) fn clean<'t>(&mut self, index: usize, text: &'t str, quality: TextQuality) -> Cow<'t, str> {
        if quality == TextQuality::Intact {
            self.held = None;
            return Cow::Borrowed(text);
        }
        let mut high = self.held.take().filter(|(held_for, _)| *held_for == index).map(|(_, high)| high);
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            let unit = u32::from(c).wrapping_sub(MARKS);
            match (unit, high.take()) {
                (0..0x400, _) => high = Some(unit),
                (0x400..0x800, Some(high)) => clean.extend(char::from_u32(0x1_0000 + (high << 10) + unit - 0x400)),
                (0x400..0x800, None) => {}
                _ => clean.push(c),
            }
        }
        self.held = high.map(|high| (index, high));
        Cow::Owned(clean)
    }
}

/// Returns the text of a single frame without marks.
pub(crate) fn unmarked(text: &str, quality: TextQuality) -> Cow<'_, str> {
    Surrogates::default().clean(0, text, quality)
}

/// A text member: a string, or nothing if the member is null or of another type.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TextMember<'a>(pub(crate) Option<Cow<'a, str>>);

impl TextMember<'_> {
    /// Returns the text, if any.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the text if it is not empty.
    pub fn non_empty(&self) -> Option<&str> {
        self.get().filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextMember<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor { objects: Objects::Ignored }).map(TextMember)
    }
}

/// Parses a text; a value of another type gives none.
struct TextVisitor {
    objects: Objects,
}

/// Treatment of an object where a text is expected.
enum Objects {
    Ignored,
    /// Use its JSON as the text.
    AsText,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.objects {
            Objects::Ignored => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
            Objects::AsText => {
                let object = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Some(Cow::Owned(object.to_string())))
            }
        }
    }
}

/// A member with JSON as text, such as the arguments of a call; embedded JSON is accepted as well.
#[derive(Debug, Default)]
pub struct JsonText<'a>(pub(crate) Option<Cow<'a, str>>);

impl JsonText<'_> {
    /// Returns the JSON text, if any.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor { objects: Objects::AsText }).map(JsonText)
    }
}

/// The first element of a list, if the member is a non-empty list; the others are ignored.
#[derive(Debug)]
pub struct First<T>(pub Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FirstVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = Option<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let first = seq.next_element()?;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }
        }
        from.deserialize_any(FirstVisitor(std::marker::PhantomData)).map(First)
    }
}

/// A text member that is rarely present: one word if it is missing, since the parser moves its values several times.
#[derive(Debug, Default)]
pub struct RareText<'a>(Option<Box<TextMember<'a>>>);

impl RareText<'_> {
    /// Returns the text, if any.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref().and_then(TextMember::get)
    }

    /// Returns the text if it is not empty.
    pub fn non_empty(&self) -> Option<&str> {
        self.0.as_deref().and_then(TextMember::non_empty)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RareText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Null does not allocate.
        Ok(Self(Option::deserialize(from)?))
    }
}

/// Larger than any real count. Anything above is a server's bug, and must not overflow sums.
const MAX_COUNT: u64 = 1 << 53;

/// Deserializes a count, for `#[serde(default, deserialize_with = "count")]`: a number, or `None` for a member of another type. Negative
/// numbers count as zero.
///
/// # Errors
/// Returns an error if the text is not JSON.
pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(CountVisitor)
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.min(MAX_COUNT)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(u64::try_from(number).unwrap_or(0).min(MAX_COUNT)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some((number.max(0.0) as u64).min(MAX_COUNT)))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct TestFrame<'a> {
        #[serde(borrow, default)]
        text: TextMember<'a>,
    }

    fn deltas(frames: &[(usize, &str)]) -> Vec<String> {
        let mut surrogates = Surrogates::default();
        let clean = |(index, frame): &(usize, &str)| {
            let mut scratch = String::new();
            let read: ReadFrame<TestFrame<'_>> = read(frame, &mut scratch).unwrap();
            surrogates.clean(*index, read.value.text.get().unwrap_or("-"), read.quality).into_owned()
        };
        frames.iter().map(clean).collect()
    }

    #[test]
    fn counts_are_read_from_members_of_any_type() {
        #[derive(serde::Deserialize)]
        struct Counted(#[serde(deserialize_with = "count")] Option<u64>);
        let read = |text: &str| serde_json::from_str::<Counted>(text).map(|counted| counted.0).ok();
        for (text, expected) in [
            ("7", Some(Some(7))),
            ("-7", Some(Some(0))),
            ("7.9", Some(Some(7))),
            ("-0.5", Some(Some(0))),
            ("1e300", Some(Some(MAX_COUNT))),
            ("18446744073709551615", Some(Some(MAX_COUNT))),
            ("null", Some(None)),
            ("true", Some(None)),
            ("\"7\"", Some(None)),
            ("[7]", Some(None)),
            ("{\"a\":7}", Some(None)),
            ("7x", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn rare_texts_are_read_like_texts() {
        let read = |text: &str| serde_json::from_str::<RareText<'_>>(text).unwrap().get().map(str::to_owned);
        assert_eq!(read("\"a\\n\"").as_deref(), Some("a\n"));
        assert_eq!([read("null"), read("7"), read("{}")], [None, None, None]);
    }

    #[test]
    fn split_surrogate_pairs_are_joined() {
        let frames = [(0, r#"{"text":"a\ud83d"}"#), (0, r#"{"text":"\ude00b"}"#)];
        assert_eq!(deltas(&frames), ["a", "😀b"]);
    }

    #[test]
    fn lone_surrogates_are_dropped() {
        let frames = [(0, r#"{"text":"a\ud83d"}"#), (1, r#"{"text":"\ude00b"}"#), (0, r#"{"text":"c"}"#)];
        assert_eq!(deltas(&frames), ["a", "b", "c"]);
        assert_eq!(deltas(&[(0, r#"{"text":"\ud83d\ud83d\ude00 \\ud83d"}"#)]), ["😀 \\ud83d"]);
    }

    #[test]
    fn broken_strings_are_repaired_and_other_types_are_none() {
        assert_eq!(deltas(&[(0, "{\"text\":\"a\tb \\q\"}")]), ["a\tb \\q"]);
        assert_eq!(deltas(&[(0, r#"{"text":{"x":[1]}}"#), (0, r#"{"text":7}"#), (0, "{}")]), ["-", "-", "-"]);
    }
}
