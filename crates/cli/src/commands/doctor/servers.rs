//! Checks which of the models' servers can be reached.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use http::{HeaderMap, Uri};
use pinch_embed::coding_agent::models::local_servers;
use pinch_embed::llm::http::{HttpClient, HttpError, Outgoing, url_parts};
use pinch_embed::stdx::host::Host;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};

/// Which servers to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// None.
    Nothing,
    /// Those on this machine and its network.
    Near,
    /// Also those of providers with keys.
    Everything,
}

/// Maximum number of servers.
const MAX_ASKED: usize = 48;
/// Time limit of a server on this machine or its network.
const NEAR: Duration = Duration::from_millis(800);
/// Time limit of other servers.
const FAR: Duration = Duration::from_secs(5);

/// Checks the servers concurrently.
pub(super) async fn look(context: &DoctorContext, reach: Reach) -> DoctorSection {
    let mut section = DoctorSection::new("Servers");
    if reach == Reach::Nothing {
        section.add(FindingStatus::Note, "servers", "not checked: offline");
        return section;
    }
    let (places, n_far) = places(context, reach);
    let n_left_out = places.len().saturating_sub(MAX_ASKED);
    let client = HttpClient::new();
    let asked = futures::stream::iter(places.into_iter().take(MAX_ASKED))
        .map(|(address, place)| ask(&client, &context.host, address, place))
        .buffered(MAX_ASKED);
    let (local, answers) = tokio::join!(local_servers::find(&context.host), asked.collect::<Vec<_>>());
    for server in &local {
        section.add(FindingStatus::Ok, server.name, format!("{}, {} models", server.base_url, server.models.len()));
    }
    for (address, place, done) in answers {
        match done {
            Ok(()) => section.add(FindingStatus::Ok, place.providers.join(", "), format!("{address} responds")),
            Err(why) => section.add(
                FindingStatus::Warn,
                place.providers.join(", "),
                format!("{address} does not respond: {why}"),
            ),
        }
    }
    if n_left_out > 0 {
        section.add(FindingStatus::Note, "more", format!("not checked, too many: {n_left_out}"));
    }
    if n_far > 0 {
        let text = format!("not checked without --online: {n_far} servers");
        section.add(FindingStatus::Note, "other networks", text);
    }
    if section.is_empty() {
        section.add(FindingStatus::Note, "servers", "none found on this machine or in models.json");
    }
    section
}

/// A server of a provider.
struct ServerAddress {
    providers: Vec<String>,
    is_near: bool,
    /// The complete URL, which is not shown.
    url: String,
}

/// Returns the servers by scheme, host and port, and the number of servers out of reach.
fn places(context: &DoctorContext, reach: Reach) -> (BTreeMap<String, ServerAddress>, usize) {
    let mut places = BTreeMap::<String, ServerAddress>::new();
    let mut far = std::collections::BTreeSet::new();
    for provider in context.registry.providers() {
        // Servers without a configured key are skipped, because the catalog has very many.
        if !context.auth.is_configured(&provider) {
            continue;
        }
        let Some(model) = context.registry.default_model(&provider) else { continue };
        let Some((address, is_near)) = address(&model.base_url) else { continue };
        if !is_near && reach == Reach::Near {
            far.insert(address);
            continue;
        }
        let url = model.base_url.clone();
        let place = places.entry(address).or_insert_with(|| ServerAddress { providers: Vec::new(), is_near, url });
        place.providers.push(provider.to_string());
    }
    (places, far.len())
}

/// Returns scheme, host and port of a URL, without secrets, and whether it is near.
fn address(url: &str) -> Option<(String, bool)> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, host) = (uri.scheme_str()?, uri.host()?);
    // Parts of a URL may be placeholders for environment variables.
    if host.contains(['{', '}', '$']) {
        return None;
    }
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some((format!("{scheme}://{host}{port}"), url_parts::is_near(url)))
}

/// Connects to a server. Any response is fine, even one that requires credentials: none are sent.
async fn ask(
    client: &HttpClient,
    host: &Host,
    address: String,
    place: ServerAddress,
) -> (String, ServerAddress, Result<(), String>) {
    let limit = if place.is_near { NEAR } else { FAR };
    let outgoing = Outgoing::get(place.url.clone(), HeaderMap::new());
    let done = match tokio::time::timeout(limit, client.send(outgoing, host.env(), Some(limit))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(HttpError::Connect { cause, .. })) => Err(cause),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no response within {} ms", limit.as_millis())),
    };
    (address, place, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_without_secrets() {
        let of = |url: &str| address(url).map(|(address, is_near)| format!("{address} {is_near}"));
        assert_eq!(of("http://u:secret@127.0.0.1:8000/v1?key=secret").as_deref(), Some("http://127.0.0.1:8000 true"));
        assert_eq!(of("http://gpu-box:8000/v1").as_deref(), Some("http://gpu-box:8000 true"));
        assert_eq!(of("http://[::1]:1/v1").as_deref(), Some("http://[::1]:1 true"));
        assert_eq!(of("https://api.example.com/v1").as_deref(), Some("https://api.example.com false"));
        assert_eq!(of("https://{ACCOUNT}.example.com/v1"), None);
        assert_eq!(of("none"), None);
    }
}
