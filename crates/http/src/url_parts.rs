//! URLs in parts: whose they are, and what of them may be shown.

/// The host of a URL in lower case, without user, port and path; empty when there is none.
pub fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or("");
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    host.to_ascii_lowercase()
}

/// A URL without its query, and without user and password. Of one that is broken, so that nobody can tell what of it is a password, nothing is
/// left but the scheme.
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

/// Whether a URL's host is a domain or lies under it. A domain that ends in a dot, such as `api.moonshot.`, stands for all that begin so.
pub fn host_is(url: &str, domain: &str) -> bool {
    let host = host(url);
    if domain.ends_with('.') {
        return host.starts_with(domain) || host.contains(&format!(".{domain}"));
    }
    host.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_counts() {
        assert!(host_is("https://api.x.ai/v1", "api.x.ai"));
        assert!(host_is("https://eu.api.x.ai:443/v1", "api.x.ai"));
        assert!(!host_is("https://notapi.x.ai.example/v1", "api.x.ai"));
        assert!(!host_is("https://myapi.x.ai/v1", "api.x.ai"));
        assert!(!host_is("http://proxy.test/?to=api.x.ai", "api.x.ai"));
        assert!(!host_is("http://api.x.ai@proxy.test/", "api.x.ai"));
        assert!(host_is("https://api.moonshot.cn/v1", "api.moonshot."));
        assert_eq!(host("http://[::1]:8080/v1"), "::1");
        assert_eq!(host("nonsense"), "");
    }

    #[test]
    fn what_is_shown_of_a_url_is_no_secret() {
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
