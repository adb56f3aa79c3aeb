//! Tool call ids that other providers accept.

use std::collections::HashMap;

/// Returns a short, stable hash of a text: 12 to 14 lower-case letters and digits. The same algorithm as pi's, so that ids agree.
pub fn short_hash(text: &str) -> String {
    let (mut h1, mut h2) = (0xdead_beef_u32, 0x41c6_ce57_u32);
    for unit in text.encode_utf16() {
        h1 = (h1 ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        h2 = (h2 ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    h1 = (h1 ^ (h1 >> 16)).wrapping_mul(2_246_822_507) ^ (h2 ^ (h2 >> 13)).wrapping_mul(3_266_489_909);
    h2 = (h2 ^ (h2 >> 16)).wrapping_mul(2_246_822_507) ^ (h1 ^ (h1 >> 13)).wrapping_mul(3_266_489_909);
    base36(h2) + &base36(h1)
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// Returns the start of a hash, which keeps shortened ids distinct.
pub(crate) fn hash_mark(text: &str) -> String {
    short_hash(text).chars().take(8).collect()
}

/// A provider's form of tool call ids: ASCII letters and digits, and some marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdShape {
    /// Other allowed characters.
    pub marks: &'static str,
    /// Maximum number of characters.
    pub max: usize,
    /// Whether trailing replacement marks are removed.
    pub trimmed: bool,
}

impl IdShape {
    /// Ids of Anthropic, Bedrock and Google.
    pub const ANTHROPIC: Self = Self { marks: "_-", max: 64, trimmed: false };
    /// Ids of OpenAI's chat format.
    pub const CHAT: Self = Self { max: 40, ..Self::ANTHROPIC };
    /// Each of the two ids of OpenAI's Responses format.
    pub const RESPONSES: Self = Self { trimmed: true, ..Self::ANTHROPIC };

    /// Replaces forbidden characters of an id with `_`, whatever its length.
    pub fn spell(&self, id: &str) -> String {
        self.units(id).collect()
    }

    /// Like [`Self::spell`], truncated to the maximum length.
    pub fn fit(&self, id: &str) -> String {
        let mut fit: String = self.units(id).take(self.max).collect();
        if self.trimmed {
            fit.truncate(fit.trim_end_matches('_').len());
        }
        fit
    }

    /// Returns one character per UTF-16 unit, as in the ids of pi's sessions.
    fn units(self, id: &str) -> impl Iterator<Item = char> {
        id.encode_utf16().map(move |unit| {
            let c = char::from_u32(unit.into()).unwrap_or('_');
            if c.is_ascii_alphanumeric() || self.marks.contains(c) { c } else { '_' }
        })
    }
}

/// Returns an id that Anthropic accepts.
pub fn anthropic_id(id: &str) -> String {
    IdShape::ANTHROPIC.fit(id)
}

/// Keeps ids distinct that a rule would make equal.
#[derive(Debug, Default)]
pub(crate) struct Renamer {
    /// Old id by new id.
    used: HashMap<String, String>,
}

impl Renamer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Reserves an id that stays. Call this before renaming others, or one of them may get it.
    pub(super) fn keep(&mut self, id: &str) {
        self.used.entry(id.to_owned()).or_insert_with(|| id.to_owned());
    }

    /// Returns the new id for `old`, always the same: `wanted`, or, if that is taken, an id of the same length that ends in a hash of
    /// `old`.
    pub(crate) fn rename(&mut self, old: &str, wanted: &str) -> String {
        let mut new = wanted.to_owned();
        for n_tries in 0_u32.. {
            match self.used.get(&new) {
                Some(owner) if owner != old => {}
                Some(_) => break,
                None => {
                    self.used.insert(new.clone(), old.to_owned());
                    break;
                }
            }
            let mark = if n_tries == 0 { hash_mark(old) } else { hash_mark(&format!("{old}:{n_tries}")) };
            let n_kept = wanted.chars().count().saturating_sub(mark.len());
            new = wanted.chars().take(n_kept).chain(mark.chars()).collect();
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_pi() {
        for (text, hash) in [("", "k4n83c7h0j2b"), ("a", "m8735310ae7sx"), ("fc_abc", "1qaoofs1vxahbg")] {
            assert_eq!(short_hash(text), hash);
        }
    }

    #[test]
    fn colliding_ids_stay_distinct() {
        let mut renamer = Renamer::new();
        let long = |end: &str| format!("{}{end}", "x".repeat(64));
        let mut rename = |end: &str| renamer.rename(&long(end), &IdShape::ANTHROPIC.fit(&long(end)));
        let (first, second) = (rename("1"), rename("2"));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert_ne!(first, second);
        assert_eq!((rename("2"), rename("1")), (second.clone(), first.clone()));
        // Even if that id is already taken.
        let third = renamer.rename(&second, &second);
        assert!(![first, second].contains(&third));
    }

    #[test]
    fn ids_are_spelled_in_the_shape_of_the_format() {
        assert_eq!(IdShape::ANTHROPIC.fit("call_1|fc-1+é😀"), "call_1_fc-1____");
        assert_eq!(IdShape::ANTHROPIC.fit(&"é".repeat(100)), "_".repeat(64));
        assert_eq!(IdShape::CHAT.fit(&"a".repeat(100)).len(), 40);
        assert_eq!(IdShape::CHAT.spell(&"a|".repeat(100)), "a_".repeat(100));
        assert_eq!(IdShape::RESPONSES.fit("call_7|fc+1=="), "call_7_fc_1");
        assert_eq!(IdShape::RESPONSES.fit(&"é".repeat(100)), "");
        assert_eq!(IdShape::RESPONSES.fit(&"a".repeat(100)).len(), 64);
    }
}
