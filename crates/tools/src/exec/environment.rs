//! The environment of commands. It starts empty: its variables are listed explicitly, and no provider key is included unless named.

use std::path::Path;

/// Variables that commands inherit from the host, besides `LC_*`.
const INHERITED: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "COLORTERM"];

/// Variables that load code into programs or redirect them to other files. Neither a call nor the configuration may set them.
const BLOCKED: [&str; 65] = [
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "BASH_ENV",
    "ENV",
    "BROWSER",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_EXEC_PATH",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_SEQUENCE_EDITOR",
    "GIT_TEMPLATE_DIR",
    "GIT_SSL_NO_VERIFY",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "KUBECONFIG",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_AUTH_LOCATION",
    "CC",
    "CXX",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "RUSTC_WRAPPER",
    "CARGO_HOME",
    "CMAKE_C_COMPILER",
    "CMAKE_CXX_COMPILER",
    "HELM_HOME",
    "DOCKER_HOST",
    "SHELLOPTS",
    "PS4",
    "GCONV_PATH",
    "IFS",
    "SSLKEYLOGFILE",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PYTHONBREAKPOINT",
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "GLIBC_TUNABLES",
    "MAVEN_OPTS",
    "MAKEFLAGS",
    "MFLAGS",
    "SBT_OPTS",
    "GRADLE_OPTS",
    "ANT_OPTS",
    "HGRCPATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "SHELL",
];
const BLOCKED_PREFIXES: [&str; 3] = ["DYLD_", "LD_", "BASH_FUNC_"];

/// Variables that shells evaluate as numbers or patterns, or that change how they read commands. A call may not set them.
const OF_SHELLS: [&str; 42] = [
    "BASHOPTS",
    "BAUD",
    "DIRSTACKSIZE",
    "EGID",
    "ERRNO",
    "EUID",
    "EXECIGNORE",
    "EXECSHELL",
    "FPATH",
    "FUNCNEST",
    "GID",
    "HISTCHARS",
    "HISTCMD",
    "HISTFILESIZE",
    "HISTSIZE",
    "KEYTIMEOUT",
    "LINENO",
    "LISTMAX",
    "LOCPATH",
    "LOGCHECK",
    "MAILCHECK",
    "MODULE_PATH",
    "OPTARG",
    "OPTIND",
    "PERIOD",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT4",
    "RANDOM",
    "REPLY",
    "REPORTMEMORY",
    "REPORTTIME",
    "SAVEHIST",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "STTY",
    "TMOUT",
    "TTYIDLE",
    "UID",
    "USER_ID",
    "ZLE_RPROMPT_INDENT",
];

/// Variables that may be inherited from the host but not set by a call.
const NO_OVERRIDE: [&str; 76] = [
    "HOME",
    "GRADLE_USER_HOME",
    "ZDOTDIR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "SUDO_EDITOR",
    "PROMPT_COMMAND",
    "HISTFILE",
    "PERL5DB",
    "PERL5DBCMD",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "PYTHONSTARTUP",
    "WGETRC",
    "CURL_HOME",
    "CLASSPATH",
    "CGO_CFLAGS",
    "CGO_LDFLAGS",
    "GOFLAGS",
    "CORECLR_PROFILER_PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "DENO_DIR",
    "BUN_CONFIG_REGISTRY",
    "YARN_RC_FILENAME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "DOCKER_CONTEXT",
    "PIP_INDEX_URL",
    "PIP_PYPI_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CONFIG_FILE",
    "PIP_FIND_LINKS",
    "PIP_TRUSTED_HOST",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_PYTHON",
    "UV_EXTRA_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "OBJC_INCLUDE_PATH",
    "GOPROXY",
    "GONOSUMCHECK",
    "GONOSUMDB",
    "GONOPROXY",
    "GOPRIVATE",
    "GOENV",
    "GOPATH",
    "PYTHONUSERBASE",
    "RUSTFLAGS",
    "VIRTUAL_ENV",
    "LUA_PATH",
];
const NO_OVERRIDE_MORE: [&str; 7] =
    ["LUA_CPATH", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE", "COMPOSER_HOME", "XDG_CONFIG_HOME", "AWS_CONFIG_FILE"];
/// Variables of usual programs that name a program, code or configuration to run.
const NO_OVERRIDE_RUNS: [&str; 34] = [
    "ACKRC",
    "BAT_PAGER",
    "CARGO_ENCODED_RUSTFLAGS",
    "CCACHE_COMPILER",
    "CCACHE_PREFIX",
    "CMAKE_TOOLCHAIN_FILE",
    "EXINIT",
    "FZF_DEFAULT_COMMAND",
    "GH_EDITOR",
    "GH_PAGER",
    "GIT_CONFIG",
    "GNUMAKEFLAGS",
    "GOROOT",
    "GOTOOLDIR",
    "INPUTRC",
    "KUBE_EDITOR",
    "LESS",
    "LUA_INIT",
    "MAKEFILES",
    "PERL5SHELL",
    "PERLLIB",
    "PSQLRC",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTUP_TOOLCHAIN",
    "R_PROFILE",
    "R_PROFILE_USER",
    "TAR_OPTIONS",
    "VIMINIT",
];
const NO_OVERRIDE_PREFIXES: [&str; 8] = [
    "GIT_CONFIG_",
    "NPM_CONFIG_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_ALIAS_",
    "CARGO_BUILD_",
    "CARGO_TARGET_",
    "LUA_INIT_",
];
/// Exceptions to these prefixes.
const HARMLESS: [&str; 3] = ["CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_BUILD_TARGET"];

/// Why a call may not set a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// It determines which programs run.
    #[error("Security Violation: Custom 'PATH' variable is forbidden during host execution.")]
    Path,
    /// It loads code or redirects programs.
    #[error("Security Violation: Environment variable '{name}' is forbidden during host execution.")]
    Forbidden {
        /// Name of the variable.
        name: String,
    },
    /// Shells would evaluate the value, or read commands in another character set.
    #[error("the value of the variable {name} must be {expected}, not {value:?}")]
    Value {
        /// Name of the variable.
        name: String,
        /// The value.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
    /// It is not a valid variable name.
    #[error("{name:?} cannot be the name of an environment variable")]
    NotAName {
        /// The invalid name.
        name: String,
    },
}

fn has_prefix(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn is_blocked(name: &str) -> bool {
    BLOCKED.contains(&name) || has_prefix(name, &BLOCKED_PREFIXES)
}

/// Checks the variables set by a call.
///
/// # Errors
/// Names the first forbidden variable.
pub fn check_overrides<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), EnvironmentError> {
    for (name, value) in variables {
        let upper = name.trim().to_uppercase();
        if upper == "PATH" {
            return Err(EnvironmentError::Path);
        }
        if upper.is_empty() || name.contains(['=', '\0']) {
            return Err(EnvironmentError::NotAName { name: name.to_owned() });
        }
        // Some variables may be passed on to a child but not chosen by a model.
        let is_forbidden = (upper != "SHELL" && is_blocked(&upper))
            || OF_SHELLS.contains(&upper.as_str())
            || NO_OVERRIDE.contains(&upper.as_str())
            || NO_OVERRIDE_MORE.contains(&upper.as_str())
            || NO_OVERRIDE_RUNS.contains(&upper.as_str())
            || (has_prefix(&upper, &NO_OVERRIDE_PREFIXES) && !HARMLESS.contains(&upper.as_str()));
        if is_forbidden {
            return Err(EnvironmentError::Forbidden { name: name.to_owned() });
        }
        let expected = match upper.as_str() {
            "COLUMNS" | "LINES" if !value.chars().all(|c| c.is_ascii_digit()) => "digits",
            name if (name == "LANG" || name.starts_with("LC_")) && !is_locale(value) => "C, POSIX or a UTF-8 locale",
            _ => continue,
        };
        return Err(EnvironmentError::Value { name: name.to_owned(), value: value.to_owned(), expected });
    }
    Ok(())
}

/// Returns whether a locale has a character set in which no character contains a quote or a backslash.
fn is_locale(value: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    match value.split_once('.') {
        Some((name, charset)) => {
            is_name(name) && ["utf-8", "utf8"].iter().any(|known| charset.eq_ignore_ascii_case(known))
        }
        None => matches!(value, "" | "C" | "POSIX"),
    }
}

/// How to build the environment of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildEnvironment {
    /// Host variables that commands inherit besides the usual ones.
    pub named: Vec<String>,
    /// Directories to prepend to `PATH`.
    pub path_prepend: Vec<String>,
}

/// The `PATH` if the host has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl ChildEnvironment {
    /// Builds the environment of a command: the usual and the named host variables, then those of the call.
    ///
    /// # Errors
    /// Fails if the call sets a forbidden variable.
    pub fn build<'a>(
        &self,
        host: impl IntoIterator<Item = (&'a str, &'a str)>,
        overrides: &[(String, String)],
    ) -> Result<Vec<(String, String)>, EnvironmentError> {
        check_overrides(overrides.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
        let is_usual = |name: &str| INHERITED.contains(&name) || name.starts_with("LC_");
        let is_named =
            |name: &str| self.named.iter().any(|named| named.trim() == name) && !is_blocked(&name.to_uppercase());
        let mut env: Vec<(String, String)> = host
            .into_iter()
            .filter(|(name, _)| is_usual(name) || is_named(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let own = env.iter().position(|(name, _)| name == "PATH").map(|at| env.remove(at).1);
        env.push(("PATH".to_owned(), self.path(own.as_deref().unwrap_or_default())));
        for (name, value) in overrides {
            env.retain(|(known, _)| known != name);
            env.push((name.clone(), value.clone()));
        }
        // Lets programs detect that an agent runs them.
        env.push(("OPENCLAW_SHELL".to_owned(), "exec".to_owned()));
        Ok(env)
    }

    /// Prepends the configured directories to the path, without duplicates. Relative directories are dropped: what they contain depends on
    /// where a command runs, so the allow list cannot cover it.
    fn path(&self, own: &str) -> String {
        let is_usable = |part: &&str| Path::new(part).is_absolute();
        let own: Vec<&str> = own.split(':').map(str::trim).filter(is_usable).collect();
        let own = if own.is_empty() { DEFAULT_PATH.split(':').collect() } else { own };
        let mut parts: Vec<&str> = Vec::new();
        for part in self.path_prepend.iter().map(|part| part.trim()).filter(is_usable).chain(own) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(":")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_reaches_a_command_unless_named() {
        let host = [
            ("PATH", "/bin:/usr/bin"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("OPENAI_API_KEY", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("MY_TOKEN", "t"),
            ("LD_PRELOAD", "x.so"),
            ("LC_ALL", "C"),
        ];
        let environment = ChildEnvironment {
            named: vec!["MY_TOKEN".into(), "LD_PRELOAD".into()],
            path_prepend: vec!["/opt/bin ".into(), "/bin".into()],
        };
        let built = environment.build(host, &[("CI".into(), "1".into())]).unwrap();
        let shown: Vec<String> = built.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expect = ["MY_TOKEN=t", "LC_ALL=C", "PATH=/opt/bin:/bin:/usr/bin", "CI=1", "OPENCLAW_SHELL=exec"];
        assert_eq!(shown, expect);
    }

    #[test]
    fn relative_directories_are_not_searched_for_programs() {
        let path = |prepend: &[&str], own: &str| {
            let path_prepend = prepend.iter().map(|part| (*part).to_owned()).collect();
            let environment = ChildEnvironment { path_prepend, ..ChildEnvironment::default() };
            let built = environment.build([("PATH", own)], &[]).unwrap();
            built.into_iter().find(|(name, _)| name == "PATH").unwrap().1
        };
        assert_eq!(path(&["bin", "~/bin", "/opt/bin"], "node_modules/.bin::.:/bin:../x"), "/opt/bin:/bin");
        for empty in ["", ":", "bin", "."] {
            assert_eq!(path(&["bin"], empty), DEFAULT_PATH, "{empty:?}");
        }
        assert_eq!(path(&["/opt/bin"], "."), format!("/opt/bin:{DEFAULT_PATH}"));
    }

    #[test]
    fn calls_cannot_set_variables_that_load_code() {
        let refused = |name: &str| check_overrides([(name, "1")]).map_err(|error| error.to_string());
        let text = "Security Violation: Environment variable 'ld_Preload' is forbidden during host execution.";
        assert_eq!(refused("ld_Preload"), Err(text.to_owned()));
        assert_eq!(refused("Path").unwrap_err(), EnvironmentError::Path.to_string());
        for name in
            ["NODE_OPTIONS", "HOME", "GIT_CONFIG_COUNT", "npm_config_registry", "A=B", "", "GEM_PATH", "BASH_FUNC_x%%"]
        {
            assert!(refused(name).is_err(), "{name}");
        }
        for name in
            ["RUSTC", "RIPGREP_CONFIG_PATH", "MAKEFILES", "LUA_INIT_5_4", "CARGO_TARGET_X_RUNNER", "TAR_OPTIONS"]
        {
            assert!(refused(name).is_err(), "{name}");
        }
        for name in ["CI", "FOO_BAR", "SHELL", "DEBUG", "CARGO_TARGET_DIR"] {
            assert_eq!(check_overrides([(name, "1")]), Ok(()));
        }
        for (name, value, is_allowed) in [
            ("COLUMNS", "80", true),
            ("COLUMNS", "path[$(rm x)]", false),
            ("LINES", "-1", false),
            ("LANG", "de_DE.UTF-8", true),
            ("LC_ALL", "C.utf8", true),
            ("LC_ALL", "", true),
            ("LC_ALL", "zh_CN.GBK", false),
            ("LC_CTYPE", "zh_CN", false),
            ("LANG", "/tmp/x.UTF-8", false),
            ("RANDOM", "1", false),
            ("bashopts", "extglob", false),
        ] {
            assert_eq!(check_overrides([(name, value)]).is_ok(), is_allowed, "{name}={value}");
        }
    }
}
