//! The content of a delta: text, or parts of text and thinking.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::wire::frame_json::TextMember;

/// A chunk of an answer.
#[derive(Debug, PartialEq)]
pub(super) struct ContentChunk<'a> {
    pub(super) is_thinking: bool,
    pub(super) text: Cow<'a, str>,
}

/// The chunks of a content that is text, one part, or a list of both. Anything else is skipped.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ContentChunks<'a>(pub(super) Vec<ContentChunk<'a>>);

#[derive(Deserialize)]
struct MistralPart<'a> {
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default)]
    thinking: Option<ContentChunks<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ContentChunks<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PiecesVisitor).map(ContentChunks)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Vec<ContentChunk<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(vec![ContentChunk { is_thinking: false, text: Cow::Borrowed(text) }])
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![ContentChunk { is_thinking: false, text: Cow::Owned(text.to_owned()) }])
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let part = MistralPart::deserialize(MapAccessDeserializer::new(map))?;
        if let Some(thinking) = part.thinking {
            // The parts of a thought are joined to one text.
            let mut texts = thinking.0.into_iter().map(|piece| piece.text);
            let Some(mut text) = texts.next() else { return Ok(Vec::new()) };
            texts.for_each(|more| text.to_mut().push_str(&more));
            return Ok(vec![ContentChunk { is_thinking: true, text }]);
        }
        Ok(part.text.0.map(|text| ContentChunk { is_thinking: false, text }).into_iter().collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut pieces = Vec::new();
        while let Some(ContentChunks(more)) = seq.next_element()? {
            pieces.extend(more);
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[(bool, &str)]) {
        let ContentChunks(pieces) = serde_json::from_str(json).unwrap();
        let pieces: Vec<(bool, &str)> = pieces.iter().map(|piece| (piece.is_thinking, &*piece.text)).collect();
        assert_eq!(pieces, expected, "{json}");
    }

    #[test]
    fn content_is_parsed_in_every_shape() {
        check("null", &[]);
        check("\"a\"", &[(false, "a")]);
        check(
            r#"["a",{"type":"text","text":"b"},{"type":"reference","reference_ids":[1]}]"#,
            &[(false, "a"), (false, "b")],
        );
        check(r#"[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"text":"b"}]}]"#, &[(true, "ab")]);
        check(r#"[{"type":"thinking","thinking":[]}]"#, &[]);
    }
}
