//! Programs that start other programs.

use super::super::interpreters::SHELLS;

/// The result of unwrapping a call.
pub(super) enum Unwrapped {
    /// The program itself.
    Program,
    /// Other calls, and possibly the program itself.
    Calls { calls: Vec<Vec<String>>, needs_wrapper: bool },
    /// A command line.
    Script(String),
    /// It is unknown what the call starts.
    Unknown(String),
}

/// A program that runs its remaining arguments, and the flags it accepts.
struct WrapperRules {
    name: &'static str,
    switches: &'static [&'static str],
    valued: &'static [&'static str],
    /// Number of words before the command.
    n_words: usize,
    /// Whether it does more than start the command.
    needs_permission: bool,
}

const WRAPPERS: [WrapperRules; 11] = [
    WrapperRules { name: "nice", switches: &[], valued: &["-n", "--adjustment"], n_words: 0, needs_permission: false },
    WrapperRules { name: "nohup", switches: &[], valued: &[], n_words: 0, needs_permission: false },
    WrapperRules { name: "time", switches: &["-p", "-v"], valued: &[], n_words: 0, needs_permission: false },
    WrapperRules {
        name: "timeout",
        switches: &["--preserve-status", "--foreground", "-v", "--verbose"],
        valued: &["-s", "--signal", "-k", "--kill-after"],
        n_words: 1,
        needs_permission: false,
    },
    WrapperRules { name: "stdbuf", switches: &[], valued: &["-i", "-o", "-e"], n_words: 0, needs_permission: false },
    WrapperRules { name: "ionice", switches: &["-t"], valued: &["-c", "-n"], n_words: 0, needs_permission: false },
    WrapperRules {
        name: "setsid",
        switches: &["-w", "--wait", "-f", "--fork", "-c"],
        valued: &[],
        n_words: 0,
        needs_permission: true,
    },
    WrapperRules {
        name: "sudo",
        switches: &["-n", "-H", "-S"],
        valued: &["-u", "--user", "-g"],
        n_words: 0,
        needs_permission: true,
    },
    WrapperRules { name: "doas", switches: &["-n"], valued: &["-u"], n_words: 0, needs_permission: true },
    WrapperRules { name: "chronic", switches: &[], valued: &[], n_words: 0, needs_permission: false },
    WrapperRules {
        name: "xargs",
        switches: &["-0", "--null", "-r", "--no-run-if-empty", "-t", "-x"],
        valued: &["-n", "-P", "-I", "-L", "-d", "-s", "--max-args", "--max-procs", "--delimiter"],
        n_words: 0,
        needs_permission: false,
    },
];

/// Programs that can start anything in ways not analyzed here.
const OPAQUE: [&str; 17] = [
    "busybox", "toybox", "parallel", "script", "su", "runuser", "chroot", "unshare", "nsenter", "ssh", "expect",
    "watch", "entr", "flock", "strace", "gdb", "screen",
];

/// Returns whether the arguments of a program may name commands that it starts.
pub(super) fn starts_others(base: &str) -> bool {
    matches!(base, "env" | "find" | "fd" | "fdfind" | "command") || WRAPPERS.iter().any(|rules| rules.name == base)
}

/// Determines what a call starts. `base` is the program's file name.
pub(super) fn unwrap(base: &str, argv: &[String]) -> Unwrapped {
    if OPAQUE.contains(&base) {
        return Unwrapped::Unknown(format!("what {base} starts is not known"));
    }
    if SHELLS.contains(&base) {
        return shell(base, argv);
    }
    match base {
        "env" => env(argv),
        "command" => match argv.get(1).map(String::as_str) {
            Some("-v" | "-V") => Unwrapped::Calls { calls: Vec::new(), needs_wrapper: false },
            Some(flag) if flag.starts_with('-') => {
                Unwrapped::Unknown("command has flags that are not known".to_owned())
            }
            Some(_) => calls(vec![argv[1..].to_vec()], false),
            None => Unwrapped::Program,
        },
        "find" | "fd" | "fdfind" => find(base, argv),
        // As builtins of the shell, these evaluate names of variables, and some calculate.
        "printf" if !argv.get(1).is_some_and(|format| is_plain_format(format)) => {
            Unwrapped::Unknown("printf could set or evaluate a variable".to_owned())
        }
        "test" => Unwrapped::Unknown("test could evaluate a variable".to_owned()),
        _ => WRAPPERS.iter().find(|rules| rules.name == base).map_or(Unwrapped::Program, |rules| rules.unwrap(argv)),
    }
}

fn calls(calls: Vec<Vec<String>>, needs_wrapper: bool) -> Unwrapped {
    Unwrapped::Calls { calls, needs_wrapper }
}

impl WrapperRules {
    fn unwrap(&self, argv: &[String]) -> Unwrapped {
        let unknown = |what: &str| Unwrapped::Unknown(format!("{}: {what}", self.name));
        let mut at = 1;
        while let Some(word) = argv.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
            at += 1;
            if word == "--" {
                break;
            }
            let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
            if self.switches.contains(&word.as_str()) || (self.valued.contains(&flag) && word.contains('=')) {
                continue;
            }
            if self.valued.contains(&flag) {
                at += 1;
            } else if !is_joined(word, self.valued) {
                return unknown(&format!("the flag {word} is not known"));
            }
        }
        // Anything else could be part of the name of a program, which the input would then replace.
        if self.name == "xargs" && replaced(argv.get(1..at).unwrap_or_default()).is_some_and(|text| text != "{}") {
            return unknown("only {} can be replaced");
        }
        at += self.n_words;
        match argv.get(at..) {
            Some([_, ..]) => {
                let call = argv.get(at..).unwrap_or_default().to_vec();
                if call.first().is_some_and(|word| word.contains('=')) {
                    return unknown("a variable is set");
                }
                calls(vec![call], self.needs_permission)
            }
            _ if self.name == "xargs" => calls(vec![vec!["echo".to_owned()]], false),
            _ => unknown("no command is given"),
        }
    }
}

/// Returns the text that xargs replaces with its input.
fn replaced(flags: &[String]) -> Option<&str> {
    let at = flags.iter().rposition(|word| word.starts_with("-I"))?;
    let joined = flags.get(at)?.strip_prefix("-I").filter(|text| !text.is_empty());
    joined.or_else(|| flags.get(at + 1).map(String::as_str))
}

/// Returns whether a word is a short flag joined with its value, like `-n5`, or a number as accepted by `nice`.
fn is_joined(word: &str, valued: &[&str]) -> bool {
    let is_number = word.len() > 1 && word[1..].chars().all(|c| c.is_ascii_digit());
    let value = word.get(..2).filter(|flag| valued.contains(flag) && !word.starts_with("--"));
    value.is_some() || (is_number && valued.contains(&"--adjustment"))
}

fn env(argv: &[String]) -> Unwrapped {
    let (mut at, mut is_cleared) = (1, false);
    while let Some(word) = argv.get(at) {
        match word.as_str() {
            "-i" | "--ignore-environment" | "-" => {
                is_cleared = true;
                at += 1;
            }
            "-u" | "--unset" => {
                is_cleared |= argv.get(at + 1).is_none_or(|name| matches!(name.as_str(), "PATH" | "HOME"));
                at += 2;
            }
            "--" => {
                at += 1;
                break;
            }
            word if word.starts_with('-') => return Unwrapped::Unknown(format!("env: the flag {word} is not known")),
            _ => break,
        }
    }
    let rest = argv.get(at..).unwrap_or_default();
    let n = rest.iter().take_while(|word| word.contains('=')).count();
    // Assignments stay in front, where they are checked.
    match rest.get(n) {
        Some(name) if is_cleared && !name.starts_with('/') => {
            Unwrapped::Unknown("env: the program would be searched elsewhere".to_owned())
        }
        Some(_) => calls(vec![rest.to_vec()], false),
        None => Unwrapped::Program,
    }
}

/// Returns whether a format of `printf` is literal and only prints texts.
fn is_plain_format(format: &str) -> bool {
    let mut conversions = format.split('%').skip(1).peekable();
    while let Some(after) = conversions.next() {
        // `%%` is a percent sign.
        if after.is_empty() && conversions.peek().is_some() {
            conversions.next();
        } else if !after.starts_with(['s', 'b', 'q']) {
            return false;
        }
    }
    !format.starts_with('-') && !format.contains(['$', '*', '?', '[', '{', '~'])
}

fn shell(base: &str, argv: &[String]) -> Unwrapped {
    if base == "fish" {
        return Unwrapped::Unknown("fish reads commands in its own way".to_owned());
    }
    let mut rest = argv.iter().skip(1);
    while let Some(word) = rest.next() {
        let letters = word
            .strip_prefix('-')
            .filter(|letters| !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic()));
        match letters {
            Some(letters) if letters.contains('c') && letters.chars().all(|c| "celuxv".contains(c)) => {
                return match rest.next() {
                    Some(script) if !script.starts_with(['-', '+']) => Unwrapped::Script(script.clone()),
                    Some(word) => {
                        Unwrapped::Unknown(format!("{base}: {word} after the flag for a command is not known"))
                    }
                    None => Unwrapped::Unknown(format!("{base} is given no command")),
                };
            }
            Some(letters) if letters.chars().all(|c| "eluxv".contains(c)) => {}
            // Others change how the shell reads commands.
            _ if word == "-o" => match rest.next().map(String::as_str) {
                Some("pipefail" | "errexit" | "nounset" | "xtrace") => {}
                _ => return Unwrapped::Unknown(format!("{base}: an option of the shell is not known")),
            },
            _ if word.starts_with('-') || word.starts_with('+') => {
                return Unwrapped::Unknown(format!("{base}: the flag {word} is not known"));
            }
            // A script file.
            _ => return Unwrapped::Program,
        }
    }
    Unwrapped::Unknown(format!("{base} reads what it runs from its input"))
}

/// Returns the commands that find starts; find itself must be allowed as well.
fn find(base: &str, argv: &[String]) -> Unwrapped {
    if base != "find" {
        let starts = |word: &String| match word.strip_prefix("--") {
            Some(flag) => flag.starts_with("exec"),
            None => word.starts_with('-') && word.contains(['x', 'X']),
        };
        return match argv.iter().any(starts) {
            true => Unwrapped::Unknown(format!("{base} starts commands")),
            false => Unwrapped::Program,
        };
    }
    let mut found = Vec::new();
    let mut rest = argv.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-exec" | "-ok" => {
                let mut call: Vec<String> = Vec::new();
                let is_ended = rest.by_ref().any(|word| {
                    let is_end = word == ";" || (word == "+" && call.last().is_some_and(|last| last == "{}"));
                    if !is_end {
                        call.push(word.clone());
                    }
                    is_end
                });
                // What looks like another action may be one, depending on what comes before.
                if !is_ended || call.iter().any(|word| is_action(word)) {
                    return Unwrapped::Unknown("the end of a command of find is not known".to_owned());
                }
                found.push(call);
            }
            // These take values that look like actions, or run commands in other directories.
            word if is_action(word) || matches!(word, "-D" | "-f" | "-files0-from") => {
                return Unwrapped::Unknown(format!("what find does with {word} is not known"));
            }
            _ => {}
        }
    }
    if found.is_empty() { Unwrapped::Program } else { calls(found, true) }
}

/// Returns whether a word of find runs a command or changes files.
fn is_action(word: &str) -> bool {
    matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir" | "-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls")
}
