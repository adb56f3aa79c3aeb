//! The arguments of `docker create`, which podman also accepts.

use std::path::PathBuf;

use pinch_stdx::json::number::format;

use super::environment::container_environment;
use super::rules::{AGENT_MOUNT, BindRules, ContainerRefusal, check_network, check_profile};
use crate::config::ContainerConfig;
use crate::scope::WorkspaceAccess;

/// A container to create.
#[derive(Clone, Debug)]
pub struct ContainerSpec<'a> {
    /// Its settings.
    pub config: &'a ContainerConfig,
    /// Its name.
    pub name: &'a str,
    /// Key of the sessions that use it: see [`SandboxScope::key`](crate::scope::SandboxScope::key).
    pub scope_key: &'a str,
    /// Creation time in Unix milliseconds.
    pub created_at_ms: i64,
    /// Its [`sandbox_hash`](super::sandbox_hash).
    pub config_hash: Option<&'a str>,
    /// Other labels.
    pub labels: &'a [(String, String)],
}

/// The directories mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMounts {
    /// The working directory.
    pub workspace: PathBuf,
    /// The workspace of the agent; often the same.
    pub agent_workspace: PathBuf,
    /// Access to the agent's workspace.
    pub access: WorkspaceAccess,
}

impl ContainerSpec<'_> {
    /// Returns the arguments for the container's identity and limits, without its directories and image.
    pub fn limits(&self) -> Vec<String> {
        let config = self.config;
        let mut args = Arguments(vec!["create".to_owned()]);
        args.push("--name", self.name);
        args.push("--label", "openclaw.sandbox=1");
        args.push("--label", format!("openclaw.sessionKey={}", self.scope_key));
        args.push("--label", format!("openclaw.createdAtMs={}", self.created_at_ms));
        args.extend("--label", self.config_hash.map(|hash| format!("openclaw.configHash={hash}")));
        let labels = self.labels.iter().filter(|(key, value)| !key.is_empty() && !value.is_empty());
        args.extend("--label", labels.map(|(key, value)| format!("{key}={value}")));
        if config.read_only_root {
            args.0.push("--read-only".to_owned());
        }
        args.extend("--tmpfs", config.tmpfs.iter().cloned());
        args.extend("--network", Some(config.network.clone()));
        args.extend("--user", config.user.clone());
        args.extend("--cap-drop", config.cap_drop.iter().cloned());
        args.push("--security-opt", "no-new-privileges");
        args.extend("--security-opt", config.seccomp_profile.as_ref().map(|profile| format!("seccomp={profile}")));
        args.extend("--security-opt", config.apparmor_profile.as_ref().map(|profile| format!("apparmor={profile}")));
        let not_blank = |text: &&String| !text.trim().is_empty();
        args.extend("--dns", config.dns.iter().filter(not_blank).cloned());
        args.extend("--add-host", config.extra_hosts.iter().filter(not_blank).cloned());
        let positive = |number: Option<f64>| number.filter(|number| *number > 0.0);
        args.extend("--pids-limit", positive(config.pids_limit).map(format));
        args.extend("--memory", config.memory.as_ref().and_then(|limit| limit.argument()));
        args.extend("--memory-swap", config.memory_swap.as_ref().and_then(|limit| limit.argument()));
        args.extend("--cpus", positive(config.cpus).map(format));
        let ulimits = config.ulimits.iter().filter(|(name, _)| !name.trim().is_empty());
        args.extend("--ulimit", ulimits.filter_map(|(name, limit)| Some(format!("{name}={}", limit.argument()?))));
        args.extend("-v", config.binds.iter().cloned());
        args.0
    }

    /// Returns all arguments. The workspace precedes other directories, and an init process reaps the others.
    ///
    /// # Errors
    /// Fails if the configuration would make the container unsafe.
    pub fn arguments(&self, mounts: &ContainerMounts, rules: &BindRules) -> Result<Vec<String>, ContainerRefusal> {
        let config = self.config;
        for bind in &config.binds {
            rules.check(bind)?;
        }
        check_network(&config.network, config.allow_namespace_join)?;
        for (kind, profile) in [("seccomp", &config.seccomp_profile), ("apparmor", &config.apparmor_profile)] {
            profile.as_deref().map_or(Ok(()), |profile| check_profile(kind, profile))?;
        }
        let binds = last_of_each_target(&config.binds);
        let without = ContainerConfig { binds: Vec::new(), ..config.clone() };
        let mut args = Arguments(ContainerSpec { config: &without, ..self.clone() }.limits());
        args.0.push("--init".to_owned());
        for (key, value) in container_environment(&config.env).allowed {
            args.push("--env", format!("{key}={value}"));
        }
        args.push("--workdir", config.workdir.as_str());
        let is_own = mounts.workspace == mounts.agent_workspace;
        let read_only = |is: bool| if is { ":ro" } else { "" };
        let own = read_only(is_own && mounts.access == WorkspaceAccess::ReadOnly);
        args.push("-v", format!("{}:{}{own}", mounts.workspace.display(), config.workdir));
        if !is_own && mounts.access != WorkspaceAccess::None {
            let agent = read_only(mounts.access == WorkspaceAccess::ReadOnly);
            args.push("-v", format!("{}:{AGENT_MOUNT}{agent}", mounts.agent_workspace.display()));
        }
        args.extend("-v", binds.into_iter().cloned());
        args.0.extend([config.image.clone(), "sleep".to_owned(), "infinity".to_owned()]);
        Ok(args.0)
    }
}

/// Drops binds whose target occurs again later.
fn last_of_each_target(binds: &[String]) -> Vec<&String> {
    let target = |bind: &str| bind.split(':').nth(1).unwrap_or_default().trim_end_matches('/').to_owned();
    let is_last = |at: usize| !binds[at + 1..].iter().any(|later| target(later) == target(&binds[at]));
    binds.iter().enumerate().filter(|(at, _)| is_last(*at)).map(|(_, bind)| bind).collect()
}

struct Arguments(Vec<String>);

impl Arguments {
    fn push(&mut self, flag: &str, value: impl Into<String>) {
        self.0.extend([flag.to_owned(), value.into()]);
    }

    fn extend(&mut self, flag: &str, values: impl IntoIterator<Item = String>) {
        values.into_iter().for_each(|value| self.push(flag, value));
    }
}

#[cfg(test)]
mod tests;
