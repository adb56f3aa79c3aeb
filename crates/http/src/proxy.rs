//! Proxies from the environment.

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

    /// Returns the proxy that is set for a URL, if any, whether or not an exception applies to its host.
    pub(super) fn set_for(&self, url: &str) -> Option<&str> {
        if url.starts_with("https://") { self.https.as_deref() } else { self.http.as_deref() }
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
}
