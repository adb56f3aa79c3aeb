//! `docker`: the settings for creating a container.

use pinch_stdx::json::number::format;
use serde_json::{Map, Value, json};

use super::members::{SectionMembers, SectionReader};

/// The usual image.
const IMAGE: &str = "openclaw-sandbox:bookworm-slim";
/// The usual path of the workspace.
const WORKDIR: &str = "/workspace";
/// Directories that are usually mounted as tmpfs.
const TMPFS: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// The settings for creating a container.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContainerConfig {
    /// Image of the container.
    pub image: String,
    /// Directory with the root file system, for backends without images.
    pub rootfs: Option<String>,
    /// Prefix of container names.
    pub container_prefix: String,
    /// Path of the workspace inside the container.
    pub workdir: String,
    /// Whether the root file system is read-only.
    pub read_only_root: bool,
    /// Directories mounted as tmpfs.
    pub tmpfs: Vec<String>,
    /// Network to attach to.
    pub network: String,
    /// User to run as.
    pub user: Option<String>,
    /// Capabilities to drop.
    pub cap_drop: Vec<String>,
    /// Environment variables of its commands.
    pub env: Vec<(String, String)>,
    /// Command to prepare the container.
    pub setup_command: Option<String>,
    /// Maximum number of processes; 0 = unlimited.
    pub pids_limit: Option<f64>,
    /// Memory limit.
    pub memory: Option<ContainerLimit>,
    /// Limit for memory plus swap.
    pub memory_swap: Option<ContainerLimit>,
    /// Number of CPUs; 0 = unlimited.
    pub cpus: Option<f64>,
    /// Other limits, by name.
    pub ulimits: Vec<(String, Ulimit)>,
    /// Path of a seccomp profile.
    pub seccomp_profile: Option<String>,
    /// Name of an AppArmor profile.
    pub apparmor_profile: Option<String>,
    /// DNS servers.
    pub dns: Vec<String>,
    /// Additional hosts with their addresses.
    pub extra_hosts: Vec<String>,
    /// Additional bind mounts, as `source:target` or `source:target:mode`.
    pub binds: Vec<String>,
    /// Whether binds may have any source on the host, except those that are always blocked.
    pub allow_external_binds: bool,
    /// Whether binds may cover the workspace inside the container.
    pub allow_reserved_targets: bool,
    /// Whether it may join another container's network.
    pub allow_namespace_join: bool,
}

/// A limit as written in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum ContainerLimit {
    /// A number.
    Number(f64),
    /// A number with a unit.
    Text(String),
}

impl ContainerLimit {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(number.as_f64()?)),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// Returns the limit as an argument, or `None` if it is blank.
    pub fn argument(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(format(*number)),
            Self::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        }
    }
}

/// A limit as set by a shell's `ulimit`.
#[derive(Clone, Debug, PartialEq)]
pub enum Ulimit {
    /// One value for both limits.
    Both(ContainerLimit),
    /// Separate soft and hard limits.
    Pair {
        /// The soft limit.
        soft: Option<f64>,
        /// The hard limit.
        hard: Option<f64>,
    },
}

impl Ulimit {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Object(pair) => {
                let part = |key: &str| pair.get(key).and_then(Value::as_f64).map(|number| number.max(0.0));
                Some(Self::Pair { soft: part("soft"), hard: part("hard") })
            }
            other => ContainerLimit::read(other).map(Self::Both),
        }
    }

    /// Returns the limit as an argument, or `None` if it is empty.
    pub fn argument(&self) -> Option<String> {
        match self {
            Self::Both(limit) => limit.argument(),
            Self::Pair { soft: Some(soft), hard: Some(hard) } => Some(format!("{}:{}", format(*soft), format(*hard))),
            Self::Pair { soft, hard } => soft.or(*hard).map(format),
        }
    }
}

impl ContainerConfig {
    /// The members of a section that are read.
    pub const KEYS: [&'static str; 24] = [
        "image",
        "rootfs",
        "containerPrefix",
        "workdir",
        "readOnlyRoot",
        "tmpfs",
        "network",
        "user",
        "capDrop",
        "env",
        "setupCommand",
        "pidsLimit",
        "memory",
        "memorySwap",
        "cpus",
        "ulimits",
        "seccompProfile",
        "apparmorProfile",
        "dns",
        "extraHosts",
        "binds",
        "dangerouslyAllowExternalBindSources",
        "dangerouslyAllowReservedContainerTargets",
        "dangerouslyAllowContainerNamespaceJoin",
    ];

    pub(super) fn read(reader: &mut SectionReader, own: &SectionMembers<'_>, defaults: &SectionMembers<'_>) -> Self {
        let levels = [own, defaults];
        let none = SectionMembers::none();
        let text = |reader: &mut SectionReader, key: &str| reader.text(levels, key);
        let flag = |reader: &mut SectionReader, key: &str| reader.flag(levels, key);
        let list = |reader: &mut SectionReader, key: &str, default: &[&str]| {
            let default = || default.iter().map(|item| (*item).to_owned()).collect();
            reader.texts(levels, key).unwrap_or_else(default)
        };
        let limit = |reader: &mut SectionReader, key: &str| {
            let (value, path) = levels.iter().find_map(|level| level.get(key))?;
            let limit = ContainerLimit::read(value);
            if limit.is_none() {
                reader.problem(&path, "expected a number or a string; no limit is set");
            }
            limit
        };
        // Those of all agents come first, so that the agent's win if targets are equal.
        let mut binds = reader.texts([defaults, &none], "binds").unwrap_or_default();
        binds.extend(reader.texts([own, &none], "binds").unwrap_or_default());
        let env = match entries(reader, [defaults, own], "env", |value| value.as_str().map(str::to_owned)) {
            (false, own) => {
                std::iter::once(("LANG".to_owned(), "C.UTF-8".to_owned())).chain(own).fold(Vec::new(), with)
            }
            (true, env) => env,
        };
        Self {
            image: text(reader, "image").unwrap_or_else(|| IMAGE.to_owned()),
            rootfs: text(reader, "rootfs"),
            container_prefix: text(reader, "containerPrefix").unwrap_or_else(|| "openclaw-sbx-".to_owned()),
            workdir: text(reader, "workdir").unwrap_or_else(|| WORKDIR.to_owned()),
            read_only_root: flag(reader, "readOnlyRoot").unwrap_or(true),
            tmpfs: list(reader, "tmpfs", &TMPFS),
            network: text(reader, "network").unwrap_or_else(|| "none".to_owned()),
            user: text(reader, "user"),
            cap_drop: list(reader, "capDrop", &["ALL"]),
            env,
            setup_command: text(reader, "setupCommand"),
            pids_limit: reader.number(levels, "pidsLimit"),
            memory: limit(reader, "memory"),
            memory_swap: limit(reader, "memorySwap"),
            cpus: reader.number(levels, "cpus"),
            ulimits: entries(reader, [defaults, own], "ulimits", Ulimit::read).1,
            seccomp_profile: text(reader, "seccompProfile"),
            apparmor_profile: text(reader, "apparmorProfile"),
            dns: list(reader, "dns", &[]),
            extra_hosts: list(reader, "extraHosts", &[]),
            binds,
            allow_external_binds: flag(reader, "dangerouslyAllowExternalBindSources").unwrap_or(false),
            allow_reserved_targets: flag(reader, "dangerouslyAllowReservedContainerTargets").unwrap_or(false),
            allow_namespace_join: flag(reader, "dangerouslyAllowContainerNamespaceJoin").unwrap_or(false),
        }
    }

    /// Returns the first setting that requires a container, if one is set. All others apply to every sandbox, or only name containers.
    pub fn needs_container(&self) -> Option<&'static str> {
        let usual = |dir: &String| TMPFS.contains(&dir.split(':').next().unwrap_or_default());
        let limits = [
            (self.image != IMAGE, "image"),
            (self.workdir != WORKDIR, "workdir"),
            (self.user.is_some(), "user"),
            (!self.tmpfs.iter().all(usual), "tmpfs"),
            (self.pids_limit.is_some_and(|limit| limit > 0.0), "pidsLimit"),
            (self.memory.is_some(), "memory"),
            (self.memory_swap.is_some(), "memorySwap"),
            (self.cpus.is_some_and(|limit| limit > 0.0), "cpus"),
            (self.seccomp_profile.is_some(), "seccompProfile"),
            (self.apparmor_profile.is_some(), "apparmorProfile"),
            (!self.dns.is_empty(), "dns"),
            (!self.extra_hosts.is_empty(), "extraHosts"),
            (!self.binds.is_empty(), "binds"),
            (self.setup_command.is_some(), "setupCommand"),
            // Without a container, it would be the network of the machine.
            (!matches!(self.network.trim(), "" | "none" | "bridge" | "host"), "network"),
        ];
        limits.into_iter().find(|(is_set, _)| *is_set).map(|(_, key)| key)
    }

    /// Returns the limits of each process, for sandboxes without containers.
    pub fn process_limits(&self) -> Vec<(String, String)> {
        let limits = self.ulimits.iter().filter(|(name, _)| !name.trim().is_empty());
        limits.filter_map(|(name, limit)| Some((name.trim().to_owned(), limit.argument()?))).collect()
    }

    /// Returns a section equivalent to these settings, as input for the hash of a sandbox.
    pub fn to_section(&self) -> Value {
        let limit = |limit: &ContainerLimit| match limit {
            ContainerLimit::Number(number) => number_value(*number),
            ContainerLimit::Text(text) => Value::from(text.clone()),
        };
        let ulimit = |ulimit: &Ulimit| match ulimit {
            Ulimit::Both(both) => limit(both),
            Ulimit::Pair { soft, hard } => {
                let parts = [("soft", soft), ("hard", hard)];
                let parts = parts.into_iter().filter_map(|(key, part)| Some((key.to_owned(), number_value((*part)?))));
                Value::Object(parts.collect())
            }
        };
        let mut section = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            section.extend(value.map(|value| (key.to_owned(), value)));
        };
        let texts = |texts: &Vec<String>| Some(json!(texts)).filter(|_| !texts.is_empty());
        put("image", Some(json!(self.image)));
        put("rootfs", self.rootfs.clone().map(Value::from));
        put("containerPrefix", Some(json!(self.container_prefix)));
        put("workdir", Some(json!(self.workdir)));
        put("readOnlyRoot", Some(json!(self.read_only_root)));
        put("tmpfs", Some(json!(self.tmpfs)));
        put("network", Some(json!(self.network)));
        put("user", self.user.clone().map(Value::from));
        put("capDrop", Some(json!(self.cap_drop)));
        put("env", Some(self.env.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect()));
        put("setupCommand", self.setup_command.clone().map(Value::from));
        put("pidsLimit", self.pids_limit.map(number_value));
        put("memory", self.memory.as_ref().map(limit));
        put("memorySwap", self.memory_swap.as_ref().map(limit));
        put("cpus", self.cpus.map(number_value));
        let ulimits = self.ulimits.iter().map(|(key, value)| (key.clone(), ulimit(value)));
        put("ulimits", Some(ulimits.collect()).filter(|_| !self.ulimits.is_empty()));
        put("seccompProfile", self.seccomp_profile.clone().map(Value::from));
        put("apparmorProfile", self.apparmor_profile.clone().map(Value::from));
        put("dns", texts(&self.dns));
        put("extraHosts", texts(&self.extra_hosts));
        put("binds", texts(&self.binds));
        Value::Object(section)
    }
}

/// Writes a number like JavaScript: integers without a fraction.
fn number_value(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => Value::from(number as i64),
        false => Value::from(number),
    }
}

/// Merges an object member of two levels; the second level takes precedence. The first returned value says whether the first level has any
/// entries.
fn entries<T>(
    reader: &mut SectionReader,
    levels: [&SectionMembers<'_>; 2],
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> (bool, Vec<(String, T)>) {
    let mut all = Vec::new();
    let is_first = levels[0].get(key).is_some();
    for level in levels {
        let Some((value, path)) = level.get(key) else { continue };
        let Some(members) = value.as_object() else {
            reader.problem(&path, "expected an object; ignored");
            continue;
        };
        for (name, value) in members {
            match read(value) {
                Some(value) => all = with(all, (name.clone(), value)),
                None => reader.problem(&format!("{path}.{name}"), "cannot be read; ignored"),
            }
        }
    }
    (is_first, all)
}

/// Adds an entry to a list, replacing an existing one in place.
fn with<T>(mut all: Vec<(String, T)>, (name, value): (String, T)) -> Vec<(String, T)> {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some(place) => place.1 = value,
        None => all.push((name, value)),
    }
    all
}
