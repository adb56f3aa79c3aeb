//! Names of tool calls that another provider takes.

use std::collections::HashMap;

/// A short, stable name for a text: 12 to 14 lower-case letters and digits. The same algorithm as pi's, so that ids agree.
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

/// An id as Anthropic takes it: at most 64 of `a-zA-Z0-9_-`, everything else as `_`.
pub fn anthropic_id(id: &str) -> String {
    let is_fine = |unit: &u16| u8::try_from(*unit).is_ok_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let units = id.encode_utf16().take(64);
    units.map(|unit| if is_fine(&unit) { char::from(unit.to_le_bytes()[0]) } else { '_' }).collect()
}

/// Keeps names apart that a rule would make equal.
#[derive(Debug, Default)]
pub(super) struct Renamer {
    /// Old name by new name.
    used: HashMap<String, String>,
}

impl Renamer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Notes a name that stays.
    pub(super) fn keep(&mut self, id: &str) {
        self.used.entry(id.to_owned()).or_insert_with(|| id.to_owned());
    }

    /// The new name of `old`: `wanted`, or when another call has that name already, as long a name that ends in a hash of `old`.
    pub(super) fn rename(&mut self, old: &str, wanted: String) -> String {
        let new = match self.used.get(&wanted) {
            Some(owner) if owner != old => {
                let hash: String = short_hash(old).chars().take(8).collect();
                let n_kept = wanted.chars().count().saturating_sub(hash.len());
                wanted.chars().take(n_kept).chain(hash.chars()).collect()
            }
            _ => wanted,
        };
        self.used.entry(new.clone()).or_insert_with(|| old.to_owned());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_pis() {
        for (text, hash) in [("", "k4n83c7h0j2b"), ("a", "m8735310ae7sx"), ("fc_abc", "1qaoofs1vxahbg")] {
            assert_eq!(short_hash(text), hash);
        }
    }

    #[test]
    fn equal_names_are_kept_apart() {
        let mut renamer = Renamer::new();
        let long = |end: &str| format!("{}{end}", "x".repeat(64));
        let first = renamer.rename(&long("1"), anthropic_id(&long("1")));
        let second = renamer.rename(&long("2"), anthropic_id(&long("2")));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert_ne!(first, second);
        assert_eq!(renamer.rename(&long("2"), anthropic_id(&long("2"))), second);
    }

    #[test]
    fn anthropic_ids() {
        assert_eq!(anthropic_id("call_1|fc-1+é😀"), "call_1_fc-1____");
    }
}
