//! The environment variables visible to a session's commands.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobMatcher};
use pinch_llm::keys;

/// Which variables of this program commands inherit. By default known credentials are withheld, so that a command run by the model cannot
/// read provider keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellEnvironment {
    /// The initial selection.
    pub inherit: Inherit,
    /// Patterns of names that are always passed on.
    pub include: Vec<String>,
    /// Patterns of names that are withheld.
    pub exclude: Vec<String>,
}

/// Which variables are passed on before patterns are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inherit {
    /// All except known credentials.
    #[default]
    WithoutCredentials,
    /// All, including credentials, as in pi.
    All,
    /// Only those that programs need to run: see [`CORE`].
    Core,
    /// None.
    None,
}

/// The variables of [`Inherit::Core`].
pub const CORE: [&str; 17] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

impl Inherit {
    /// Parses the setting `shellEnvironment.inherit`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "core" => Some(Self::Core),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

impl ShellEnvironment {
    /// Returns the rule for commands in a sandbox: unless configured otherwise, they see only what programs need to run.
    #[must_use]
    pub fn in_sandbox(&self) -> Self {
        let inherit = match self.inherit {
            Inherit::WithoutCredentials => Inherit::Core,
            configured => configured,
        };
        Self { inherit, ..self.clone() }
    }

    /// Selects the variables of `own` to pass on. Patterns may contain `*` and `?` and are case-insensitive. `include` takes precedence
    /// over `exclude`. Credentials are those of known providers and those in `credentials`.
    pub fn select<'a>(
        &self,
        own: impl IntoIterator<Item = (&'a str, &'a str)>,
        credentials: &BTreeSet<String>,
    ) -> Vec<(&'a str, &'a str)> {
        let (include, exclude) = (patterns(&self.include), patterns(&self.exclude));
        let is_inherited = |name: &str| match self.inherit {
            Inherit::All => true,
            Inherit::WithoutCredentials => !keys::is_credential(name) && !credentials.contains(name),
            Inherit::Core => CORE.iter().any(|core| core.eq_ignore_ascii_case(name)),
            Inherit::None => false,
        };
        let fits = |patterns: &[GlobMatcher], name: &str| patterns.iter().any(|pattern| pattern.is_match(name));
        let is_passed = |name: &str| fits(&include, name) || is_inherited(name) && !fits(&exclude, name);
        own.into_iter().filter(|(name, _)| is_passed(name)).collect()
    }
}

/// Compiles patterns; an invalid one matches itself literally.
fn patterns(texts: &[String]) -> Vec<GlobMatcher> {
    let build = |text: &str| GlobBuilder::new(text).case_insensitive(true).build();
    texts
        .iter()
        .filter_map(|text| build(text).or_else(|_| build(&globset::escape(text))).ok())
        .map(|glob| glob.compile_matcher())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inherit: Inherit, include: &[&str], exclude: &[&str], expected: &str) {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let rule = ShellEnvironment { inherit, include: words(include), exclude: words(exclude) };
        let own = ["AWS_REGION", "AWS_SECRET_ACCESS_KEY", "HOME", "MY_TOKEN", "PATH", "X"].map(|name| (name, "v"));
        let credentials = BTreeSet::from(["X".to_owned()]);
        let passed: Vec<&str> = rule.select(own, &credentials).into_iter().map(|(name, _)| name).collect();
        assert_eq!(passed.join(" "), expected);
    }

    #[test]
    fn variables_are_inherited_excluded_and_included() {
        use Inherit::*;
        check(WithoutCredentials, &[], &[], "AWS_REGION HOME MY_TOKEN PATH");
        check(All, &[], &[], "AWS_REGION AWS_SECRET_ACCESS_KEY HOME MY_TOKEN PATH X");
        check(Core, &[], &[], "HOME PATH");
        let in_sandbox = [WithoutCredentials, All, None]
            .map(|inherit| ShellEnvironment { inherit, ..ShellEnvironment::default() }.in_sandbox().inherit);
        assert_eq!(in_sandbox, [Core, All, None]);
        check(None, &[], &[], "");
        check(None, &["x", "aws_?egion"], &[], "AWS_REGION X");
        check(All, &[], &["AWS_*", "*token"], "HOME PATH X");
        check(All, &["AWS_REGION"], &["AWS_*"], "AWS_REGION HOME MY_TOKEN PATH X");
        check(WithoutCredentials, &["AWS_SECRET*"], &["["], "AWS_REGION AWS_SECRET_ACCESS_KEY HOME MY_TOKEN PATH");
    }
}
