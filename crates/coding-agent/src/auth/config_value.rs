//! Configuration values that may refer to a variable, or to a command that prints the value.
//!
//! A value is a literal in which `$NAME` and `${NAME}` are replaced from the environment; `$$` is an escaped `$`, and `$!` an escaped `!`.
//! A leading `!` runs the rest as a shell command and uses its output.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Env;
use pinch_stdx::process::{ChildTree, Exit, ProcessEnd};
use pinch_stdx::secret::Secret;
use tokio::sync::OnceCell;

/// Timeout of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// How long a timed-out command may take to exit.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum bytes of a command's output to read; no key is longer.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Maximum number of commands whose output is cached.
const MAX_REMEMBERED: usize = 64;

/// Why a value could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Variables are unset or empty.
    #[error("from environment variable{}: {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))]
    Variables {
        /// Their names.
        names: Vec<String>,
    },
    /// A command was stopped at its time limit.
    #[error("from shell command: {command} (stopped after {} seconds)", COMMAND_LIMIT.as_secs())]
    CommandTimeout {
        /// The command.
        command: String,
    },
    /// A command failed or printed nothing.
    #[error("from shell command: {command}")]
    Command {
        /// The command.
        command: String,
    },
}

/// Resolves a value. Commands run with the given environment.
///
/// # Errors
/// [`ValueError`]. Its message never contains the value of a variable.
pub async fn resolve(value: &str, env: &Env) -> Result<String, ValueError> {
    match value.strip_prefix('!') {
        Some(command) => run(command, env).await,
        None => interpolate(value, env),
    }
}

/// Returns whether a value can be resolved, without running a command.
pub fn is_set(value: &str, env: &Env) -> bool {
    value.starts_with('!') || interpolate(value, env).is_ok_and(|found| !found.is_empty())
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The value is a literal.
    Literal,
    /// A command prints it.
    Command,
    /// It refers to variables: their names, without duplicates.
    Variables(Vec<String>),
}

/// Returns where a value comes from.
pub fn origin(value: &str) -> ValueOrigin {
    if value.starts_with('!') {
        return ValueOrigin::Command;
    }
    let mut names: Vec<String> = Vec::new();
    // With an empty environment, every variable is reported as missing.
    if let Err(ValueError::Variables { names: all }) = interpolate(value, &Env::default()) {
        all.into_iter().for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
    }
    if names.is_empty() { ValueOrigin::Literal } else { ValueOrigin::Variables(names) }
}

/// Returns whether a literal is the name of a set variable: older files wrote variables without the leading `$`.
pub fn is_legacy_variable(value: &str, env: &Env) -> bool {
    env.non_empty(value).is_some()
}

/// A cache of command output, for the lifetime of its owner. Failures are not cached.
#[derive(Clone, Debug, Default)]
pub struct Remembered(Arc<Mutex<HashMap<CommandKey, Arc<OnceCell<Secret>>>>>);

/// A command and its environment.
type CommandKey = (String, Env);

impl Remembered {
    /// Resolves a value; concurrent calls share one run of a command.
    ///
    /// # Errors
    /// Same as [`resolve`].
    pub async fn resolve(&self, value: &str, env: &Env) -> Result<String, ValueError> {
        if !value.starts_with('!') {
            return resolve(value, env).await;
        }
        let cell = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let ask = (value.to_owned(), env.clone());
            if all.len() >= MAX_REMEMBERED && !all.contains_key(&ask) {
                all.clear();
            }
            Arc::clone(all.entry(ask).or_default())
        };
        let found = cell.get_or_try_init(async || resolve(value, env).await.map(Secret::new)).await?;
        Ok(found.reveal().to_owned())
    }
}

/// Runs a command and returns its trimmed output, which must not be empty.
async fn run(command: &str, env: &Env) -> Result<String, ValueError> {
    let named = || command.to_owned();
    match output_of(command, env).await {
        Some((ProcessEnd::Exited(Exit::Code(0)), text)) if !text.is_empty() => Ok(text),
        Some((ProcessEnd::TimedOut(_), _)) => Err(ValueError::CommandTimeout { command: named() }),
        _ => Err(ValueError::Command { command: named() }),
    }
}

/// Runs a command as a process tree and returns its end and its trimmed output, or `None` if it cannot be run or prints no text.
async fn output_of(command: &str, env: &Env) -> Option<(ProcessEnd, String)> {
    let mut shell = shell(command);
    shell.env_clear().envs(env.iter());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Forking a large process takes a while, so keep it off the threads that others wait for.
    let mut process = tokio::task::spawn_blocking(|| ChildTree::spawn_as_is(shell)).await.ok()?.ok()?;
    let mut output = Vec::new();
    let mut keep = |data: &[u8]| {
        let room = MAX_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(&data[..data.len().min(room)]);
    };
    let ended = process.pump(&Cancel::new(), Some(COMMAND_LIMIT), GRACE, &mut keep).await.ok()?;
    Some((ended, String::from_utf8(output).ok()?.trim().to_owned()))
}

#[cfg(not(windows))]
fn shell(command: &str) -> std::process::Command {
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(windows)]
fn shell(command: &str) -> std::process::Command {
    let mut shell = std::process::Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

fn interpolate(value: &str, env: &Env) -> Result<String, ValueError> {
    let mut out = String::with_capacity(value.len());
    let mut missing = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(plain) = after.chars().next().filter(|c| matches!(c, '$' | '!')) {
            out.push(plain);
            rest = &after[1..];
        } else if let Some((name, behind)) = variable(after) {
            match env.non_empty(name) {
                Some(found) => out.push_str(found),
                None => missing.push(name.to_owned()),
            }
            rest = behind;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    if missing.is_empty() { Ok(out) } else { Err(ValueError::Variables { names: missing }) }
}

/// Splits a variable name after a `$`, with or without braces, from the text after it.
fn variable(after: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if let Some(braced) = after.strip_prefix('{') {
        let (name, behind) = braced.split_once('}')?;
        return is_name(name).then_some((name, behind));
    }
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
    let (name, behind) = after.split_at(end);
    is_name(name).then_some((name, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(value: &str) -> Result<String, String> {
        let env = Env::from_iter([("KEY", "k1"), ("EMPTY", ""), ("PATH", "/usr/bin:/bin")]);
        resolve(value, &env).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn values_are_resolved() {
        assert_eq!(found("KEY").await, Ok("KEY".into()), "a plain word is a literal");
        assert_eq!(found("a-$KEY-${KEY}b$$x$!").await, Ok("a-k1-k1b$x!".into()));
        assert_eq!(found("$1 ${a-b} $").await, Ok("$1 ${a-b} $".into()));
        assert_eq!(found("$NOPE").await, Err("from environment variable: NOPE".into()));
        assert_eq!(found("$NOPE$EMPTY").await, Err("from environment variables: NOPE, EMPTY".into()));
        assert_eq!(found("!echo ' x '").await, Ok("x".into()));
        assert_eq!(found("!false").await, Err("from shell command: false".into()));
        assert_eq!(found("!echo x; exit 1").await, Err("from shell command: echo x; exit 1".into()));
        assert_eq!(found("!echo x; sleep 100 &").await, Ok("x".into()), "what stays behind is not waited for");
    }

    #[test]
    fn origins_are_recognized() {
        assert_eq!(origin("k$$"), ValueOrigin::Literal);
        assert_eq!(origin("!k"), ValueOrigin::Command);
        assert_eq!(origin("$A-${B}$A"), ValueOrigin::Variables(vec!["A".into(), "B".into()]));
        let env = Env::from_iter([("KEY", "k1")]);
        assert!(is_legacy_variable("KEY", &env) && !is_legacy_variable("KEYS", &env));
    }

    #[tokio::test]
    async fn commands_run_once_unless_they_fail() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let env = Env::from_iter([("PATH", "/usr/bin:/bin")]);
        let command = |rest: &str| format!("!echo run >> {}; {rest}", log.display());
        let n_runs = || std::fs::read_to_string(&log).unwrap().lines().count();
        let remembered = Remembered::default();
        let good = command("echo key");
        let found = futures::future::join_all((0..4).map(|_| remembered.resolve(&good, &env))).await;
        assert!(found.iter().all(|found| found.as_deref() == Ok("key")));
        assert_eq!(n_runs(), 1);
        let bad = command("false");
        for _ in 0..2 {
            assert!(remembered.resolve(&bad, &env).await.is_err());
        }
        assert_eq!(n_runs(), 3);
        assert_eq!(remembered.resolve(&good, &env.with([("A", "b")])).await.as_deref(), Ok("key"));
        assert_eq!(n_runs(), 4, "another environment is another question");
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_is_stopped_at_its_time_limit() {
        let started = tokio::time::Instant::now();
        let error = found("!sleep 1000").await.unwrap_err();
        assert_eq!(error, "from shell command: sleep 1000 (stopped after 10 seconds)");
        assert!(started.elapsed() < COMMAND_LIMIT + GRACE * 2);
    }
}
