//! Programs that may run.

use std::path::Path;

use globset::GlobBuilder;

/// Whether a pattern of an allow list matches a program. Only patterns that are paths count, and only programs that were found.
///
/// `**` matches anything, `*` anything but `/`, `?` one character; letters are compared without case.
pub fn matches_program(pattern: &str, program: Option<&Path>, home: Option<&Path>) -> bool {
    let Some(program) = program else { return false };
    let pattern = pattern.trim();
    if !pattern.contains(['/', '\\', '~']) {
        return false;
    }
    // Only the three wildcards mean something, and in the home directory nothing does.
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

/// A text with a backslash before each of these characters.
fn escaped(text: &str, special: &str) -> String {
    text.chars().flat_map(|c| [special.contains(c).then_some('\\'), Some(c)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_paths_and_nothing_else() {
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
