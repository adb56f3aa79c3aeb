//! Sorting names in natural order.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// ASCII punctuation in the order of the Unicode collation; digits and letters follow.
const SIGNS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Returns a sort key: punctuation, then digits, then letters. Case and accents only break ties.
pub(super) fn collation_key(name: &str) -> (Vec<u32>, String) {
    let folded = name.to_lowercase();
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(&folded);
    let weights = decomposed.chars().filter(|c| !is_accent(*c)).map(weight).collect();
    (weights, name.to_owned())
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn weight(c: char) -> u32 {
    match SIGNS.find(c) {
        Some(at) => 0x80 + at as u32,
        // Whitespace and control characters come before punctuation, everything else after.
        None if c.is_ascii_alphanumeric() => 0x100 + u32::from(c),
        None if c.is_ascii() => u32::from(c),
        None => 0x200 + u32::from(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_in_natural_order() {
        // Names that differ only in case are ordered by their bytes.
        let sorted = ["_a", "-b", ".dot", "@types", "1", "a b", "A.txt", "a.txt", "a1", "ab", "eb", "École", "z", "я"];
        let mut names = sorted;
        names.reverse();
        names.sort_by_cached_key(|name| collation_key(name));
        assert_eq!(names, sorted);
    }
}
