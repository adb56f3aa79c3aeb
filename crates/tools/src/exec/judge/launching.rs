//! Flags with which everyday programs start any other program.
//!
//! Whoever allows a program does not mean these. What a program starts for reasons of its own, such as the hooks of a repository, a Makefile
//! or a pager in its configuration, is part of what was allowed.

/// A program and its flags that name a program to start.
struct LaunchingFlags {
    name: &'static str,
    /// Long flags, of which programs accept abbreviations: all that begin with one of these.
    long: &'static [&'static str],
    /// Letters of short flags, which may be joined with others.
    short: &'static [char],
    /// Whether the letters may stand in a first word without a dash.
    has_bare_letters: bool,
}

const PROGRAMS: [LaunchingFlags; 11] = [
    LaunchingFlags {
        name: "tar",
        long: &["--use", "--checkpoint-a", "--to-c", "--info-s", "--new-v", "--rsh", "--rmt"],
        short: &['I', 'F'],
        has_bare_letters: true,
    },
    LaunchingFlags { name: "sort", long: &["--com"], short: &[], has_bare_letters: false },
    LaunchingFlags { name: "rsync", long: &["--rsh", "--rsync-p"], short: &['e'], has_bare_letters: false },
    LaunchingFlags { name: "zip", long: &["--unzip-c"], short: &['T'], has_bare_letters: false },
    LaunchingFlags { name: "split", long: &["--f"], short: &[], has_bare_letters: false },
    LaunchingFlags { name: "rg", long: &["--pre", "--hostname-bin"], short: &[], has_bare_letters: false },
    LaunchingFlags { name: "ag", long: &["--pager"], short: &[], has_bare_letters: false },
    LaunchingFlags { name: "man", long: &["--p", "--html", "--b"], short: &['P', 'H'], has_bare_letters: false },
    LaunchingFlags { name: "scp", long: &[], short: &['S', 'o', 'F'], has_bare_letters: false },
    LaunchingFlags { name: "sftp", long: &[], short: &['S', 'o', 'F', 'D'], has_bare_letters: false },
    LaunchingFlags { name: "tcpdump", long: &["--p"], short: &['z'], has_bare_letters: false },
];

/// Flags of git before its command that set what it starts.
const GIT_GLOBAL: [&str; 3] = ["-c", "--config-env", "--exec-path"];
/// Global flags of git with a value of their own.
const GIT_VALUED: [&str; 4] = ["-C", "--git-dir", "--work-tree", "--namespace"];
/// Flags of commands of git that name a program.
const GIT_FLAGS: [&str; 7] =
    ["--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--extcmd", "--ext-diff", "--textconv"];
/// Commands of git that run another one.
const GIT_RUNNERS: [&str; 5] = ["filter-branch", "difftool", "mergetool", "instaweb", "daemon"];

/// Returns the word with which a call could start a program of its choice. `base` is the program's file name; `is_open`: whether further
/// words are only known when it runs.
pub(super) fn launching_word(base: &str, argv: &[String], is_open: bool) -> Option<String> {
    if base == "git" {
        return git(argv);
    }
    let flags = PROGRAMS.iter().find(|program| program.name == base)?;
    let words = argv.get(1..).unwrap_or_default();
    let ends_flags = words.iter().any(|word| word == "--");
    let before = words.iter().enumerate().take_while(|(_, word)| *word != "--");
    let mut named = before.filter(|(at, word)| flags.launches(word, *at == 0)).map(|(_, word)| word.clone());
    // Where letters suffice, a file can easily be named like a flag.
    let is_open = is_open && !ends_flags && !flags.short.is_empty();
    named.next().or_else(|| is_open.then(|| "an unknown argument".to_owned()))
}

impl LaunchingFlags {
    fn launches(&self, word: &str, is_first: bool) -> bool {
        if word.starts_with("--") {
            return self.long.iter().any(|flag| word.starts_with(flag) || (flag.starts_with(word) && word.len() > 4));
        }
        let letters = word.strip_prefix('-').or_else(|| Some(word).filter(|_| is_first && self.has_bare_letters));
        letters.is_some_and(|letters| letters.contains(self.short))
    }
}

fn git(argv: &[String]) -> Option<String> {
    let mut at = 1;
    // Flags of git itself.
    while let Some(word) = argv.get(at).filter(|word| word.starts_with('-')) {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        // The value of `-c` may be joined to it.
        if GIT_GLOBAL.contains(&name) && word != "--exec-path" || (word.starts_with("-c") && !word.starts_with("--")) {
            return Some(word.clone());
        }
        at += if GIT_VALUED.contains(&word.as_str()) { 2 } else { 1 };
    }
    let command = argv.get(at)?.as_str();
    let words = argv.get(at + 1..).unwrap_or_default();
    let first = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let runs = GIT_RUNNERS.contains(&command)
        || matches!((command, first), ("bisect", "run") | ("submodule", "foreach"))
        || (command == "rebase" && words.iter().any(|word| word.starts_with("-x")))
        || (command == "grep" && words.iter().any(|word| is_cluster_with(word, 'O')))
        || (command == "clone" && words.iter().any(|word| is_cluster_with(word, 'u') || is_cluster_with(word, 'c')));
    if runs {
        return Some(command.to_owned());
    }
    let names_program = |word: &&String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        // Abbreviations are accepted.
        let is_flag = name.len() > 5 && GIT_FLAGS.iter().any(|flag| flag.starts_with(name));
        is_flag || word.starts_with("ext::")
    };
    words.iter().take_while(|word| *word != "--").find(names_program).cloned()
}

/// Returns whether a word consists of short flags, one of which is this.
fn is_cluster_with(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}
