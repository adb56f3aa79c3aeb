//! The configuration of a container: `config.json` of the OCI runtime specification.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::limits::{ids, resources, rlimits};
use crate::config::ContainerConfig;
use crate::confined::KERNEL_FILES;
use crate::confinement::{NetworkAccess, PathAccess};
use crate::container::container_environment;
use crate::containers::binds::BoundPath;

/// Search path of commands.
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Directories that are not taken from the image.
const OWN: [&str; 3] = ["proc", "dev", "sys"];
/// Paths that reveal or change something about the host.
const MASKED: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];
/// System calls that no agent's command needs; see the filter of the other backends.
const BLOCKED: [&str; 46] = [
    "acct",
    "add_key",
    "adjtimex",
    "bpf",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
];

/// Everything about a container except its command.
#[derive(Clone, Debug)]
pub(super) struct ContainerPlan {
    /// The directory that becomes `/`, with the mount points of the image.
    pub(super) root: PathBuf,
    /// The image's own directories, then temporary ones, then those of the sandbox.
    mounts: Vec<Value>,
    linux: Map<String, Value>,
    user: (u32, u32),
    env: Vec<String>,
    rlimits: Vec<Value>,
    apparmor: Option<String>,
    label: String,
}

/// A command in a container.
pub(super) struct ContainerCommand<'a> {
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) cwd: &'a Path,
}

/// The parts of a container.
pub(super) struct PlanParts<'a> {
    pub(super) config: &'a ContainerConfig,
    /// An empty directory that becomes `/`.
    pub(super) root: &'a Path,
    /// The root file system, of which nothing is changed.
    pub(super) image: &'a Path,
    pub(super) bound: Vec<BoundPath>,
    pub(super) network: &'a NetworkAccess,
    pub(super) user: (u32, u32),
    /// Whether this program runs as an ordinary user.
    pub(super) is_rootless: bool,
    /// Label of the program that owns the container.
    pub(super) label: String,
}

impl ContainerPlan {
    /// Prepares the root directory, and plans what is mounted there.
    ///
    /// # Errors
    /// Returns the reason if the image or the configuration cannot be used.
    pub(super) fn new(parts: PlanParts<'_>) -> Result<Self, String> {
        let PlanParts { config, root, image, mut bound, network, user, is_rootless, label } = parts;
        bound.sort_by_key(|bound| bound.target.components().count());
        let mut targets: Vec<PathBuf> = bound.iter().map(|bound| bound.target.clone()).collect();
        let temporary: Vec<(PathBuf, Vec<String>)> = config.tmpfs.iter().map(|text| temporary(text)).collect();
        let (temporary, missing): (Vec<_>, Vec<_>) =
            temporary.into_iter().partition(|(path, _)| can_be_mounted(image, path));
        if !missing.is_empty() {
            tracing::debug!(?missing, "the image has no such directories, so nothing is mounted there");
        }
        targets.extend(temporary.iter().map(|(path, _)| path.clone()));
        let mut mounts =
            image_mounts(root, image, &targets).map_err(|error| format!("{}: {error}", image.display()))?;
        if let Some(target) = targets.iter().find(|target| !can_be_mounted(image, target)) {
            return Err(format!("the root file system has no {}, where something is mounted", target.display()));
        }
        mounts.extend(system_mounts(is_rootless));
        mounts.extend(temporary.iter().map(|(path, options)| mount("tmpfs", "tmpfs", path, options)));
        if *network == NetworkAccess::On && image.join("etc/resolv.conf").is_file() {
            let source = Path::new("/etc/resolv.conf");
            mounts.push(bind(source, source, PathAccess::Read));
        }
        mounts.extend(bound.iter().map(|bound| bind(&bound.source, &bound.target, bound.access)));
        let variables = container_environment(&config.env).allowed;
        let env = std::iter::once(SEARCH_PATH.to_owned());
        Ok(Self {
            root: root.to_owned(),
            mounts,
            linux: linux(network, is_rootless, user, resources(config, is_rootless)?),
            user: if is_rootless { (0, 0) } else { user },
            env: env.chain(variables.iter().map(|(name, value)| format!("{name}={value}"))).collect(),
            rlimits: rlimits(config)?,
            apparmor: config.apparmor_profile.clone(),
            label,
        })
    }

    /// Returns the `config.json` for a command.
    pub(super) fn config(&self, command: &ContainerCommand<'_>) -> Value {
        let own = command.env.iter().map(|(name, value)| format!("{name}={value}"));
        let mut process = json!({
            "terminal": false,
            "user": {"uid": self.user.0, "gid": self.user.1},
            "args": command.args,
            "env": self.env.iter().cloned().chain(own).collect::<Vec<_>>(),
            "cwd": command.cwd.to_string_lossy(),
            "capabilities": {"bounding": [], "effective": [], "permitted": [], "inheritable": [], "ambient": []},
            "noNewPrivileges": true,
            "rlimits": self.rlimits,
        });
        if let Some(profile) = &self.apparmor {
            process["apparmorProfile"] = json!(profile);
        }
        json!({
            "ociVersion": "1.0.2",
            "process": process,
            "root": {"path": self.root.to_string_lossy(), "readonly": true},
            "hostname": "sandbox",
            "mounts": self.mounts,
            "linux": self.linux,
            "annotations": {super::super::OWNER: self.label},
        })
    }
}

/// Returns whether something can be mounted at a path: it exists in the image, or its first directory need not be the image's.
fn can_be_mounted(image: &Path, path: &Path) -> bool {
    /// Directories whose contents in the image commands need.
    const NEEDED: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt"];
    let Ok(below) = path.strip_prefix("/") else { return false };
    let first = below.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned());
    let Some(first) = first else { return false };
    let is_there = image.join(below).symlink_metadata().is_ok();
    is_there || !(NEEDED.contains(&first.as_str()) || (first == "var" && image.join("var").is_dir()))
}

/// Creates mount points for what the image contains, and returns the mounts. Directories in which the image lacks a target are left empty.
fn image_mounts(root: &Path, image: &Path, targets: &[PathBuf]) -> std::io::Result<Vec<Value>> {
    let mut mounts = Vec::new();
    let lacks_one = |name: &Path| {
        let below = targets.iter().filter_map(|target| target.strip_prefix("/").ok());
        below.filter(|target| target.starts_with(name)).any(|target| image.join(target).symlink_metadata().is_err())
    };
    for entry in std::fs::read_dir(image)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        let (inside, kind) = (root.join(&name), entry.file_type()?);
        if OWN.iter().any(|own| name == Path::new(own)) {
            continue;
        }
        if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, inside)?;
        } else if kind.is_dir() {
            std::fs::create_dir(&inside)?;
            if !lacks_one(&name) {
                mounts.push(bind(&entry.path(), &Path::new("/").join(&name), PathAccess::Read));
            }
        } else if kind.is_file() {
            drop(std::fs::File::create_new(&inside)?);
            mounts.push(bind(&entry.path(), &Path::new("/").join(&name), PathAccess::Read));
        }
    }
    Ok(mounts)
}

fn system_mounts(is_rootless: bool) -> Vec<Value> {
    let options = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>();
    let mut terminals = options(&["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]);
    if !is_rootless {
        terminals.push("gid=5".to_owned());
    }
    vec![
        mount("proc", "proc", Path::new("/proc"), &options(&["nosuid", "noexec", "nodev"])),
        mount("tmpfs", "tmpfs", Path::new("/dev"), &options(&["nosuid", "strictatime", "mode=755", "size=65536k"])),
        mount("devpts", "devpts", Path::new("/dev/pts"), &terminals),
        mount("tmpfs", "shm", Path::new("/dev/shm"), &options(&["nosuid", "noexec", "nodev", "mode=1777"])),
    ]
}

/// Parses a temporary directory: `/path`, or `/path:options`.
fn temporary(text: &str) -> (PathBuf, Vec<String>) {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    let mut all = vec!["nosuid".to_owned(), "nodev".to_owned(), "mode=1777".to_owned()];
    all.extend(options.split(',').map(str::trim).filter(|option| !option.is_empty()).map(str::to_owned));
    (PathBuf::from(path.trim()), all)
}

fn mount(kind: &str, source: &str, target: &Path, options: &[String]) -> Value {
    json!({"destination": target.to_string_lossy(), "type": kind, "source": source, "options": options})
}

/// Returns a bind mount. File systems mounted below a read-only one are left out: they would be writable.
fn bind(source: &Path, target: &Path, access: PathAccess) -> Value {
    let options = match access {
        PathAccess::Read => ["bind", "ro", "nosuid", "nodev"],
        PathAccess::Write => ["rbind", "rw", "nosuid", "nodev"],
    };
    json!({"destination": target.to_string_lossy(), "type": "bind", "source": source.to_string_lossy(), "options": options})
}

fn linux(network: &NetworkAccess, is_rootless: bool, user: (u32, u32), resources: Option<Value>) -> Map<String, Value> {
    let mut namespaces = vec!["pid", "ipc", "uts", "mount", "cgroup"];
    namespaces.extend((*network != NetworkAccess::On).then_some("network"));
    namespaces.extend(is_rootless.then_some("user"));
    let namespaces: Vec<Value> = namespaces.into_iter().map(|kind| json!({"type": kind})).collect();
    let mut linux = Map::new();
    linux.insert("namespaces".to_owned(), namespaces.into());
    if is_rootless {
        linux.insert("uidMappings".to_owned(), ids(user.0));
        linux.insert("gidMappings".to_owned(), ids(user.1));
    }
    linux.extend(resources.map(|resources| ("resources".to_owned(), resources)));
    linux.insert("maskedPaths".to_owned(), json!(MASKED));
    linux.insert("readonlyPaths".to_owned(), json!(KERNEL_FILES));
    linux.insert("seccomp".to_owned(), seccomp(network));
    linux
}

/// Returns the system call filter.
fn seccomp(network: &NetworkAccess) -> Value {
    let masked =
        |index: u32, bits: u64| json!({"index": index, "value": bits, "valueTwo": bits, "op": "SCMP_CMP_MASKED_EQ"});
    let equal = |index: u32, value: u64| json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"});
    let refuse = |names: &[&str], args: Vec<Value>| json!({"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": args});
    let new_user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    let mut rules = vec![
        refuse(&BLOCKED, Vec::new()),
        refuse(&["clone"], vec![masked(0, new_user)]),
        // glibc falls back to `clone` if this call is missing; its flags cannot be filtered.
        json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS}),
    ];
    // Sockets that no namespace isolates, and requests that type into a terminal. In the network namespace of the host, abstract sockets
    // are not isolated either.
    let mut families = vec![libc::AF_ALG, libc::AF_VSOCK];
    families.extend((*network == NetworkAccess::On).then_some(libc::AF_UNIX));
    for family in families {
        rules.push(refuse(&["socket"], vec![equal(0, u64::from(family.unsigned_abs()))]));
    }
    rules.extend([0x5412, 0x541c].map(|request| refuse(&["ioctl"], vec![equal(1, request)])));
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})
}
