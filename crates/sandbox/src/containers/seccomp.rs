//! The system calls of podman's containers: those of podman's own profile, without the ones that docker blocks as well.

use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// Where podman's profile is, the administrator's first.
const PROFILES: [&str; 2] = ["/etc/containers/seccomp.json", "/usr/share/containers/seccomp.json"];
/// Calls that change mounts and namespaces, or use keyrings, which are not separate in a container.
const BLOCKED: [&str; 18] = [
    "add_key",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "keyctl",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "request_key",
    "setns",
    "umount",
    "umount2",
    "unshare",
];
/// `EPERM`: the result of a blocked call.
const NOT_PERMITTED: u32 = 1;
/// `ENOSYS`: the result of `clone3`, whose flags cannot be checked. The C library then uses `clone`.
const NOT_IMPLEMENTED: u32 = 38;
/// Flags of `clone` that create namespaces.
const NAMESPACES: u32 = 0x7e02_0000;

/// Writes a profile for a container; `None` if podman's own cannot be read, which it then uses.
pub(super) fn podman_profile() -> Option<NamedTempFile> {
    let text = PROFILES.iter().find_map(|path| std::fs::read(path).ok())?;
    let profile = restricted(serde_json::from_slice(&text).ok()?)?;
    let mut file = tempfile::Builder::new().prefix("pinch-seccomp-").suffix(".json").tempfile().ok()?;
    file.write_all(profile.to_string().as_bytes()).ok()?;
    Some(file)
}

/// Removes the blocked calls from a profile.
fn restricted(mut profile: Value) -> Option<Value> {
    let rules = profile.get_mut("syscalls")?.as_array_mut()?;
    let is_removed = |name: &str| BLOCKED.contains(&name) || matches!(name, "clone" | "clone3");
    for rule in &mut *rules {
        if let Some(names) = rule.get_mut("names").and_then(Value::as_array_mut) {
            names.retain(|name| !name.as_str().is_some_and(is_removed));
        }
    }
    rules.retain(|rule| rule["names"].as_array().is_none_or(|names| !names.is_empty()));
    let has_none = [json!({"index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"})];
    rules.extend([
        json!({"names": BLOCKED, "action": "SCMP_ACT_ERRNO", "errnoRet": NOT_PERMITTED}),
        json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": NOT_IMPLEMENTED}),
        json!({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": has_none}),
    ]);
    Some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_calls_are_allowed_by_no_rule() {
        let allowed = json!(["read", "keyctl", "clone", "clone3"]);
        let profile = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
            {"names": allowed, "action": "SCMP_ACT_ALLOW"},
            {"names": ["setns", "unshare"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        ]});
        let profile = restricted(profile).unwrap();
        assert_eq!(profile["syscalls"][0]["names"], json!(["read"]));
        assert_eq!(profile["syscalls"].as_array().unwrap().len(), 4);
        assert_eq!(profile["syscalls"][3]["names"], json!(["clone"]));
        assert_eq!(restricted(json!({})), None);
    }
}
