//! Numbers and paths formatted for people.

use std::path::Path;

use crate::text::{SanitizeMode, sanitize};

/// Abbreviates the home directory in a path to `~`.
pub(crate) fn short_path(path: &Path, home: Option<&Path>) -> String {
    let short = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    sanitize(&short, SanitizeMode::Output).into_owned()
}

/// Formats a number of tokens briefly: `950`, `1.2k`, `45k`, `1.2M`.
pub(crate) fn tokens(n: u64) -> String {
    let in_units = |unit: f64| n as f64 / unit;
    match n {
        0..1_000 => n.to_string(),
        1_000..10_000 => format!("{:.1}k", in_units(1e3)),
        10_000..1_000_000 => format!("{:.0}k", in_units(1e3)),
        1_000_000..10_000_000 => format!("{:.1}M", in_units(1e6)),
        _ => format!("{:.0}M", in_units(1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_two_or_three_digits() {
        let shown = [0, 999, 1_000, 9_949, 10_000, 999_400, 1_000_000, 12_000_000].map(tokens);
        assert_eq!(shown, ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M", "12M"]);
    }
}
