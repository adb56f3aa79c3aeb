//! Merely reads the JSON of an answer, which no decoder can beat by much.
//!
//! "Reading JSON" can mean several things, so all are measured:
//!
//! - [`skip`]: `IgnoredAny`. Checks the grammar of every member and discards it; strings are not even decoded. The result is useless
//!   because nothing is kept.
//! - [`read`]: every member of every object, borrowed. Each key and string is decoded and checked, each number is parsed, and nothing is
//!   allocated. A typed struct that borrows all its fields would do the same, but for one format only. **This is the limit for the
//!   budgets**: the fastest way of reading that gives a usable result.
//! - [`check`]: the same, including the checksums in the frames of some formats. Readers of such a format must verify them, so this is the
//!   limit for it.
//! - [`keep`]: `serde_json::Value`, which most clients use. Allocates every key and every string.

use std::hint::black_box;

use anyhow::ensure;
use memchr::memchr_iter;
use pinch_llm::frame::Framing;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// How a response is split into frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksums {
    Skipped,
    Checked,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodeCounts {
    /// Number of JSON texts.
    pub(super) n_values: usize,
    /// Their size in bytes.
    pub(super) n_bytes: usize,
}

/// A way of reading the JSON of a response.
pub(super) type Parse = fn(Framing, &[u8]) -> anyhow::Result<DecodeCounts>;

/// Checks the grammar of every text.
pub(super) fn skip(framing: Framing, body: &[u8]) -> anyhow::Result<DecodeCounts> {
    each::<IgnoredAny>(framing, body, Checksums::Skipped)
}

/// Reads every member of every text, and keeps none.
pub(super) fn read(framing: Framing, body: &[u8]) -> anyhow::Result<DecodeCounts> {
    each::<Members>(framing, body, Checksums::Skipped)
}

/// The same, including the checksums of frames that have them.
pub(super) fn check(framing: Framing, body: &[u8]) -> anyhow::Result<DecodeCounts> {
    each::<Members>(framing, body, Checksums::Checked)
}

/// Parses every text into a value.
pub(super) fn keep(framing: Framing, body: &[u8]) -> anyhow::Result<DecodeCounts> {
    each::<Value>(framing, body, Checksums::Skipped)
}

/// Reads every JSON text of a response.
fn each<'a, T: Deserialize<'a>>(
    framing: Framing,
    body: &'a [u8],
    checksums: Checksums,
) -> anyhow::Result<DecodeCounts> {
    let mut seen = DecodeCounts { n_values: 0, n_bytes: 0 };
    let mut add = |data: &'a [u8]| -> anyhow::Result<()> {
        black_box(serde_json::from_str::<T>(std::str::from_utf8(data)?)?);
        seen.n_values += 1;
        seen.n_bytes += data.len();
        Ok(())
    };
    match framing {
        Framing::Sse | Framing::DataLines => data_lines(body).try_for_each(&mut add)?,
        Framing::AwsEvents => messages(body).try_for_each(|message| {
            if checksums == Checksums::Checked {
                message.check()?;
            }
            add(message.payload)
        })?,
    }
    Ok(seen)
}

/// The JSON in server-sent events.
fn data_lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let lines = memchr_iter(b'\n', body).map(move |end| &body[std::mem::replace(&mut start, end + 1)..end]);
    lines.filter_map(|line| line.strip_prefix(b"data: ")).filter(|data| *data != b"[DONE]")
}

/// One of Amazon's binary events: total length, header length, a checksum, headers, JSON, a checksum.
struct BinaryEvent<'a> {
    whole: &'a [u8],
    payload: &'a [u8],
}

impl BinaryEvent<'_> {
    /// Computes both checksums in one pass and compares them.
    fn check(&self) -> anyhow::Result<()> {
        let end = self.whole.len() - 4;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&self.whole[..8]);
        ensure!(sum.clone().finalize().to_be_bytes() == self.whole[8..12], "a wrong checksum");
        sum.update(&self.whole[8..end]);
        ensure!(sum.finalize().to_be_bytes() == self.whole[end..], "a wrong checksum");
        Ok(())
    }
}

/// Amazon's events in order. An incomplete one at the end is skipped.
fn messages(body: &[u8]) -> impl Iterator<Item = BinaryEvent<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let length = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(|bytes| u32::from_be_bytes(bytes) as usize);
        let (whole, headers) = (length(0)?, length(4)?);
        let payload = rest.get(12 + headers..whole.checked_sub(4)?)?;
        let message = BinaryEvent { whole: rest.get(..whole)?, payload };
        rest = &rest[whole..];
        Some(message)
    })
}

/// Combines everything in a value into one number, so that the compiler cannot optimise any of the reading away.
struct Members(u64);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(u64::from(value))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        Ok(number.unsigned_abs())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        Ok(number.to_bits())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        Ok(text.len() as u64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut sum = 0_u64;
        while let Some(Members(element)) = seq.next_element()? {
            sum = sum.wrapping_add(element);
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut sum = 0_u64;
        while let Some((Members(key), Members(value))) = map.next_entry()? {
            sum = sum.wrapping_add(key).wrapping_add(value);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_read() {
        let sum = |text: &str| serde_json::from_str::<Members>(text).unwrap().0;
        assert_eq!(sum(r#"{"ab":"cde","f":[1,2,-3,null,true],"":{"\u0041":"\n"}}"#), 2 + 3 + 1 + 8 + 2);
    }

    #[test]
    fn checksums_are_compared() {
        let mut body =
            pinch_testing::wires::bedrock::message("messageStart", &serde_json::json!({"role": "assistant"}));
        assert_eq!(check(Framing::AwsEvents, &body).unwrap(), read(Framing::AwsEvents, &body).unwrap());
        *body.last_mut().unwrap() ^= 1;
        assert!(check(Framing::AwsEvents, &body).is_err() && read(Framing::AwsEvents, &body).is_ok());
    }

    #[test]
    fn broken_json_is_no_limit() {
        for parse in [skip, read, check, keep] {
            assert!(parse(Framing::Sse, b"data: {\"a\":\n\n").is_err());
        }
    }
}
