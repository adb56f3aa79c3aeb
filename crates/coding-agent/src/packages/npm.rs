//! npm packages, installed into a managed directory with `node_modules` and without running their scripts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::read_regular;
use pinch_stdx::fs::{Access, create_private_dir, write_atomic};
use serde_json::Value;

use super::run::CapturedOutput;
use super::source::NpmSource;
use super::version::is_newer;
use super::{PackageError, PackageScope, Packages};

/// Contents of package.json, which marks the directory as npm's root.
const PACKAGE_JSON: &str = "{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}\n";
/// Contents of .gitignore: nothing in the directory belongs in a repository.
const GITIGNORE: &str = "*\n!.gitignore\n";
/// Environment of every package manager. A repository can bring its own settings (`.npmrc`, `.yarnrc.yml`, `pnpm-workspace.yaml`,
/// `packageManager`) that name programs to run; these variables override them.
const GUARDS: [(&str, &str); 9] = [
    ("npm_config_ignore_scripts", "true"),
    ("npm_config_git", "git"),
    // pnpm
    ("npm_config_ignore_pnpmfile", "true"),
    ("pnpm_config_ignore_pnpmfile", "true"),
    ("npm_config_manage_package_manager_versions", "false"),
    // Yarn: ignore the project's settings, since they can name plugins.
    ("YARN_IGNORE_PATH", "1"),
    ("YARN_ENABLE_SCRIPTS", "false"),
    // Corepack would download and run the program that a package names.
    ("COREPACK_ENABLE_PROJECT_SPEC", "0"),
    ("COREPACK_ENABLE_STRICT", "0"),
];
/// For Yarn in a repository: a file name that does not exist, and the contents of a typical `.yarnrc.yml`.
const OWN_YARN: [(&str, &str); 2] = [("YARN_RC_FILENAME", ".pinch-yarnrc.yml"), ("YARN_NODE_LINKER", "node-modules")];
/// Timeout of registry queries.
const VIEW_LIMIT: Duration = Duration::from_secs(10);

impl Packages {
    fn npm_argv<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let own = self.npm_command.as_deref().filter(|argv| !argv.is_empty());
        let program = own.map_or_else(|| vec!["npm"], |argv| argv.iter().map(String::as_str).collect());
        [&program, args].concat()
    }

    fn prepare_npm_root(&self, scope: PackageScope) -> Result<PathBuf, PackageError> {
        let root = self.npm_root(scope);
        create_private_dir(&root).map_err(|source| PackageError::Io { path: root.clone(), source })?;
        for (name, text) in [("package.json", PACKAGE_JSON), (".gitignore", GITIGNORE)] {
            let path = root.join(name);
            if !path.exists() {
                write_atomic(&path, text.as_bytes(), Access::NewPrivate)
                    .map_err(|source| PackageError::Io { path, source })?;
            }
        }
        Ok(root)
    }

    /// Installs npm packages in a single run.
    pub(super) async fn npm_install(
        &self,
        specs: &[String],
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        let root = self.prepare_npm_root(scope)?;
        let options = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--"];
        let specs = specs.iter().map(String::as_str);
        let argv = self.npm_argv(&options.into_iter().chain(specs).collect::<Vec<_>>());
        self.runner(cancel).run(&argv, &root, &GUARDS, CapturedOutput::Everything).await?;
        Ok(())
    }

    /// Removes an npm package.
    pub(super) async fn npm_remove(
        &self,
        npm: &NpmSource,
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        let root = self.npm_root(scope);
        if !root.join("node_modules").join(&npm.name).exists() {
            return Ok(());
        }
        let argv = self.npm_argv(&["uninstall", "--ignore-scripts", "--no-audit", "--no-fund", "--", &npm.name]);
        self.runner(cancel).run(&argv, &root, &GUARDS, CapturedOutput::Everything).await?;
        Ok(())
    }

    /// Installs the dependencies of a git package, if it has any.
    pub(super) async fn npm_dependencies(&self, folder: &Path, cancel: &Cancel) -> Result<(), PackageError> {
        let needs_any = read_json(&folder.join("package.json"))
            .is_some_and(|package| package["dependencies"].as_object().is_some_and(|all| !all.is_empty()));
        if !needs_any {
            return Ok(());
        }
        let (args, env) = self.dependencies_of_repository();
        self.runner(cancel).run(&self.npm_argv(&args), folder, &env, CapturedOutput::Everything).await?;
        Ok(())
    }

    /// Returns arguments and environment for installing a cloned repository's dependencies without running programs that it names.
    fn dependencies_of_repository(&self) -> (Vec<&'static str>, Vec<(&'static str, &'static str)>) {
        let is_called = |program: &str| {
            let stem = |word: &String| Path::new(word).file_stem().is_some_and(|stem| stem == program);
            self.npm_command.iter().flatten().any(stem)
        };
        let mut env = GUARDS.to_vec();
        let mut args = vec!["install", "--ignore-scripts"];
        match &self.npm_command {
            None => {
                let more = ["--git=git", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"];
                args.extend(more);
            }
            // Other programs may not know these options.
            Some(_) if is_called("pnpm") => args.push("--ignore-pnpmfile"),
            Some(_) if is_called("yarn") || is_called("yarnpkg") => env.extend(OWN_YARN),
            Some(_) => {}
        }
        (args, env)
    }

    /// Returns the registry's version of a package if it differs from the installed one.
    pub(super) async fn npm_newer(
        &self,
        npm: &NpmSource,
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<Option<String>, PackageError> {
        let installed = read_json(&self.npm_root(scope).join("node_modules").join(&npm.name).join("package.json"))
            .and_then(|package| package["version"].as_str().map(str::to_owned));
        let mut runner = self.runner(cancel);
        runner.time_limit = VIEW_LIMIT.min(self.time_limit);
        let argv = self.npm_argv(&["view", &npm.name, "version", "--json"]);
        let stdout = runner.run(&argv, &self.agent_dir, &GUARDS, CapturedOutput::Result).await?;
        let newest = serde_json::from_str::<Value>(stdout.trim()).ok();
        let newest = newest.as_ref().and_then(Value::as_str);
        Ok(newest.filter(|newest| installed.is_none_or(|own| is_newer(newest, &own))).map(str::to_owned))
    }
}

/// Reads a JSON file of at most 1 MiB.
fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read_regular(path, 1024 * 1024).ok()?).ok()
}
