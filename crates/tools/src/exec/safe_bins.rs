//! Programs that only read their input: with safe arguments they run without asking.

use std::path::{Path, PathBuf};

/// Programs treated as safe unless the configuration names others.
pub const DEFAULT_SAFE_BINS: [&str; 6] = ["cut", "uniq", "head", "tail", "tr", "wc"];

/// Programs that can run code with any arguments.
const NEVER: [&str; 4] = ["awk", "gawk", "mawk", "sed"];

/// The arguments a program may have.
struct ArgumentRules {
    name: &'static str,
    positional: (usize, usize),
    /// Flags with a required value. One that may go without would take no word of its own.
    valued: &'static [&'static str],
    denied: &'static [&'static str],
}

const RULES: [ArgumentRules; 9] = [
    ArgumentRules {
        name: "jq",
        positional: (0, 1),
        valued: &["--arg", "--argjson", "--argstr"],
        denied: &["--argfile", "--rawfile", "--slurpfile", "--from-file", "--library-path", "-L", "-f"],
    },
    ArgumentRules {
        name: "grep",
        positional: (0, 0),
        valued: &[
            "--regexp",
            "-e",
            "--max-count",
            "-m",
            "--after-context",
            "-A",
            "--before-context",
            "-B",
            "-C",
            "--devices",
            "-D",
            "--binary-files",
            "--exclude",
            "--include",
            "--label",
        ],
        denied: &[
            "--file",
            "-f",
            "--exclude-from",
            "--dereference-recursive",
            "--directories",
            "-d",
            "--recursive",
            "-r",
            "-R",
        ],
    },
    ArgumentRules {
        name: "cut",
        positional: (0, 0),
        valued: &["--bytes", "-b", "--characters", "-c", "--fields", "-f", "--delimiter", "-d", "--output-delimiter"],
        denied: &[],
    },
    ArgumentRules {
        name: "sort",
        positional: (0, 0),
        valued: &["--key", "-k", "--field-separator", "-t", "--buffer-size", "-S", "--parallel", "--batch-size"],
        denied: &[
            "--compress-program",
            "--files0-from",
            "--output",
            "-o",
            "--random-source",
            "--temporary-directory",
            "-T",
        ],
    },
    ArgumentRules {
        name: "uniq",
        positional: (0, 0),
        valued: &["--skip-fields", "-f", "--skip-chars", "-s", "--check-chars", "-w"],
        denied: &[],
    },
    ArgumentRules { name: "head", positional: (0, 0), valued: &["--lines", "-n", "--bytes", "-c"], denied: &[] },
    ArgumentRules {
        name: "tail",
        positional: (0, 0),
        valued: &["--lines", "-n", "--bytes", "-c", "--sleep-interval", "--max-unchanged-stats", "--pid"],
        denied: &["-f", "-F", "--follow", "--retry"],
    },
    ArgumentRules { name: "tr", positional: (1, 2), valued: &[], denied: &[] },
    ArgumentRules { name: "wc", positional: (0, 0), valued: &[], denied: &["--files0-from"] },
];

/// Long flags of these programs without a value, or with one only after `=`.
const LONG_SWITCHES: [&str; 39] = [
    "--compact-output",
    "--null-input",
    "--raw-output",
    "--raw-input",
    "--slurp",
    "--sort-keys",
    "--exit-status",
    "--tab",
    "--monochrome-output",
    "--color",
    "--ignore-case",
    "--invert-match",
    "--count",
    "--line-number",
    "--only-matching",
    "--quiet",
    "--silent",
    "--word-regexp",
    "--line-regexp",
    "--extended-regexp",
    "--fixed-strings",
    "--complement",
    "--only-delimited",
    "--zero-terminated",
    "--numeric-sort",
    "--reverse",
    "--unique",
    "--stable",
    "--repeated",
    "--verbose",
    "--delete",
    "--squeeze-repeats",
    "--truncate-set1",
    "--chars",
    "--words",
    "--max-line-length",
    "--binary",
    "--context",
    "--group",
];

/// Which programs are safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeBins {
    /// Their names; an empty list disables the feature.
    pub names: Vec<String>,
    /// Directories the programs must be in, besides `/bin` and `/usr/bin`.
    pub trusted_directories: Vec<PathBuf>,
}

impl Default for SafeBins {
    fn default() -> Self {
        Self { names: DEFAULT_SAFE_BINS.map(str::to_owned).to_vec(), trusted_directories: Vec::new() }
    }
}

impl SafeBins {
    /// Returns whether a program is in a directory whose programs are what their names say.
    pub(crate) fn is_in_trusted(&self, program: &Path) -> bool {
        program.parent().is_some_and(|directory| self.trusts(directory))
    }

    fn trusts(&self, directory: &Path) -> bool {
        let configured = self.trusted_directories.iter().map(PathBuf::as_path);
        [Path::new("/bin"), Path::new("/usr/bin")].into_iter().chain(configured).any(|known| known == directory)
    }

    /// Returns whether a call only reads its input: the program is a safe one, and no argument can name a file. `exists` returns whether a
    /// path exists. `cwd` is `None` if the working directory is unknown: then every word that could be a file counts as one.
    pub fn is_safe(
        &self,
        argv: &[String],
        program: Option<&Path>,
        cwd: Option<&Path>,
        exists: &dyn Fn(&Path) -> bool,
    ) -> bool {
        let Some((Some(name), Some(directory))) = program.map(|path| (path.file_name(), path.parent())) else {
            return false;
        };
        let name = name.to_string_lossy().to_lowercase();
        let is_listed = self.names.iter().any(|known| known.trim().to_lowercase() == name);
        if !is_listed || NEVER.contains(&name.as_str()) || !self.trusts(directory) {
            return false;
        }
        let arguments = argv.get(1..).unwrap_or_default();
        let rules = RULES.iter().find(|rules| rules.name == name);
        let may_exist = |text: &str| match (cwd, rules) {
            (Some(cwd), _) => exists(&cwd.join(text)),
            // `tr` opens no files.
            (None, Some(rules)) => {
                !(rules.name == "tr"
                    || text.starts_with(['-', '+'])
                    || text.chars().nth(1).is_none()
                    || is_number(text))
            }
            (None, None) => !text.starts_with('-'),
        };
        let is_harmless = |text: &str| {
            text == "-" || !(is_path_like(text) || text.contains(['*', '?', '[', ']', '$', '{']) || may_exist(text))
        };
        let values =
            arguments.iter().map(|argument| match argument.strip_prefix("--").and_then(|flag| flag.split_once('=')) {
                Some((_, value)) => value,
                None => argument.as_str(),
            });
        if !values.filter(|value| !value.is_empty()).all(is_harmless) {
            return false;
        }
        match rules {
            Some(rules) => rules.accept(arguments),
            None => true,
        }
    }
}

impl ArgumentRules {
    fn accept(&self, arguments: &[String]) -> bool {
        let mut n_positional = 0;
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(argument) = rest.next() {
            if argument == "--" {
                n_positional += rest.by_ref().filter(|argument| *argument != "-").count();
            } else if let Some(long) = argument.strip_prefix("--") {
                let (flag, value) = long.split_once('=').map_or((long, None), |(flag, value)| (flag, Some(value)));
                let given = format!("--{flag}");
                let Some(flag) = self.expanded(&given) else { return false };
                // What is short for a flag here could be another flag in other versions of a program, one without a value.
                let is_unsure = given != flag && value.is_none() && self.valued.contains(&flag);
                if self.denied.contains(&flag) || is_unsure {
                    return false;
                }
                if self.valued.contains(&flag) && value.is_none() && rest.next().is_none() {
                    return false;
                }
                // jq's flags take a name and a value.
                if self.name == "jq" && self.valued.contains(&flag) && rest.next().is_none() {
                    return false;
                }
            } else if argument.len() > 1 && argument.starts_with('-') {
                if !self.accept_cluster(argument, &mut rest) {
                    return false;
                }
            } else if argument != "-" {
                n_positional += 1;
            }
        }
        let (least, most) = self.positional;
        (least..=most).contains(&n_positional)
    }

    /// Accepts combined short flags. Only the last may have a value, in the same word or the next.
    fn accept_cluster<'a>(&self, cluster: &str, rest: &mut impl Iterator<Item = &'a str>) -> bool {
        let letters = &cluster[1..];
        // Like `head -5`.
        if matches!(self.name, "head" | "tail") && letters.chars().all(|c| c.is_ascii_digit()) {
            return true;
        }
        for (at, c) in letters.char_indices() {
            let flag = format!("-{c}");
            // After a number, a letter is its unit: in `tail -5c x`, `x` is a file.
            if !c.is_ascii_alphabetic() || self.denied.contains(&flag.as_str()) {
                return false;
            }
            if self.valued.contains(&flag.as_str()) {
                let has_value = at + c.len_utf8() < letters.len();
                return has_value || rest.next().is_some();
            }
        }
        true
    }

    /// Expands an unambiguous prefix to a long flag.
    fn expanded(&self, flag: &str) -> Option<&'static str> {
        let mut known: Vec<&'static str> = self
            .valued
            .iter()
            .chain(self.denied)
            .copied()
            .chain(LONG_SWITCHES)
            .filter(|known| known.starts_with("--"))
            .collect();
        if let Some(exact) = known.iter().find(|known| **known == flag) {
            return Some(exact);
        }
        known.retain(|known| known.starts_with(flag));
        match known.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}

fn is_path_like(text: &str) -> bool {
    let mut chars = text.chars();
    let is_drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && matches!(chars.next(), Some('/' | '\\'));
    is_drive || matches!(text, "." | "..") || ["./", "../", "~", "/"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_read_their_input_are_safe() {
        let all = ["jq", "grep", "cut", "sort", "uniq", "head", "tail", "tr", "wc", "sed"].map(str::to_owned).to_vec();
        let bins = SafeBins { names: all, trusted_directories: Vec::new() };
        let check = |command: &str, expect: bool| {
            let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let program = Path::new("/usr/bin").join(&argv[0]);
            let exists = |path: &Path| path == Path::new("/w/secret");
            assert_eq!(bins.is_safe(&argv, Some(&program), Some(Path::new("/w")), &exists), expect, "{command}");
        };
        for yes in [
            "head -5",
            "head -n 5",
            "head -n5",
            "tail -c 10 -",
            "wc -l",
            "tr a-z A-Z",
            "cut -d: -f1",
            "sort -rn -k 2",
            "grep -e x -i",
            "uniq -c",
            "jq -r .a",
            "sort --rev",
            "uniq --group=both",
            "grep --context=1 -e x",
            "grep --label x -e y",
            "tail --lines=3",
        ] {
            check(yes, true);
        }
        for no in [
            "tail -5c x",
            "head -5c x",
            "head -1n x",
            "head secret",
            "head -n 5 x",
            "tail -f",
            "tail -nf -F",
            "sort -o x",
            "sort --output=x",
            "sort --comp=x",
            "wc --files0-from=x",
            "tr a b c",
            "grep -f x",
            "grep -rf x",
            "grep x",
            "jq -f x",
            "sed p",
            "head /etc/passwd",
            "head ~",
            "wc -- x",
            "grep -e",
            "cut -f1 $X",
            "head --unknown",
            "jq .a .b",
            "uniq *",
            "uniq --group x",
            "uniq --check 3",
            "grep --binary x -e y",
            "grep --context x -e y",
            "grep --label x y",
        ] {
            check(no, false);
        }
        assert!(!bins.is_safe(&["wc".into()], Some(Path::new("/tmp/wc")), Some(Path::new("/w")), &|_| false));
        assert!(!bins.is_safe(&["wc".into()], None, Some(Path::new("/w")), &|_| false));
    }
}
