//! The servers that a sandbox may reach.

use std::net::IpAddr;

use pinch_stdx::address::is_internal;
use url::Host;

/// Ports of web servers, for entries without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

/// A list of servers: `example.com`, `*.example.com` for all its subdomains, or an address, each with an optional port. Without a port, an
/// entry stands for the ports 80 and 443.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainList(Vec<DomainRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct DomainRule {
    server: DomainPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DomainPattern {
    Name(String),
    /// The subdomains of a domain.
    Below(String),
    Address(IpAddr),
}

/// An entry that is not the name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is not a server: {reason}")]
#[non_exhaustive]
pub struct InvalidDomain {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DomainRefusal {
    #[error("{0} is not in the list of servers that this sandbox may reach")]
    NotListed(String),
    #[error(
        "{0} has an address of this machine or its networks, which is not in the list of servers that this sandbox may reach"
    )]
    Internal(String),
}

impl DomainList {
    /// Parses a list.
    ///
    /// # Errors
    /// Names the first invalid entry.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, InvalidDomain> {
        entries.iter().map(|entry| DomainRule::parse(entry.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether no server is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks a name or address that a program wants to connect to, before the name is resolved.
    pub(crate) fn check_host(&self, host: &Host, port: u16) -> Result<(), DomainRefusal> {
        let refused = || DomainRefusal::NotListed(format!("{host}:{port}"));
        self.0.iter().any(|rule| rule.permits(host, port)).then_some(()).ok_or_else(refused)
    }

    /// Checks an address that a permitted name resolved to: a name must not lead to this machine or its networks.
    pub(crate) fn check_address(&self, host: &Host, address: IpAddr, port: u16) -> Result<(), DomainRefusal> {
        let is_listed = || {
            let host = match address {
                IpAddr::V4(address) => Host::Ipv4(address),
                IpAddr::V6(address) => Host::Ipv6(address),
            };
            self.check_host(&host, port).is_ok()
        };
        match is_internal(address) && !is_listed() {
            true => Err(DomainRefusal::Internal(host.to_string())),
            false => Ok(()),
        }
    }
}

impl DomainRule {
    fn parse(entry: &str) -> Result<Self, InvalidDomain> {
        let invalid = |reason| InvalidDomain { entry: entry.to_owned(), reason };
        let text = entry.trim();
        if text.contains('/') || text.contains('@') {
            return Err(invalid("write only its name, without a scheme, a user and a path"));
        }
        // An IPv6 address has colons of its own.
        let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let (name, port) = match text.rsplit_once(':').filter(|_| !is_bare_v6 && !text.ends_with(']')) {
            Some((name, port)) => {
                let port = port.parse().ok().filter(|port| *port != 0);
                (name, Some(port.ok_or_else(|| invalid("the port is not a number from 1 to 65535"))?))
            }
            None => (text, None),
        };
        if is_bare_v6 {
            let address = name.parse().map_err(|_| invalid("the address is invalid"))?;
            return Ok(Self { server: DomainPattern::Address(address), port });
        }
        let (below, name) = name.strip_prefix("*.").map_or((false, name), |name| (true, name));
        if name.contains('*') {
            return Err(invalid("a wildcard is possible only at the beginning, as in *.example.com"));
        }
        let server = match host(name).ok_or_else(|| invalid("the name is invalid"))? {
            Host::Domain(name) if below && !name.contains('.') => {
                return Err(invalid("a wildcard needs a domain of at least two parts, as in *.example.com"));
            }
            Host::Domain(name) if below => DomainPattern::Below(format!(".{name}")),
            Host::Domain(name) => DomainPattern::Name(name),
            _ if below => return Err(invalid("an address has no subdomains")),
            Host::Ipv4(address) => DomainPattern::Address(address.into()),
            Host::Ipv6(address) => DomainPattern::Address(address.into()),
        };
        Ok(Self { server, port })
    }

    fn permits(&self, host: &Host, port: u16) -> bool {
        let is_it = match (&self.server, host) {
            (DomainPattern::Name(name), Host::Domain(host)) => name == host,
            (DomainPattern::Below(end), Host::Domain(host)) => host.len() > end.len() && host.ends_with(end.as_str()),
            (DomainPattern::Address(address), Host::Ipv4(host)) => *address == IpAddr::V4(*host),
            (DomainPattern::Address(address), Host::Ipv6(host)) => *address == IpAddr::V6(*host),
            _ => false,
        };
        is_it && self.port.map_or_else(|| WEB_PORTS.contains(&port), |own| own == port)
    }
}

/// Parses a host as browsers do: in lower case, with international names in ASCII, and numbers in any notation as addresses.
pub(crate) fn host(name: &str) -> Option<Host> {
    let host = Host::parse(name.strip_suffix('.').unwrap_or(name)).ok()?;
    let is_valid = match &host {
        Host::Domain(name) => name.len() <= 253 && name.split('.').all(|label| !label.is_empty() && label.len() <= 63),
        _ => true,
    };
    is_valid.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> DomainList {
        DomainList::parse(entries).unwrap()
    }

    #[test]
    fn only_listed_servers_are_permitted() {
        let list = list(&[
            "Example.com",
            "*.crates.io",
            "git.test:22",
            "10.0.0.5",
            "[fd00::1]:8080",
            "fd00::2",
            "bücher.test",
        ]);
        for (name, port, expect) in [
            ("example.com", 443, true),
            ("EXAMPLE.com.", 80, true),
            ("example.com", 8443, false),
            ("www.example.com", 443, false),
            ("example.com.evil.test", 443, false),
            ("notexample.com", 443, false),
            ("static.crates.io", 443, true),
            ("a.b.crates.io", 443, true),
            ("crates.io", 443, false),
            (".crates.io", 443, false),
            ("evilcrates.io", 443, false),
            ("git.test", 22, true),
            ("git.test", 443, false),
            ("10.0.0.5", 443, true),
            ("0xa.5", 443, true),
            ("10.0.0.6", 443, false),
            ("[fd00::1]", 8080, true),
            ("[fd00::1]", 80, false),
            ("[fd00::2]", 80, true),
            ("xn--bcher-kva.test", 443, true),
            ("127.0.0.1", 80, false),
        ] {
            let found = host(name).is_some_and(|host| list.check_host(&host, port).is_ok());
            assert_eq!(found, expect, "{name}:{port}");
        }
        assert!(DomainList::default().is_empty());
    }

    #[test]
    fn a_listed_name_does_not_lead_to_internal_addresses() {
        let list = list(&["example.com", "10.0.0.5"]);
        let example = host("example.com").unwrap();
        for (address, expect) in [
            ("8.8.8.8", true),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("::1", false),
            ("10.0.0.5", true),
            ("10.0.0.6", false),
        ] {
            assert_eq!(list.check_address(&example, address.parse().unwrap(), 443).is_ok(), expect, "{address}");
        }
    }

    #[test]
    fn invalid_entries_are_named() {
        for entry in [
            "",
            "*",
            "*.com",
            "a.*.b",
            "https://a.test",
            "a.test/x",
            "u@a.test",
            "a.test:0",
            "a.test:x",
            "*.10.0.0.1",
            "a b",
            "a..b",
            "::1]",
        ] {
            assert_eq!(DomainList::parse(&["ok.test", entry]).unwrap_err().entry, entry);
        }
    }
}
