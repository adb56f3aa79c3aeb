//! Environment variables of a container: those in the configuration, without keys.

use pinch_stdx::text::shortened;

/// Suffixes of variable names that indicate keys.
const SECRET_ENDS: [&str; 5] = ["API_KEY", "TOKEN", "PASSWORD", "PRIVATE_KEY", "SECRET"];
/// Names of other variables that contain keys.
const SECRETS: [&str; 3] = ["AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_ACCESS_KEY_ID"];
/// Maximum characters of a value without a warning.
const LONG: usize = 32_768;
/// Minimum characters of a value that looks like a key.
const KEY_LIKE: usize = 80;

/// The variables of a container, and those that stay outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerEnvironment {
    /// Variables to set.
    pub allowed: Vec<(String, String)>,
    /// Names of blocked variables.
    pub blocked: Vec<String>,
    /// Warnings about the variables to set.
    pub warnings: Vec<String>,
}

/// Blocks variables that look like keys, and values that are not a single line.
pub fn container_environment(variables: &[(String, String)]) -> ContainerEnvironment {
    let mut environment = ContainerEnvironment::default();
    for (name, value) in variables {
        let name = name.trim();
        if name.is_empty() {
            continue;
        }
        let is_line = !value.contains(['\0', '\n', '\r']) && !name.contains(['\0', '\n', '\r', '=']);
        if !is_line || is_secret(name) {
            environment.blocked.push(name.to_owned());
            continue;
        }
        if let Some(what) = oddness(value) {
            environment.warnings.push(format!("{}: {what}", shortened(name, 200)));
        }
        environment.allowed.push((name.to_owned(), value.clone()));
    }
    environment
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_ENDS.iter().any(|end| name.ends_with(end)) || SECRETS.contains(&name.as_str())
}

fn oddness(value: &str) -> Option<&'static str> {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    if value.chars().count() > LONG {
        Some("the value is very long")
    } else if value.len() >= KEY_LIKE && value.chars().all(is_base64) {
        Some("the value looks like a key")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_look_like_keys_stay_outside() {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let variables = [
            variable("LANG", "C.UTF-8"),
            variable("my_api_key", "1"),
            variable("GITHUB_TOKEN", "2"),
            variable("DB_PASSWORD", "3"),
            variable("AWS_SECRET_ACCESS_KEY", "4"),
            variable("LINES", "a\nb"),
            variable("NUL", "a\0b"),
            variable(" ", "x"),
            variable("BLOB", &"A".repeat(80)),
        ];
        let found = container_environment(&variables);
        let names: Vec<&str> = found.allowed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LANG", "BLOB"]);
        assert_eq!(
            found.blocked,
            ["my_api_key", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "LINES", "NUL"]
        );
        assert_eq!(found.warnings, ["BLOB: the value looks like a key"]);
    }
}
