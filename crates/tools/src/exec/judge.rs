//! Judging whether a command may run: every program it starts, directly or indirectly, must be known.

use std::path::{Path, PathBuf};

use pinch_coding_agent::tools::path::lexical;

use super::allowlist::matches_program;
use super::analysis::{CommandSyntax, Expansion, analyze};
use super::approvals::{AllowedProgram, arguments_hash};
use super::contents::ContentHashes;
use super::environment::check_overrides;
use super::interpreters::{code_in_words, gives_code, is_script_runner};
use super::safe_bins::SafeBins;
use super::script::may_set;
use super::skill_programs::SkillPrograms;

mod launching;

mod wrappers;

use launching::launching_word;
use wrappers::{Unwrapped, starts_others, unwrap};

/// The rules for judging commands.
pub struct CommandRules<'a> {
    /// Programs that may run.
    pub allowlist: &'a [AllowedProgram],
    /// Programs that may run with arguments that only let them read their input.
    pub safe_bins: &'a SafeBins,
    /// Programs of skills, which may run.
    pub skill_programs: &'a SkillPrograms,
    /// The working directory of commands.
    pub cwd: &'a Path,
    /// The home directory.
    pub home: Option<&'a Path>,
    /// The directories searched for programs.
    pub path: &'a [PathBuf],
    /// Which commands are understood.
    pub syntax: CommandSyntax,
    /// Whether the call sets environment variables.
    pub sets_env: bool,
    /// Whether the command runs where other programs are installed, as in a container. No rule covers those: a path can be another program
    /// there.
    pub has_own_programs: bool,
    /// Returns whether a path is an executable file.
    pub is_executable: &'a (dyn Fn(&Path) -> bool + Sync),
    /// Returns whether a path exists.
    pub exists: &'a (dyn Fn(&Path) -> bool + Sync),
    /// Returns the first file whose content is not the one that an entry is limited to.
    pub changed: &'a (dyn Fn(&ContentHashes) -> Option<PathBuf> + Sync),
}

/// The result of judging a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// Why the command could not be analyzed; `None` if it was.
    pub parse_error: Option<String>,
    /// Why the command is not covered; `None` if all its programs are.
    pub not_allowed: Option<String>,
    /// Why a person must approve it although everything may run, if code on the command line needs that.
    pub inline_code: Option<String>,
    /// The programs it starts, in order, including nested ones.
    pub programs: Vec<ProgramCall>,
    /// The entries of the allow list that matched, with the program.
    pub used: Vec<(AllowedProgram, PathBuf)>,
}

/// A program that a command starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCall {
    /// Its name and arguments.
    pub argv: Vec<String>,
    /// Path of the program; `None` for shell builtins and programs not found.
    pub program: Option<PathBuf>,
    /// Whether `argv` is complete, the working directory is the command's, and no variables are set. Only such a call can be recognized
    /// again.
    pub is_exact: bool,
}

impl Judgement {
    /// Returns whether the command may run without asking.
    pub fn is_allowed(&self) -> bool {
        self.parse_error.is_none() && self.not_allowed.is_none()
    }
}

/// Maximum nesting of commands within commands.
const MAX_DEPTH: usize = 6;
/// Maximum number of commands in a script.
const MAX_CALLS: usize = 500;

/// Shell keywords and builtins that do more than run a program.
const KEYWORDS: [&str; 44] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "in", "{", "}", "[[", "]]", "!", "coproc", "eval", "source", ".", "exec", "builtin", "trap", "alias", "unalias",
    "export", "declare", "typeset", "local", "readonly", "set", "shopt", "unset", "hash", "enable", "bind", "complete",
    "let", "read", "mapfile",
];

/// Builtins that change nothing beyond the command's shell.
const HARMLESS: [&str; 6] = ["cd", "pwd", "true", "false", ":", "echo"];

/// The special builtins of POSIX shells.
const SPECIAL: [&str; 15] = [
    ":", ".", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times",
    "trap", "unset",
];

/// Builtins of some shells that wrap or check others, if no program has their name.
const BUILTIN_WRAPPERS: [&str; 4] = ["time", "command", "printf", "test"];

/// Returns whether a call is a builtin that only looks at files and texts, reads a line, ends a loop, or sets how the shell treats errors.
fn is_harmless_builtin(argv: &[String], expansion: Expansion) -> bool {
    let arguments = argv.get(1..).unwrap_or_default();
    let is_number = |word: &String| word == "$?" || word.chars().all(|c| c.is_ascii_digit());
    match argv.first().map(String::as_str) {
        Some("[") => {
            arguments.split_last().is_some_and(|(last, words)| last == "]" && is_harmless_test(words, expansion))
        }
        Some("test") => is_harmless_test(arguments, expansion),
        Some("break" | "continue" | "exit") => arguments.iter().all(is_number),
        Some("set") => {
            let is_option = |word: &String| {
                word.strip_prefix(['-', '+'])
                    .is_some_and(|flags| !flags.is_empty() && flags.chars().all(|c| "euxo".contains(c)))
            };
            let options = arguments.strip_suffix(&["pipefail".to_owned()]).unwrap_or(arguments);
            let n_named = arguments.len() - options.len();
            !options.is_empty()
                && options.iter().all(is_option)
                && options.iter().filter(|word| word.contains('o')).count() == n_named
                && (n_named == 0 || options.last().is_some_and(|last| last.ends_with('o')))
        }
        Some("read") => {
            let names = arguments.strip_prefix(&["-r".to_owned()]).unwrap_or(arguments);
            !names.is_empty() && names.iter().all(|name| may_set(name))
        }
        _ => false,
    }
}

/// Returns whether a test evaluates no variables: some shells calculate what they compare as numbers, and a word could be an operator
/// unless its place says that it is not.
fn is_harmless_test(words: &[String], expansion: Expansion) -> bool {
    let is_number = |word: &str| matches!(word, "$?" | "$#") || word.chars().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.strip_prefix(&["!"]).unwrap_or(&words) {
        [one, comparison, other] if matches!(*comparison, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
            is_number(one) && is_number(other)
        }
        _ if expansion == Expansion::Free => false,
        [text] => !text.starts_with('-'),
        [question, _] => {
            matches!(*question, "-e" | "-f" | "-d" | "-h" | "-L" | "-r" | "-w" | "-x" | "-s" | "-n" | "-z")
        }
        [one, comparison, _] => {
            matches!(*comparison, "=" | "==" | "!=" | "-nt" | "-ot" | "-ef") && !one.starts_with(['-', '!', '('])
        }
        _ => false,
    }
}

/// Programs that add arguments to the programs they start.
const FEEDING: [&str; 2] = [XARGS, "find"];
const XARGS: &str = "xargs";

/// The context in which a program starts.
#[derive(Clone, Copy, Default)]
struct StartContext {
    /// Whether the working directory may have changed.
    has_moved: bool,
    /// Whether the program receives additional arguments not on the command line.
    is_fed: bool,
    /// Whether these can be anything, not only paths.
    is_fed_by_input: bool,
    /// What the shell replaces in the words of the command.
    expansion: Expansion,
    /// Whether words like `A=1` before the program set variables.
    may_assign: bool,
}

/// Returns whether a call may change the directory of the shell: `cd` can follow assignments, `command` and `time`.
fn moves(argv: &[String]) -> bool {
    argv.iter().any(|word| matches!(word.as_str(), "cd" | "pushd" | "popd"))
}

/// Judges a command.
pub fn judge(command: &str, rules: &CommandRules<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    rules.judge(command, StartContext::default(), 0, &mut judgement);
    if judgement.parse_error.is_some() && judgement.inline_code.is_none() {
        judgement.inline_code = code_in_words(command).map(|base| given_code(&base));
    }
    judgement
}

impl CommandRules<'_> {
    fn judge(&self, command: &str, mut place: StartContext, depth: usize, judgement: &mut Judgement) {
        if depth > MAX_DEPTH {
            judgement.reject("commands are nested too deep");
            return;
        }
        let analysis = match analyze(command, self.syntax) {
            Ok(analysis) => analysis,
            Err(error) => return judgement.reject(&error.to_string()),
        };
        if let Some(c) = command.chars().find(|c| is_confusing(*c)) {
            return judgement.reject(&format!("the character {c:?} is not expected in a command"));
        }
        if analysis.expansions.len() > MAX_CALLS {
            return judgement.reject("there are too many commands");
        }
        // After a change of directory, relative paths name other programs.
        place.has_moved |= analysis.has_loops && analysis.segments().any(|argv| moves(argv));
        for (argv, expansion) in analysis.segments().zip(&analysis.expansions) {
            place.expansion = *expansion;
            place.may_assign = true;
            self.judge_call(argv, place, depth, judgement);
            place.has_moved |= moves(argv);
        }
    }

    fn judge_call(&self, argv: &[String], place: StartContext, depth: usize, judgement: &mut Judgement) {
        if depth > MAX_DEPTH {
            return judgement.reject("commands are nested too deep");
        }
        let n_assigned = argv.iter().take_while(|word| place.may_assign && is_assignment(word)).count();
        let (assigned, argv) = argv.split_at(n_assigned);
        let variables = || assigned.iter().filter_map(|word| word.split_once('='));
        let assigned_names = || variables().map(|(name, _)| name);
        // Not all shells take this for an assignment.
        if assigned_names().any(|name| name.ends_with('+')) {
            return judgement.reject("a variable of the shell is extended");
        }
        // Without separators, lines are read as they are.
        let reads_lines = assigned == ["IFS="] && argv.first().is_some_and(|name| name == "read");
        if let Err(error) = check_overrides(variables().filter(|_| !reads_lines)) {
            return judgement.reject(&error.to_string());
        }
        // Variables before a special builtin stay set.
        let sets = argv.first().is_none_or(|name| SPECIAL.contains(&name.as_str()));
        if let Some(name) = assigned_names().find(|name| sets && !may_set(name)) {
            return judgement.reject(&format!("the variable {name} of the shell is set"));
        }
        let Some(name) = argv.first() else { return };
        let is_harmless = HARMLESS.contains(&name.as_str()) || is_harmless_builtin(argv, place.expansion);
        let is_strange = |c: char| "$*?[]{}!`\"'\\".contains(c) || c.is_whitespace();
        if !is_harmless && (KEYWORDS.contains(&name.as_str()) || name.contains(is_strange)) {
            return judgement.reject(&format!("{name:?} is not the name of a program"));
        }
        if is_harmless {
            judgement.programs.push(ProgramCall { argv: argv.to_vec(), program: None, is_exact: true });
            return;
        }
        let program =
            self.find(name).filter(|_| !(place.has_moved && name.contains('/') && !Path::new(name).is_absolute()));
        let is_of_home = |word: &String| word.contains('~') || word.contains("$HOME") || word.contains("${HOME}");
        let is_expanded = place.expansion != Expansion::None;
        let is_exact = !(place.has_moved || place.is_fed || is_expanded || self.sets_env)
            && n_assigned == 0
            && !argv.iter().any(is_of_home);
        let call = ProgramCall { argv: argv.to_vec(), program, is_exact };
        judgement.programs.push(call.clone());
        let base =
            Path::new(name).file_name().map_or(name.as_str().into(), |name| name.to_string_lossy()).to_lowercase();
        let unwrapped = unwrap(&base, argv);
        let is_program = matches!(unwrapped, Unwrapped::Program);
        let is_choosing = !is_program || starts_others(&base) || is_script_runner(&base);
        if is_expanded && is_choosing {
            return judgement.reject(&format!("an expansion could change what {base} runs"));
        }
        if place.is_fed_by_input && (is_program && is_choosing || base == "find") {
            return judgement.reject(&format!("{base} would get unknown arguments from {XARGS}"));
        }
        // Any file can have the name of a shell or of a wrapper; what is found nowhere could be a function that the shell loads.
        let is_builtin = BUILTIN_WRAPPERS.contains(&name.as_str());
        let is_itself = call
            .program
            .as_deref()
            .map_or(is_builtin && !self.has_own_programs, |path| self.safe_bins.is_in_trusted(path));
        if !is_program && !is_itself {
            self.cover(&call, place, judgement);
        }
        match unwrapped {
            Unwrapped::Unknown(why) => judgement.reject(&why),
            Unwrapped::Script(_) if place.is_fed => {
                judgement.reject(&format!("unknown arguments could become part of a script of {base}"));
            }
            Unwrapped::Script(script) => self.judge(&script, place, depth + 1, judgement),
            Unwrapped::Calls { calls, needs_wrapper } => {
                let place = StartContext {
                    is_fed: place.is_fed || FEEDING.contains(&base.as_str()),
                    is_fed_by_input: place.is_fed_by_input || base == XARGS,
                    may_assign: base == "env",
                    ..place
                };
                for inner in calls {
                    self.judge_call(&inner, place, depth + 1, judgement);
                }
                if needs_wrapper && is_itself {
                    self.cover(&call, place, judgement);
                }
            }
            Unwrapped::Program if gives_code(&base, argv) => {
                judgement.inline_code.get_or_insert_with(|| given_code(&base));
                judgement.fail_to_cover(given_code(&base));
            }
            Unwrapped::Program => self.cover(&call, place, judgement),
        }
    }

    /// Looks up a call in the allow list and among the safe programs.
    fn cover(&self, call: &ProgramCall, place: StartContext, judgement: &mut Judgement) {
        let (argv, program) = (call.argv.as_slice(), call.program.as_deref());
        let base = program.and_then(Path::file_name).map(|name| name.to_string_lossy().to_lowercase());
        let is_open = place.is_fed || place.expansion != Expansion::None;
        let launches = base.as_deref().and_then(|base| launching_word(base, argv, is_open));
        let is_covering = |entry: &&AllowedProgram| {
            let is_it = match &entry.arguments_hash {
                // Such an entry names one file literally, even if its name contains wildcards.
                Some(hash) => {
                    let is_same = program == Some(Path::new(&entry.pattern)) && *hash == arguments_hash(argv);
                    call.is_exact && is_same && entry.contents.as_ref().is_some_and(|known| !known.is_empty())
                }
                None => launches.is_none() && matches_program(&entry.pattern, program, self.home),
            };
            is_it && entry.cwd.as_ref().is_none_or(|cwd| Path::new(cwd) == self.cwd && !place.has_moved)
        };
        let mut changed = None;
        let mut is_current = |entry: &&AllowedProgram| {
            let found = entry.contents.as_ref().and_then(|known| (self.changed)(known));
            let is_current = found.is_none();
            changed = found.or_else(|| changed.take());
            is_current
        };
        let entry = self.allowlist.iter().filter(is_covering).find(&mut is_current);
        if let (Some(entry), Some(program)) = (entry, program) {
            judgement.used.push((entry.clone(), program.to_owned()));
        } else if launches.is_none() && self.skill_programs.contains(argv, program) {
            // Skills name programs, not arguments.
        } else if place.is_fed || !self.is_safe(argv, program, place) {
            judgement.fail_to_cover(match program {
                Some(program) if let Some(word) = launches => {
                    format!("{} could start any program with {word}", program.display())
                }
                Some(_) if let Some(changed) = changed => {
                    format!("{} has changed since it was approved", changed.display())
                }
                Some(program) => format!("{} is not on the allow list", program.display()),
                None if self.has_own_programs => {
                    let name = argv.first().map_or("", String::as_str);
                    format!(
                        "{name} is a program of the container, which rules about this machine's programs do not cover"
                    )
                }
                None => format!("{} was not found", argv.first().map_or("", String::as_str)),
            });
        }
    }

    fn is_safe(&self, argv: &[String], program: Option<&Path>, place: StartContext) -> bool {
        let cwd = (!place.has_moved).then_some(self.cwd);
        self.safe_bins.is_safe(argv, program, cwd, &|path| (self.exists)(path))
    }

    /// Resolves a program name to a path.
    fn find(&self, name: &str) -> Option<PathBuf> {
        if self.has_own_programs {
            return None;
        }
        let is_there = |path: &PathBuf| (self.is_executable)(path);
        let expanded = match (name.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(name),
        };
        // Links could lead elsewhere.
        if expanded.components().any(|part| part == std::path::Component::ParentDir) {
            return None;
        }
        if expanded.components().count() > 1 || expanded.is_absolute() || name.contains('/') {
            return Some(lexical(&self.cwd.join(expanded))).filter(is_there);
        }
        self.path
            .iter()
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(&expanded))
            .find(is_there)
    }
}

impl Judgement {
    fn reject(&mut self, why: &str) {
        self.parse_error.get_or_insert_with(|| why.to_owned());
    }

    fn fail_to_cover(&mut self, why: String) {
        self.not_allowed.get_or_insert(why);
    }
}

fn given_code(base: &str) -> String {
    format!("{base} is given code to run")
}

/// Returns whether a character is invisible or can be mistaken for another one.
fn is_confusing(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n'))
        || matches!(
            c,
            '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        )
        || matches!(c, '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || matches!(c, '\u{a0}' | '\u{ad}' | '\u{1680}' | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{3000}' | '\u{feff}')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests;
