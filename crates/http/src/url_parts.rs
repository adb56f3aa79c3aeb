//! Parts of URLs: the host they belong to, and what may be shown of them.

use url::{Host, Url};

/// Returns the host of a URL in lower case, without user, port and path, as a request resolves it; empty if there is none.
pub fn host(url: &str) -> String {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name.to_ascii_lowercase(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => String::new(),
    }
}

/// Returns whether a URL's host is this machine, by address or as `localhost`.
pub fn is_this_machine(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether data sent to a URL stays confidential: it uses TLS, or does not leave this machine.
pub fn is_confidential(url: &str) -> bool {
    url.starts_with("https://") || (url.starts_with("http://") && is_this_machine(url))
}

/// Returns whether a URL's host is this machine or on its network, by address or by a name that is not an internet domain.
pub fn is_near(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => {
            !name.contains('.') || [".local", ".lan", ".internal", ".localhost"].iter().any(|end| name.ends_with(end))
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified()
        }
        None => false,
    }
}

/// Returns a URL without its query, user and password. For an invalid URL, in which a password cannot be recognised, only the scheme is
/// returned. Parsed by hand, since a parser would reject or rewrite placeholders.
pub fn without_secrets(url: &str) -> String {
    const HIDDEN: &str = "[hidden]";
    let (before, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None if url.contains('@') => return HIDDEN.to_owned(),
        None => (String::new(), url),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.ends_with([']', '}']) || port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port && (rest.is_empty() || !host.is_empty()) {
        format!("{before}{host}{path}")
    } else {
        format!("{before}{HIDDEN}")
    }
}

/// Returns whether a host is a domain or a subdomain of it. A domain that ends in a dot, such as `api.moonshot.`, matches every host with
/// that prefix.
pub fn is_under(host: &str, domain: &str) -> bool {
    if domain.ends_with('.') {
        return host.starts_with(domain) || host.contains(&format!(".{domain}"));
    }
    host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Like [`is_under`], for the host of a URL.
pub fn host_is(url: &str, domain: &str) -> bool {
    is_under(&host(url), domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_and_local_urls_are_confidential() {
        for url in ["https://a.test/x", "http://localhost:80/", "http://127.8.0.1", "http://[::1]/"] {
            assert!(is_confidential(url), "{url}");
        }
        for url in
            ["http://a.test", "http://localhost.a.test", "http://10.0.0.1", "ftp://localhost", "ws://localhost", ""]
        {
            assert!(!is_confidential(url), "{url}");
        }
    }

    #[test]
    fn domains_match_only_the_host() {
        assert!(host_is("https://api.x.ai/v1", "api.x.ai"));
        assert!(host_is("https://eu.api.x.ai:443/v1", "api.x.ai"));
        assert!(!host_is("https://notapi.x.ai.example/v1", "api.x.ai"));
        assert!(!host_is("https://myapi.x.ai/v1", "api.x.ai"));
        assert!(!host_is("http://proxy.test/?to=api.x.ai", "api.x.ai"));
        assert!(!host_is("http://api.x.ai@proxy.test/", "api.x.ai"));
        assert!(host_is("https://api.moonshot.cn/v1", "api.moonshot."));
        assert_eq!(host("http://[::1]:8080/v1"), "::1");
        assert_eq!(host("nonsense"), "");
        assert_eq!(host("https://API.{Region}.Example.com/v1"), "api.{region}.example.com");
    }

    #[test]
    fn only_loopback_addresses_are_this_machine() {
        for near in
            ["http://localhost:1/", "http://LOCALHOST", "http://127.0.0.1/", "http://127.1:8/v1", "http://[::1]:8/"]
        {
            assert!(is_this_machine(near), "{near}");
        }
        for far in [
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "http://127.0.0.1@h.example/",
            "http://[::2]/",
            "x",
        ] {
            assert!(!is_this_machine(far), "{far}");
        }
    }

    #[test]
    fn shown_urls_contain_no_secrets() {
        for kept in [
            "",
            "none",
            "localhost:8000/v1",
            "https://api.example.com",
            "http://127.0.0.1:8000/v1/@cf/meta",
            "http://[::1]:80/",
            "http://[::1]",
            "https://{ACCOUNT}.example.com:{PORT}/v1",
        ] {
            assert_eq!(without_secrets(kept), kept);
        }
        for (url, shown) in [
            ("https://user:secret@h.example/v1", "https://h.example/v1"),
            ("https://secret@h.example:8/v1?key=secret#secret", "https://h.example:8/v1"),
            ("https://h.example?key=secret", "https://h.example"),
            ("http://user:se@cret@[::1]:8/v1", "http://[::1]:8/v1"),
            ("http://user:secret/@h.example/v1", "http://[hidden]"),
            ("http://user:secret#@h.example/v1", "http://[hidden]"),
            ("http:///user:secret@h.example/v1", "http://[hidden]"),
            ("http:/user:secret@h.example/v1", "[hidden]"),
            ("http:\\\\user:secret@h.example", "[hidden]"),
            ("user:secret@h.example/v1", "[hidden]"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
