//! Values of configuration files that may name something else: a variable, or a command that prints the value.
//!
//! A value is a literal in which `$NAME` and `${NAME}` are replaced from the environment; `$$` stands for `$` and `$!` for `!`. A leading `!`
//! runs the rest as a shell command, whose output is the value.

use std::process::Stdio;
use std::time::Duration;

use pinch_stdx::host::Env;

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Why a value could not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Variables that are unset or empty.
    #[error("from environment variable{}: {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))]
    Variables {
        /// Their names.
        names: Vec<String>,
    },
    /// A command that failed, printed nothing or took too long.
    #[error("from shell command: {command}")]
    Command {
        /// The command.
        command: String,
    },
}

/// Finds a value. Commands run with the environment given.
///
/// # Errors
/// [`ValueError`]. The text never holds the value of a variable.
pub async fn resolve(value: &str, env: &Env) -> Result<String, ValueError> {
    match value.strip_prefix('!') {
        Some(command) => run(command, env).await.ok_or_else(|| ValueError::Command { command: command.to_owned() }),
        None => interpolate(value, env),
    }
}

/// Whether a value would be found, without running a command.
pub fn is_set(value: &str, env: &Env) -> bool {
    value.starts_with('!') || interpolate(value, env).is_ok_and(|found| !found.is_empty())
}

async fn run(command: &str, env: &Env) -> Option<String> {
    let mut shell = tokio::process::Command::new("sh");
    shell.arg("-c").arg(command).env_clear().envs(env.iter());
    shell.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_LIMIT, shell.output()).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
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

/// The name behind a `$`, with or without braces, and what follows it.
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
    async fn values() {
        assert_eq!(found("KEY").await, Ok("KEY".into()), "a plain word is a literal");
        assert_eq!(found("a-$KEY-${KEY}b$$x$!").await, Ok("a-k1-k1b$x!".into()));
        assert_eq!(found("$1 ${a-b} $").await, Ok("$1 ${a-b} $".into()));
        assert_eq!(found("$NOPE").await, Err("from environment variable: NOPE".into()));
        assert_eq!(found("$NOPE$EMPTY").await, Err("from environment variables: NOPE, EMPTY".into()));
        assert_eq!(found("!echo ' x '").await, Ok("x".into()));
        assert_eq!(found("!false").await, Err("from shell command: false".into()));
    }
}
