//! Limits of the processes that a command starts, set by `prlimit` of util-linux.

use std::path::{Path, PathBuf};

use pinch_machine::CommandSpec;

/// Where `prlimit` is. It runs inside, so that it must be readable there.
const PROGRAMS: [&str; 2] = ["/usr/bin/prlimit", "/bin/prlimit"];
/// The limits that it can set, as containers name them.
const NAMES: [&str; 16] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];

/// Limits of the processes that a command starts.
#[derive(Clone, Debug)]
pub(crate) struct Rlimits {
    program: PathBuf,
    flags: Vec<String>,
}

/// Why limits cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitError {
    /// There is no such limit.
    #[error("there is no limit {0:?}")]
    Unknown(String),
    /// The value is no number.
    #[error("the limit {0} is not a number, or two with a colon in between")]
    Invalid(String),
    /// The program that sets them is missing.
    #[error("limits of processes are set by prlimit, which is not installed")]
    NoProgram,
}

impl LimitError {
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown(_) | Self::Invalid(_) => "change docker.ulimits",
            Self::NoProgram => "install the package util-linux, or remove docker.ulimits",
        }
    }
}

impl Rlimits {
    /// Returns the limits of a confinement, if it has any.
    ///
    /// # Errors
    /// Fails if a limit is unknown or invalid, or if they cannot be set here.
    pub(crate) fn of(limits: &[(String, String)]) -> Result<Option<Self>, LimitError> {
        if limits.is_empty() {
            return Ok(None);
        }
        let flags: Vec<String> = limits.iter().map(|(name, value)| flag(name, value)).collect::<Result<_, _>>()?;
        let program = PROGRAMS.iter().map(Path::new).find(|program| program.is_file()).ok_or(LimitError::NoProgram)?;
        Ok(Some(Self { program: program.to_owned(), flags }))
    }

    /// Starts a command with these limits.
    pub(crate) fn limited(&self, mut command: CommandSpec) -> CommandSpec {
        let program = std::mem::replace(&mut command.program, self.program.clone()).to_string_lossy().into_owned();
        let args = std::mem::take(&mut command.args);
        command.args = self.flags.iter().cloned().chain(["--".to_owned(), program]).chain(args).collect();
        command
    }
}

/// Returns the flag that sets a limit. Negative numbers mean that there is none.
fn flag(name: &str, value: &str) -> Result<String, LimitError> {
    let lower = name.trim().to_ascii_lowercase();
    let known = lower.strip_prefix("rlimit_").unwrap_or(&lower);
    if !NAMES.contains(&known) {
        return Err(LimitError::Unknown(name.to_owned()));
    }
    let number = |text: &str| match text.trim().parse::<i128>() {
        Ok(number) if number < 0 => Ok("unlimited".to_owned()),
        Ok(number) => Ok(number.to_string()),
        Err(_) => Err(LimitError::Invalid(name.to_owned())),
    };
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    Ok(format!("--{known}={}:{}", number(soft)?, number(hard)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_flags_or_are_refused() {
        for (name, value, expect) in [
            ("nofile", "64:128", Ok("--nofile=64:128")),
            ("RLIMIT_CORE", "0", Ok("--core=0:0")),
            ("memlock", "-1:-1", Ok("--memlock=unlimited:unlimited")),
            ("cpu", "soon", Err(LimitError::Invalid("cpu".to_owned()))),
            ("files", "1", Err(LimitError::Unknown("files".to_owned()))),
            ("pid=1", "1", Err(LimitError::Unknown("pid=1".to_owned()))),
        ] {
            assert_eq!(flag(name, value), expect.map(str::to_owned), "{name}={value}");
        }
        assert!(Rlimits::of(&[]).unwrap().is_none());
    }
}
