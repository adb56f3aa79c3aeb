//! Blocking addresses of this machine and its networks.

use std::net::IpAddr;

use pinch_stdx::address::is_internal;
use url::Host;

/// Why an address is blocked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The host name belongs to this machine or its networks.
    #[error("Blocked hostname: {host}")]
    Hostname {
        /// The name.
        host: String,
    },
    /// The address belongs to this machine or its networks.
    #[error("Blocked: private/internal IP address")]
    Internal,
}

/// Checks the host of a URL before resolving it. Recognizes every numeric form that browsers accept as an address.
///
/// # Errors
/// Fails if the host is not public.
pub fn check_host(host: &str) -> Result<(), AddressError> {
    let name = host.trim().trim_end_matches('.').to_lowercase();
    let blocked = || AddressError::Hostname { host: host.trim().to_owned() };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return check_address(address);
    }
    match Host::parse(&name) {
        Ok(Host::Ipv4(address)) => return check_address(address.into()),
        Ok(Host::Ipv6(address)) => return check_address(address.into()),
        Ok(Host::Domain(_)) => {}
        Err(_) => return Err(blocked()),
    }
    let is_local = matches!(name.as_str(), "localhost" | "metadata.google.internal")
        || [".localhost", ".local", ".internal"].iter().any(|end| name.ends_with(end));
    if is_local { Err(blocked()) } else { Ok(()) }
}

/// Checks an address that a name resolved to.
///
/// # Errors
/// Fails if the address is not public.
pub fn check_address(address: IpAddr) -> Result<(), AddressError> {
    if is_internal(address) { Err(AddressError::Internal) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_hosts_are_blocked_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.local",
            "metadata.google.internal",
            "127.1",
            "0x7f.1",
            "2130706433",
            "017700000001",
            "[::1]",
            "::1",
            "10.0.0.1",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "0.0.0.0",
            "fe80::1",
            "fec0::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "",
            "a b",
        ] {
            assert!(check_host(host).is_err(), "{host}");
        }
        for host in [
            "example.com",
            "8.8.8.8",
            "172.32.0.1",
            "2606:4700::1111",
            "[2606:4700::1111]",
            "100.128.0.1",
            "64:ff9b::808:808",
            "internal.example",
        ] {
            assert_eq!(check_host(host), Ok(()), "{host}");
        }
    }
}
