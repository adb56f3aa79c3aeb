//! `tests/cases/pending.toml`: the number of cases of each kind without an executor. The numbers may only decrease.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use super::Tally;

/// Cases without an executor, by `suite/kind`.
pub(super) type PendingCases = BTreeMap<String, usize>;

/// Reads lines of `"suite/kind" = number`.
pub(super) fn read(path: &Path) -> anyhow::Result<PendingCases> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut pending = PendingCases::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parsed = line.split_once('=').map(|(kind, n)| (kind.trim().trim_matches('"'), n.trim().parse()));
        match parsed {
            Some((kind, Ok(n))) if n > 0 => pending.insert(kind.to_owned(), n),
            _ => bail!("{}:{at}: expected \"suite/kind\" = number above zero", path.display()),
        };
    }
    Ok(pending)
}

/// The differences between the recorded numbers and the actual counts.
pub(super) fn differences(allowed: &PendingCases, suites: &BTreeMap<String, BTreeMap<String, Tally>>) -> Vec<String> {
    let mut counted: PendingCases = allowed.keys().map(|kind| (kind.clone(), 0)).collect();
    for (suite, kinds) in suites {
        counted.extend(kinds.iter().map(|(kind, tally)| (format!("{suite}/{kind}"), tally.not_implemented)));
    }
    let differs = |(kind, n): (String, usize)| {
        let limit = allowed.get(&kind).copied().unwrap_or(0);
        match n.cmp(&limit) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!("{kind}: {n} cases have no executor, at most {limit} may")),
            std::cmp::Ordering::Less => Some(format!("{kind}: only {n} cases have no executor; lower {limit} to that")),
        }
    };
    counted.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_only_fall_and_the_file_follows() {
        let allowed = PendingCases::from([("s/a".to_owned(), 2), ("s/b".to_owned(), 2), ("s/gone".to_owned(), 1)]);
        let tally = |n| Tally { not_implemented: n, ..Tally::default() };
        let kinds =
            BTreeMap::from([("a".to_owned(), tally(3)), ("b".to_owned(), tally(2)), ("c".to_owned(), tally(1))]);
        let found = differences(&allowed, &BTreeMap::from([("s".to_owned(), kinds)]));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("s/a: 3 cases") && found[1].starts_with("s/c: 1 cases") && found[2].contains("gone")
        );
    }
}
