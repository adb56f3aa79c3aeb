//! Patterns for programs that may run.

use std::path::Path;

use globset::GlobBuilder;

/// Returns whether an allow list pattern matches a program. Only path patterns match, and only programs that were found.
///
/// `**` matches anything, `*` anything except `/`, and `?` one character; letters match case-insensitively.
pub fn matches_program(pattern: &str, program: Option<&Path>, home: Option<&Path>) -> bool {
    let Some(program) = program else { return false };
    let pattern = pattern.trim();
    if !pattern.contains(['/', '\\', '~']) {
        return false;
    }
    // Only the three wildcards are special, and nothing in the home directory's path is.
    let pattern = match (pattern.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            escaped(&home.to_string_lossy(), "[]{}\\!*?") + &escaped(rest, "[]{}\\!")
        }
        _ => escaped(pattern, "[]{}\\!"),
    };
    let glob = GlobBuilder::new(&pattern.to_lowercase()).literal_separator(true).backslash_escape(true).build();
    let Ok(glob) = glob else { return false };
    glob.compile_matcher().is_match(program.to_string_lossy().to_lowercase())
}

/// Escapes each of these characters with a backslash.
fn escaped(text: &str, special: &str) -> String {
    text.chars().flat_map(|c| [special.contains(c).then_some('\\'), Some(c)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths_only() {
        for (pattern, program, expect) in [
            ("~/bin/*", "/home/u/bin/x", true),
            ("~/bin/*", "/home/u/bin/x/y", false),
            ("/opt/g++", "/opt/g++", true),
            ("/opt/g++", "/opt/ggg", false),
            ("/opt/(a|b)", "/opt/a", false),
            ("/opt/[ab]", "/opt/a", false),
            ("/opt/{a,b}", "/opt/a", false),
            ("/opt/a.c", "/opt/abc", false),
            ("git", "/usr/bin/git", false),
            ("/usr/bin/git", "/usr/bin/git2", false),
            ("/usr/bin/gi", "/usr/bin/git", false),
        ] {
            let home = Path::new("/home/u");
            assert_eq!(matches_program(pattern, Some(Path::new(program)), Some(home)), expect, "{pattern} {program}");
        }
    }
}
