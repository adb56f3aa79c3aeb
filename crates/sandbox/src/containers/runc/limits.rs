//! Limits and user ids of a container, as the OCI runtime specification has them.

use serde_json::{Map, Value, json};

use crate::config::{ContainerConfig, ContainerLimit, Ulimit};

/// Maps an id of the host to root's in the container, which is the only one that runc maps for an ordinary user.
pub(super) fn ids(id: u32) -> Value {
    json!([{"containerID": 0, "hostID": id, "size": 1}])
}

/// Returns the limits of processes, memory and CPU time.
///
/// # Errors
/// Fails if a limit is not understood, or cannot be enforced for an ordinary user.
pub(super) fn resources(config: &ContainerConfig, is_rootless: bool) -> Result<Option<Value>, String> {
    let bytes = |key: &str, limit: &Option<ContainerLimit>| match limit {
        None => Ok(None),
        Some(limit) => size(limit).map(Some).ok_or_else(|| format!("docker.{key} is not a size such as 512m")),
    };
    let mut memory = Map::new();
    memory.extend(bytes("memory", &config.memory)?.map(|limit| ("limit".to_owned(), json!(limit))));
    memory.extend(bytes("memorySwap", &config.memory_swap)?.map(|limit| ("swap".to_owned(), json!(limit))));
    let positive = |number: Option<f64>| number.filter(|number| *number > 0.0);
    let mut limits = Map::new();
    if !memory.is_empty() {
        limits.insert("memory".to_owned(), memory.into());
    }
    limits.extend(positive(config.pids_limit).map(|limit| ("pids".to_owned(), json!({"limit": limit as i64}))));
    limits.extend(positive(config.cpus).map(|cpus| {
        let period = 100_000;
        ("cpu".to_owned(), json!({"period": period, "quota": (cpus * f64::from(period)) as i64}))
    }));
    if is_rootless {
        return match limits.keys().next() {
            Some(kind) => Err(format!("the limit of {kind} cannot be enforced without root")),
            None => Ok(None),
        };
    }
    // Devices are denied except those that runc always allows, such as /dev/null.
    limits.insert("devices".to_owned(), json!([{"allow": false, "access": "rwm"}]));
    Ok(Some(limits.into()))
}

/// Returns the limits that a shell's `ulimit` sets.
///
/// # Errors
/// Fails if a limit is not a number.
pub(super) fn rlimits(config: &ContainerConfig) -> Result<Vec<Value>, String> {
    let limits = config.ulimits.iter().filter(|(name, _)| !name.trim().is_empty());
    let limits = limits.map(|(name, limit)| {
        let number = |limit: &ContainerLimit| limit.argument().and_then(|text| text.parse::<u64>().ok());
        let (soft, hard) = match limit {
            Ulimit::Both(both) => (number(both), number(both)),
            Ulimit::Pair { soft, hard } => (soft.or(*hard).map(|n| n as u64), hard.or(*soft).map(|n| n as u64)),
        };
        let kind = format!("RLIMIT_{}", name.trim().to_ascii_uppercase());
        match (soft, hard) {
            (Some(soft), Some(hard)) => Ok(json!({"type": kind, "soft": soft, "hard": hard})),
            _ => Err(format!("docker.ulimits.{name} is not a number")),
        }
    });
    limits.collect()
}

/// Parses a size: bytes, or a number with one of the units b, k, m and g.
fn size(limit: &ContainerLimit) -> Option<i64> {
    let text = limit.argument()?.to_ascii_lowercase();
    let unit = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor: f64 = match unit.trim() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * factor) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_translated_or_refused() {
        let mut config = ContainerConfig {
            memory: Some(ContainerLimit::Text("1.5g".to_owned())),
            memory_swap: Some(ContainerLimit::Number(4096.0)),
            pids_limit: Some(64.0),
            cpus: Some(0.5),
            ..ContainerConfig::default()
        };
        let limits = resources(&config, false).unwrap().unwrap();
        assert_eq!(limits["memory"], json!({"limit": 1_610_612_736_i64, "swap": 4096}));
        assert_eq!((&limits["pids"]["limit"], &limits["cpu"]["quota"]), (&json!(64), &json!(50_000)));
        assert_eq!(resources(&config, true).unwrap_err(), "the limit of memory cannot be enforced without root");
        config.memory = Some(ContainerLimit::Text("much".to_owned()));
        assert_eq!(resources(&config, false).unwrap_err(), "docker.memory is not a size such as 512m");
        let pair = Ulimit::Pair { soft: Some(8.0), hard: Some(9.0) };
        config.ulimits = vec![("nofile".to_owned(), pair)];
        assert_eq!(rlimits(&config).unwrap(), [json!({"type": "RLIMIT_NOFILE", "soft": 8, "hard": 9})]);
        config.ulimits = vec![("core".to_owned(), Ulimit::Both(ContainerLimit::Text("x".to_owned())))];
        assert_eq!(rlimits(&config).unwrap_err(), "docker.ulimits.core is not a number");
    }
}
