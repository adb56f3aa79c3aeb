//! Versions of programs and packages, and comparing them.

use std::cmp::Ordering;

/// A version: three numbers, and the pre-release after a hyphen.
#[derive(Debug, PartialEq, Eq)]
struct PackageVersion<'a> {
    numbers: [u64; 3],
    pre: Option<&'a str>,
}

impl<'a> PackageVersion<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
        let mut parts = numbers
            .split('.')
            .map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        (parts.next().is_none() && pre != Some("")).then_some(Self { numbers, pre })
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre, other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(own), Some(other)) => compare_pre(own, other),
        })
    }
}

/// Compares component by component: numbers by value and before words; a shorter version comes first.
fn compare_pre(own: &str, other: &str) -> Ordering {
    let key = |part: &str| match part.parse::<u64>() {
        Ok(number) => (0, number, String::new()),
        Err(_) => (1, 0, part.to_owned()),
    };
    own.split('.').map(key).cmp(other.split('.').map(key))
}

/// Returns whether a version is newer than another one. Texts that are not versions cannot be compared: a different one counts as newer.
pub fn is_newer(candidate: &str, current: &str) -> bool {
    match (PackageVersion::parse(candidate), PackageVersion::parse(current)) {
        (Some(candidate), Some(current)) => candidate.compare(&current) == Ordering::Greater,
        _ => candidate.trim() != current.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        for (newer, older) in [
            ("0.73.1", "0.73.0"),
            ("v1.0.0", "0.99.9"),
            ("1.0.0", "1.0.0-beta.9"),
            ("1.0.0-beta.10", "1.0.0-beta.9"),
            ("1.0.0-rc", "1.0.0-beta"),
            ("1.0.0-a.1", "1.0.0-a"),
        ] {
            assert!(is_newer(newer, older) && !is_newer(older, newer), "{newer} {older}");
        }
        assert!(!is_newer("1.0.0+a", "v1.0.0") && !is_newer("x", " x"));
        assert!(is_newer("garbage", "1.0.0") && is_newer("1.0", "1.0.0") && is_newer("1.0.0-", "1.0.0"));
    }
}
