//! Proxies from the environment.

use hyper_util::client::proxy::matcher::Matcher;
use pinch_stdx::host::Env;

/// The proxy variables of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Proxies {
    http: Option<String>,
    https: Option<String>,
    none_for: Option<String>,
}

impl Proxies {
    pub(super) fn of(env: &Env) -> Self {
        let get = |lower: &str, upper: &str| env.non_empty(lower).or_else(|| env.non_empty(upper)).map(str::to_owned);
        let all = get("all_proxy", "ALL_PROXY");
        Self {
            http: get("http_proxy", "HTTP_PROXY").or_else(|| all.clone()),
            https: get("https_proxy", "HTTPS_PROXY").or(all),
            none_for: get("no_proxy", "NO_PROXY"),
        }
    }

    /// Returns whether plain requests use a proxy that speaks TLS.
    pub(super) fn need_tls(&self) -> bool {
        self.http.as_ref().is_some_and(|url| url.starts_with("https://"))
    }

    /// Returns the proxy that requests to a URL use, if any.
    pub(super) fn used_for(&self, url: &str) -> Option<&str> {
        let proxy = if url.starts_with("https://") { self.https.as_deref() } else { self.http.as_deref() }?;
        // The matcher that reqwest uses for its exceptions.
        let exceptions = self.none_for.as_deref().unwrap_or_default();
        let matcher = Matcher::builder().all("http://proxy").no(exceptions).build();
        matcher.intercept(&url.parse().ok()?).map(|_| proxy)
    }

    /// Returns the proxy for tunnels.
    pub(super) fn for_tunnels(&self) -> Option<String> {
        self.https.clone()
    }

    pub(super) fn to_reqwest(&self) -> Result<Vec<reqwest::Proxy>, reqwest::Error> {
        let exceptions = || self.none_for.as_deref().and_then(reqwest::NoProxy::from_string);
        let http = self.http.as_ref().map(reqwest::Proxy::http);
        let https = self.https.as_ref().map(reqwest::Proxy::https);
        http.into_iter().chain(https).map(|proxy| proxy.map(|proxy| proxy.no_proxy(exceptions()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specific_variables_take_precedence_and_empty_ones_are_ignored() {
        let env: Env =
            [("ALL_PROXY", "http://a"), ("https_proxy", "http://s"), ("HTTP_PROXY", "")].into_iter().collect();
        let proxies = Proxies::of(&env);
        assert_eq!((proxies.http.as_deref(), proxies.https.as_deref()), (Some("http://a"), Some("http://s")));
        assert_eq!(proxies.to_reqwest().unwrap().len(), 2);
        assert!(Proxies::of(&Env::default()).to_reqwest().unwrap().is_empty());
    }

    #[test]
    fn exempt_hosts_use_no_proxy() {
        let used = |no_proxy: &str, url: &str| {
            let env = [("HTTP_PROXY", "http://p"), ("HTTPS_PROXY", "http://s"), ("NO_PROXY", no_proxy)];
            Proxies::of(&env.into_iter().collect()).used_for(url).map(str::to_owned)
        };
        assert_eq!(used("", "http://a.test/v1").as_deref(), Some("http://p"));
        assert_eq!(used("a.test, 10.0.0.0/8", "https://b.test:8443/v1").as_deref(), Some("http://s"));
        for (no_proxy, url) in [
            ("a.test", "http://a.test:8080/v1"),
            (".a.test", "https://sub.a.test/v1"),
            ("b.test,10.0.0.0/8", "http://10.1.2.3/v1"),
            ("*", "https://b.test/v1"),
        ] {
            assert_eq!(used(no_proxy, url), None, "{no_proxy} {url}");
        }
    }
}
