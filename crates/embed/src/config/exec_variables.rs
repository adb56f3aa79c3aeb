//! Environment variables that limit commands, under OpenClaw's names. The configuration takes precedence.

use std::path::Path;
use std::time::Duration;

use pinch_coding_agent::document::Problem;
use pinch_stdx::host::Env;
use pinch_tools::process::CommandLimits;

/// Time after which a command moves to the background, in milliseconds.
const YIELD_MS: &str = "PI_BASH_YIELD_MS";
/// How long finished commands are kept, in milliseconds.
const KEEP_MS: &str = "PI_BASH_JOB_TTL_MS";
/// Characters of output that are kept per command.
const OUTPUT_CHARS: &str = "PI_BASH_MAX_OUTPUT_CHARS";
/// Characters of unread output that are kept per command.
const PENDING_CHARS: &str = "OPENCLAW_BASH_PENDING_MAX_OUTPUT_CHARS";

/// How long finished commands may be kept.
const KEEP: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3 * 60 * 60));
/// How many characters of output may be kept.
const CHARS: (usize, usize) = (1_000, 200_000);

/// The limits that the environment sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExecVariables {
    pub(crate) yield_after: Option<Duration>,
    keep: Option<Duration>,
    output: Option<usize>,
    pending: Option<usize>,
}

impl ExecVariables {
    /// Reads the variables; values that are not numbers are reported and have no effect.
    pub(crate) fn read(env: &Env) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut number = |name: &str| {
            let text = env.non_empty(name).map(str::trim)?;
            let number = text.parse::<u64>().ok();
            if number.is_none() {
                let problem = Problem::new(Path::new(name), format!("\"{text}\" is not a whole number"));
                problems.push(problem.remedy("Correct it; until then it has no effect"));
            }
            number
        };
        let mut chars = |name: &str| number(name).map(|chars| usize::try_from(chars).unwrap_or(usize::MAX));
        let (output, pending) = (chars(OUTPUT_CHARS), chars(PENDING_CHARS));
        let mut time = |name: &str| number(name).map(Duration::from_millis);
        let variables = Self { yield_after: time(YIELD_MS), keep: time(KEEP_MS), output, pending };
        (variables, problems)
    }

    /// Returns the limits of commands. `keep`: the configured time for which finished ones are kept.
    pub(crate) fn limits(&self, keep: Option<Duration>) -> CommandLimits {
        let usual = CommandLimits::default();
        let output = self.output.unwrap_or(usual.output).clamp(CHARS.0, CHARS.1);
        CommandLimits {
            output,
            pending: self.pending.map_or(usual.pending, |chars| chars.clamp(CHARS.0, CHARS.1)).min(output),
            keep: keep.or(self.keep).unwrap_or(usual.keep).clamp(KEEP.0, KEEP.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_fills_gaps_of_the_configuration_within_bounds() {
        let env =
            Env::from_iter([(YIELD_MS, "500"), (KEEP_MS, "5"), (OUTPUT_CHARS, " 5000 "), (PENDING_CHARS, "9000")]);
        let (set, problems) = ExecVariables::read(&env);
        assert_eq!((set.yield_after, problems), (Some(Duration::from_millis(500)), Vec::new()));
        assert_eq!(set.limits(None), CommandLimits { output: 5_000, pending: 5_000, keep: KEEP.0 });
        assert_eq!(set.limits(Some(Duration::from_secs(90))).keep, Duration::from_secs(90));
        assert_eq!(set.limits(Some(Duration::MAX)).keep, KEEP.1);
        assert_eq!(ExecVariables::default().limits(None), CommandLimits::default());
    }

    #[test]
    fn a_value_that_is_no_number_is_reported() {
        let (set, problems) = ExecVariables::read(&Env::from_iter([(KEEP_MS, "1h")]));
        assert_eq!(set, ExecVariables::default());
        let expected = "PI_BASH_JOB_TTL_MS: \"1h\" is not a whole number. Correct it; until then it has no effect";
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
