//! Programs that run code: from a file, from their arguments, or from their input.

use std::path::{Path, PathBuf};

use pinch_coding_agent::tools::path::lexical;

/// The shells.
pub(super) const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"];

/// Interpreters and the flags that pass them code. Code on the command line is never allowed.
const INLINE_CODE: [(&str, &[&str]); 27] = [
    ("python", &["-c", "-i"]),
    ("pypy", &["-c", "-i"]),
    ("ipython", &["-c", "-i"]),
    ("perl", &["-e", "-E", "-n", "-p", "-M", "-m", "-d"]),
    ("ruby", &["-e", "-n", "-p"]),
    ("node", &["-e", "-p", "-i", "--eval", "--print", "-pe", "--interactive"]),
    ("nodejs", &["-e", "-p", "-i", "--eval", "--print", "-pe", "--interactive"]),
    ("tsx", &["-e", "-p", "--eval", "--print"]),
    ("ts-node", &["-e", "-p", "--eval", "--print"]),
    ("bun", &["-e", "-p", "--eval", "--print", "repl"]),
    ("deno", &["eval", "repl"]),
    ("php", &["-r", "-R", "-B", "-E", "-a", "--run", "--process-code", "--process-begin", "--process-end"]),
    ("lua", &["-e", "-i"]),
    ("luajit", &["-e", "-i"]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
    ("Rscript", &["-e"]),
    ("julia", &["-e", "-E", "-i", "--eval", "--print"]),
    ("elixir", &["-e", "-S", "--eval", "--rpc-eval"]),
    ("groovy", &["-e"]),
    ("pwsh", &[""]),
    ("awk", &[""]),
    ("gawk", &[""]),
    ("mawk", &[""]),
    ("nawk", &[""]),
    ("original-awk", &[""]),
    ("sed", &[]),
];

/// Modules of Python that run code from their arguments or from their input.
const CODE_MODULES: [&str; 7] = ["asyncio", "code", "pdb", "profile", "cProfile", "timeit", "trace"];

/// Files that stand for the standard input.
const INPUT: [&str; 2] = ["/dev/stdin", "/dev/fd"];

/// Returns whether a program runs a script given by name.
pub(super) fn is_script_runner(base: &str) -> bool {
    SHELLS.contains(&base) || inline_flags(base).is_some()
}

fn inline_flags(base: &str) -> Option<(&'static str, &'static [&'static str])> {
    INLINE_CODE.into_iter().find(|(name, _)| is_version_of(base, &name.to_lowercase()))
}

/// Returns whether a program has this name, with or without a version suffix.
fn is_version_of(base: &str, name: &str) -> bool {
    base.strip_prefix(name).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns whether an interpreter is given code other than a script file. `base` is the program's file name in lower case.
pub(super) fn gives_code(base: &str, argv: &[String]) -> bool {
    let Some((name, flags)) = inline_flags(base) else { return false };
    let arguments = argv.get(1..).unwrap_or_default();
    if name == "sed" {
        return !is_harmless_sed(arguments);
    }
    let is_code = |argument: &String| {
        let is_flag = flags.iter().any(|flag| match *flag {
            "" => true,
            // Short flags may be combined, and a value may follow in the same word.
            flag if flag.len() == 2 && flag.starts_with('-') => {
                argument.starts_with('-') && !argument.starts_with("--") && argument.contains(&flag[1..])
            }
            flag => argument == flag || argument.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')),
        });
        is_flag || argument == "-" || is_input(argument) || argument.contains("data:")
    };
    let module = name.starts_with("py").then(|| module_of(arguments)).flatten();
    arguments.iter().any(is_code)
        || module.is_some_and(|name| CODE_MODULES.contains(&name))
        || (module.is_none() && reads_code(name, arguments))
}

/// Returns the interpreter that seems to be given code in a command that cannot be analyzed: each of its words counts as a possible program.
pub(super) fn code_in_words(command: &str) -> Option<String> {
    let is_end = |c: char| ";|&()<>`\n{}".contains(c);
    let mut n_left = MAX_WORDS;
    command.split(is_end).find_map(|part| {
        let words: Vec<String> = part
            .split(|c: char| c.is_whitespace() || "\"'$\\".contains(c))
            .filter(|word| !word.is_empty())
            .take(n_left)
            .map(str::to_owned)
            .collect();
        n_left -= words.len();
        (0..words.len()).find_map(|at| {
            let base = Path::new(&words[at]).file_name()?.to_string_lossy().to_lowercase();
            gives_code(&base, &words[at..]).then_some(base)
        })
    })
}

/// Returns whether a path, or the value of a flag, stands for the standard input. The directory of a relative path may be `/dev`.
fn is_input(argument: &str) -> bool {
    let value = argument.split_once('=').map_or(argument, |(_, value)| value);
    let path = lexical(Path::new(value));
    let has = |names: &[&str]| path.components().any(|part| names.iter().any(|name| part.as_os_str() == *name));
    match path.is_absolute() {
        true => INPUT.iter().any(|input| path.starts_with(input)) || (path.starts_with("/proc") && has(&["fd"])),
        false => has(&["stdin", "fd"]),
    }
}

/// Maximum number of words that are looked at in a command that cannot be analyzed.
const MAX_WORDS: usize = 500;

/// Flags of interpreters that take no value.
const SWITCHES: [&str; 24] = [
    "-u",
    "-B",
    "-E",
    "-I",
    "-s",
    "-S",
    "-O",
    "-OO",
    "-b",
    "-q",
    "-v",
    "-w",
    "-T",
    "-t",
    "-n",
    "-Wall",
    "--test",
    "--watch",
    "--no-warnings",
    "--enable-source-maps",
    "--trace-warnings",
    "--trace-uncaught",
    "--harmony",
    "--expose-gc",
];

/// Returns whether an interpreter may read code from its input: no script is named, or what looks like one could be the value of a flag.
fn reads_code(name: &str, arguments: &[String]) -> bool {
    const ABOUT: [&str; 6] = ["--version", "-V", "-v", "--help", "-h", "-VV"];
    for word in arguments {
        if !word.starts_with('-') {
            return false;
        }
        // Python only becomes talkative.
        if ABOUT.contains(&word.as_str()) && !(name.contains("py") && word == "-v") {
            return false;
        }
        let has_value = word.starts_with("--") && word.contains('=');
        if !has_value && !SWITCHES.contains(&word.as_str()) {
            return true;
        }
    }
    true
}

/// Returns the module that a call of Python runs.
fn module_of(arguments: &[String]) -> Option<&str> {
    let at = arguments.iter().position(|word| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.chars().all(|c| c.is_ascii_alphabetic()) && letters.ends_with('m') || word.starts_with("-m")
    })?;
    let joined = arguments.get(at)?.strip_prefix("-m").filter(|name| !name.is_empty());
    joined.or_else(|| arguments.get(at + 1).map(String::as_str))
}

/// Returns whether a call of sed only prints: its scripts use no commands that write files or run programs.
fn is_harmless_sed(arguments: &[String]) -> bool {
    let mut scripts: Vec<&str> = Vec::new();
    let mut operands: Vec<&str> = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        match word {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "--quiet" | "--silent" | "--regexp-extended" | "--help"
            | "--version" => {}
            "-e" | "-ne" | "-En" | "-nE" | "-nr" | "-Ee" | "-nEe" if word.ends_with('e') => match rest.next() {
                Some(script) => scripts.push(script),
                None => return false,
            },
            "-En" | "-nE" | "-nr" => {}
            word if word.starts_with('-') && word != "-" => return false,
            word => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    scripts.into_iter().all(|script| script.split(';').all(is_harmless_sed_command) || is_harmless_sed_command(script))
}

/// Accepts an address followed by `p`, `d`, `q` or `=`, or a substitution that only prints.
fn is_harmless_sed_command(command: &str) -> bool {
    let command = command.trim();
    if let Some(rest) = command.strip_prefix('s') {
        let Some(delimiter) = rest.chars().next().filter(|c| c.is_ascii_punctuation() && *c != '\\') else {
            return false;
        };
        let parts: Vec<&str> = rest[1..].split(delimiter).collect();
        return match parts.as_slice() {
            // In brackets, neither a delimiter nor a semicolon ends anything.
            [pattern, replacement, flags] => {
                !pattern.contains('[')
                    && !pattern.ends_with('\\')
                    && !replacement.ends_with('\\')
                    && flags.chars().all(|c| c.is_ascii_digit() || "gpI".contains(c))
            }
            _ => false,
        };
    }
    let command = match command.strip_prefix('/').and_then(|rest| rest.split_once('/')) {
        Some((pattern, rest)) if !pattern.contains(['\\', '[']) => rest,
        Some(_) => return false,
        None => command,
    };
    let command = command.trim_start_matches(|c: char| c.is_ascii_digit() || ",$~+! ".contains(c));
    matches!(command, "" | "p" | "d" | "q" | "=")
}

/// The files that decide what a call runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CodeFiles {
    /// The program, the script of an interpreter, and the files the interpreter would run instead if they existed.
    pub(super) code: Vec<PathBuf>,
    /// The files with code that each other argument of an interpreter may stand for.
    pub(super) arguments: Vec<Vec<PathBuf>>,
}

impl CodeFiles {
    /// Returns the files of a call in a directory. `program` is where the program was found.
    pub(super) fn of(argv: &[String], program: Option<&Path>, cwd: &Path) -> Self {
        let mut files = Self { code: program.map(Path::to_owned).into_iter().collect(), arguments: Vec::new() };
        let name = argv.first().map_or("", String::as_str);
        let base = Path::new(name).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if !is_script_runner(&base) {
            return files;
        }
        let arguments = argv.get(1..).unwrap_or_default();
        if base.starts_with("py")
            && let Some(module) = module_of(arguments)
        {
            let module = cwd.join(module.replace('.', "/"));
            files.code.extend([module.with_extension("py"), module.join("__init__.py"), module.join("__main__.py")]);
        }
        let mut is_first = true;
        for word in arguments {
            for value in values(word) {
                let candidates = candidates(&base, &lexical(&cwd.join(value)));
                if !word.starts_with('-') && std::mem::take(&mut is_first) {
                    files.code.extend(candidates);
                } else {
                    files.arguments.push(candidates);
                }
            }
        }
        files
    }
}

/// Returns the parts of an argument that may name files: the whole, what follows a short flag, and what follows an equals sign.
fn values(word: &str) -> impl Iterator<Item = &str> {
    let whole = match word.strip_prefix('-') {
        None => Some(word),
        Some(flag) if flag.starts_with('-') => None,
        Some(flag) => flag.char_indices().nth(1).and_then(|(at, _)| flag.get(at..)),
    };
    let assigned = word.split_once('=').map(|(_, value)| value);
    whole.into_iter().chain(assigned).filter(|value| !value.is_empty())
}

/// Returns the files that an interpreter may run if it is given a path: with an ending, or in a directory.
fn candidates(base: &str, path: &Path) -> Vec<PathBuf> {
    let (endings, names): (&[&str], &[&str]) = match inline_flags(base).map(|(name, _)| name) {
        Some("python" | "pypy" | "ipython") => (&[], &["__main__.py"]),
        Some("node" | "nodejs" | "tsx" | "ts-node" | "bun") => {
            (&["js", "mjs", "cjs", "json", "ts"], &["package.json", "index.js", "index.ts"])
        }
        Some("ruby") => (&["rb"], &[]),
        Some("lua" | "luajit") => (&["lua"], &[]),
        _ => (&[], &[]),
    };
    let mut files = vec![path.to_owned()];
    files.extend(endings.iter().map(|end| PathBuf::from(format!("{}.{end}", path.display()))));
    files.extend(names.iter().map(|name| path.join(name)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn code_is_recognized_however_it_is_passed() {
        for command in [
            "python3 -c x",
            "python3.12 -Ic x",
            "python3 - a",
            "python3 -i a.py",
            "python3 /dev/stdin",
            "python3 /proc/self/fd/0",
            "python3 -m timeit x",
            "python3 -mtimeit x",
            "python3 -Im timeit x",
            "node --import data:text/javascript,x a.js",
            "node --import=data:text/javascript,x a.js",
            "nodejs -e x",
            "perl -Mstrict;x a.pl",
            "php --run x",
            "ruby -",
            "nawk x",
            "sed 1e",
            "sed --in-pl s/a/b/ x",
            "sed s/a/b/e x",
            "sed s/a/b/w x",
            "sed -n p;w",
            "sed -n /a\\/e/p",
            "sed --expression=e x",
        ] {
            assert!(gives_code(&argv(command)[0], &argv(command)), "{command}");
        }
        for command in [
            "python3 a.py",
            "python3 -m pytest -q",
            "node index.js --port 1",
            "node --version",
            "perl a.pl",
            "sed -n 1,20p a",
            "sed -n /x/p a",
            "sed s/a/b/g a",
            "sed -e s/a/b/ -e $d a",
            "sed -n 5p;7p a",
            "git -c x",
        ] {
            assert!(!gives_code(&argv(command)[0], &argv(command)), "{command}");
        }
    }

    #[test]
    fn the_files_of_a_call_include_its_script_and_what_would_replace_it() {
        let files = |command: &str| {
            let files = CodeFiles::of(&argv(command), Some(Path::new("/bin/x")), Path::new("/w"));
            let shown = |paths: Vec<PathBuf>| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
            (shown(files.code), shown(files.arguments.concat()))
        };
        assert_eq!(files("git push x"), (vec!["/bin/x".to_owned()], vec![]));
        let (code, arguments) = files("python3 -W ignore x.py --out=y");
        assert!(code.contains(&"/w/ignore".to_owned()) && code.contains(&"/w/ignore/__main__.py".to_owned()));
        assert_eq!(arguments, ["/w/x.py", "/w/x.py/__main__.py", "/w/y", "/w/y/__main__.py"]);
        let (code, _) = files("python3 -m a.b");
        assert!(code.contains(&"/w/a/b.py".to_owned()), "{code:?}");
        let (code, _) = files("bash ./x.sh");
        assert!(code.contains(&"/w/x.sh".to_owned()), "{code:?}");
    }
}
