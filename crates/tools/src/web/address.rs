//! Blocking addresses of this machine and its networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    let is_internal = match address {
        IpAddr::V4(address) => is_internal_v4(address),
        IpAddr::V6(address) => is_internal_v6(address),
    };
    if is_internal { Err(AddressError::Internal) } else { Ok(()) }
}

fn is_internal_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        [0 | 10 | 127, ..] | [169, 254, ..] | [192, 168, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        [100, second, ..] => (64..128).contains(&second),
        // Multicast, reserved and broadcast.
        [first, ..] => first >= 224,
    }
}

fn is_internal_v6(address: Ipv6Addr) -> bool {
    let [a, b, .., g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    // Embedded IPv4 addresses: mapped, compatible, translated, 6to4, Teredo.
    let is_zero_prefix = address.octets()[..10].iter().all(|byte| *byte == 0);
    if is_zero_prefix || (a == 0x64 && b == 0xff9b) {
        return address.is_unspecified() || address.is_loopback() || is_internal_v4(v4(g, h));
    }
    if a == 0x2002 {
        return is_internal_v4(v4(b, address.segments()[2]));
    }
    // Teredo, link-local, site-local, unique local, multicast.
    (a == 0x2001 && b == 0)
        || (a & 0xffc0) == 0xfe80
        || (a & 0xffc0) == 0xfec0
        || (a & 0xfe00) == 0xfc00
        || (a & 0xff00) == 0xff00
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
