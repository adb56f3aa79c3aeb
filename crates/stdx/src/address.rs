//! Addresses of this machine and its networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is not a public one: loopback, private, link-local, multicast or reserved, also within an IPv6 address.
pub fn is_internal(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_internal_v4(address),
        IpAddr::V6(address) => is_internal_v6(address),
    }
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
    fn only_public_addresses_are_not_internal() {
        for address in
            ["127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "::", "::1", "fd00::1", "::ffff:10.0.0.1"]
        {
            assert!(is_internal(address.parse().unwrap()), "{address}");
        }
        for address in ["8.8.8.8", "172.32.0.1", "2606:4700::1111"] {
            assert!(!is_internal(address.parse().unwrap()), "{address}");
        }
    }
}
