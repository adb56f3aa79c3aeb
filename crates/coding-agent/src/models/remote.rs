//! Remote catalogs: models newer than the program's, fetched on request from a catalog server, stored in `models-store.json`, and laid over
//! the built-in catalog.
//!
//! The file has pi's format. Only entries fetched by the running version of pinch are used, since a newer one may have better built-in
//! data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pinch_llm::catalog::{Catalog, canonical_provider};
use pinch_llm::http::{HttpClient, HttpError, Outgoing, url_parts};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::Access;
use pinch_stdx::fs::dir_lock::DirLockOptions;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use crate::document::{self, ChangeError, Folder, Problem, read_object};
use crate::web::json_request;

/// The server that pi's programs use.
pub const DEFAULT_URL: &str = "https://pi.dev";
/// File name in the agent directory.
pub const FILE: &str = "models-store.json";

/// Maximum bytes of a provider's catalog.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Timeout of one request.
const REQUEST: Duration = Duration::from_secs(4);
/// Timeout of the whole refresh.
const TOTAL: Duration = Duration::from_secs(15);
/// Maximum requests per catalog.
const ATTEMPTS: usize = 3;
/// Member with the version of pinch that fetched an entry.
const VERSION_KEY: &str = "pinchVersion";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Characters to encode in a provider's name as part of a path: all except the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Fetches catalogs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogRefresh {
    /// URL of the server: https, or http on this machine.
    pub base_url: String,
    /// `models-store.json`.
    pub file: PathBuf,
    /// Clock and environment.
    pub host: Host,
}

/// The result for one provider's catalog.
#[derive(Debug)]
pub struct CatalogUpdate {
    /// The provider.
    pub provider: ProviderId,
    /// The result.
    pub outcome: Result<CatalogOutcome, CatalogError>,
}

/// The server's answer for a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogOutcome {
    /// A new catalog.
    Updated {
        /// Number of usable models.
        n_models: usize,
        /// Number of rejected records: unreadable ones, and those that would send requests to servers not used by the built-in models.
        n_refused: usize,
    },
    /// The stored catalog is up to date.
    Unchanged,
    /// The server has no catalog for it.
    Unknown,
}

/// Why a catalog was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The server URL is invalid.
    #[error("{url} is neither an https URL nor a URL of this machine")]
    BadUrl {
        /// The URL.
        url: String,
    },
    /// The request failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The request timed out.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The refresh was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The server returned an error status.
    #[error("the server responded with {0}")]
    Status(StatusCode),
    /// The answer is not a catalog.
    #[error("the answer is not a catalog of models")]
    Invalid,
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] ChangeError),
}

impl CatalogRefresh {
    /// Creates a refresh from the default server into the file in an agent directory.
    pub fn new(agent_dir: &Path, host: Host) -> Self {
        Self { base_url: DEFAULT_URL.to_owned(), file: agent_dir.join(FILE), host }
    }

    /// Fetches the catalogs of these providers in parallel and stores them. A failure leaves a provider's catalog unchanged.
    ///
    /// # Errors
    /// [`CatalogError::BadUrl`] or [`CatalogError::Write`]; failures of single providers are in the returned outcomes.
    pub fn run<'a>(
        &'a self,
        providers: &'a [ProviderId],
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<Vec<CatalogUpdate>, CatalogError>> {
        Box::pin(async move {
            let url = self.base_url.trim_end_matches('/');
            if !url_parts::is_confidential(url) {
                return Err(CatalogError::BadUrl { url: url_parts::without_secrets(url) });
            }
            // A damaged file is reported when it is written.
            let known = read_object(&self.file).unwrap_or_default();
            let catalog = Catalog::for_build();
            let client = HttpClient::new();
            let fetches = providers.iter().map(|provider| {
                let entry = known.get(provider.as_str()).filter(|entry| is_ours(entry));
                self.fetch(&client, url, provider, &catalog, entry)
            });
            let all = tokio::time::timeout(TOTAL, futures::future::join_all(fetches));
            let fetched = match cancel.run(all).await {
                Err(_) => return Err(CatalogError::Cancelled),
                Ok(Err(_)) => return Err(CatalogError::Timeout(TOTAL)),
                Ok(Ok(fetched)) => fetched,
            };
            let (mut updates, mut entries) = (Vec::new(), Vec::new());
            for (provider, fetched) in providers.iter().zip(fetched) {
                let outcome = fetched.map(|(outcome, entry)| {
                    entries.push((provider.to_string(), entry));
                    outcome
                });
                updates.push(CatalogUpdate { provider: provider.clone(), outcome });
            }
            let change = |root: &mut Map<String, Value>| root.extend(entries);
            let terms = (Folder::Private, Access::NewPrivate);
            document::change(&self.file, terms, &DirLockOptions::QUICK, &self.host, change).await?;
            Ok(updates)
        })
    }

    /// Returns the outcome, and the entry to store.
    async fn fetch(
        &self,
        client: &HttpClient,
        url: &str,
        provider: &ProviderId,
        catalog: &Catalog,
        known: Option<&Value>,
    ) -> Result<(CatalogOutcome, Value), CatalogError> {
        let has_models = |entry: &&Value| entry["models"].as_array().is_some_and(|models| !models.is_empty());
        let known = known.filter(has_models);
        let etag = known.and_then(|entry| entry["etag"].as_str()).and_then(|etag| HeaderValue::from_str(etag).ok());
        let provider_part = utf8_percent_encode(provider.as_str(), ENCODED);
        let mut request = json_request(format!("{url}/api/models/providers/{provider_part}?types=chat"));
        if let Some(etag) = etag {
            request.headers.insert(header::IF_NONE_MATCH, etag);
        }
        let (status, headers, body) = self.send(client, &request).await?;
        let checked_at = self.host.now_ms();
        match (status, known) {
            (StatusCode::NOT_MODIFIED, Some(known)) => {
                let mut entry = known.clone();
                entry["checkedAt"] = checked_at.into();
                Ok((CatalogOutcome::Unchanged, entry))
            }
            (StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED, _) => {
                let entry = json!({"models": [], "checkedAt": checked_at, "lastModified": 0, VERSION_KEY: VERSION});
                Ok((CatalogOutcome::Unknown, entry))
            }
            (status, _) if !status.is_success() => Err(CatalogError::Status(status)),
            _ => {
                let records = records(&body).ok_or(CatalogError::Invalid)?;
                let n_records = records.len();
                let servers = servers(catalog.models(provider.as_str()));
                let models: Vec<Value> =
                    records.into_iter().filter_map(|record| usable(record, provider, &servers)).collect();
                let n_models = models.len();
                let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
                let mut entry = json!({"models": models, "checkedAt": checked_at, VERSION_KEY: VERSION});
                if let Some(etag) = text(header::ETAG) {
                    entry["etag"] = etag.into();
                }
                Ok((CatalogOutcome::Updated { n_models, n_refused: n_records - n_models }, entry))
            }
        }
    }

    /// Sends a request, retrying on server errors.
    async fn send(
        &self,
        client: &HttpClient,
        request: &Outgoing,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), CatalogError> {
        let mut attempt = 1;
        loop {
            let answer = async {
                let mut incoming = client.send(request.clone(), self.host.env(), Some(REQUEST)).await?;
                let (status, headers) = (incoming.status(), incoming.headers().clone());
                let body = incoming.text_up_to(MAX_BYTES).await;
                Ok::<_, CatalogError>((status, headers, body))
            };
            let answer = tokio::time::timeout(REQUEST, answer).await.unwrap_or(Err(CatalogError::Timeout(REQUEST)));
            let is_worth_another = match &answer {
                Ok((status, ..)) => status.is_server_error() && *status != StatusCode::NOT_IMPLEMENTED,
                Err(_) => true,
            };
            if !is_worth_another || attempt == ATTEMPTS {
                return answer;
            }
            attempt += 1;
        }
    }
}

/// Extracts the records of an answer: a list, an object with a list of `models`, or an object of records.
fn records(body: &[u8]) -> Option<Vec<Value>> {
    match serde_json::from_slice(body).ok()? {
        Value::Array(records) => Some(records),
        Value::Object(mut members) => match members.remove("models") {
            Some(Value::Array(records)) => Some(records),
            _ => Some(members.into_iter().map(|(_, record)| record).collect()),
        },
        _ => None,
    }
}

/// Returns the servers of a provider's built-in models.
fn servers(models: &[std::sync::Arc<Model>]) -> BTreeSet<String> {
    models.iter().map(|model| server(&model.base_url)).collect()
}

/// Returns scheme and authority of a URL; an invalid URL is returned unchanged.
fn server(url: &str) -> String {
    match url.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() && uri.authority().is_some() => {
            format!("{}://{}", uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |a| a.as_str()))
        }
        _ => url.to_owned(),
    }
}

/// Returns a record if it is usable. The catalog server must not redirect a provider, or keys would be sent to a server of its choice.
fn usable(record: Value, provider: &ProviderId, servers: &BTreeSet<String>) -> Option<Value> {
    let Value::Object(mut record) = record else { return None };
    if record.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "chat") {
        return None;
    }
    record.remove("headers");
    record.insert("provider".into(), provider.as_str().into());
    let record = Value::Object(record);
    let model = Model::from_record(&record).ok()?;
    (!model.id.as_str().is_empty() && servers.contains(&server(&model.base_url))).then_some(record)
}

fn is_ours(entry: &Value) -> bool {
    entry.get(VERSION_KEY).and_then(Value::as_str) == Some(VERSION)
}

/// Applies the fetched records to a catalog; also returns problems with the file.
pub(super) fn laid_over(catalog: Catalog, file: &Path) -> (Catalog, Vec<Problem>) {
    let stored = match read_object(file) {
        Ok(stored) => stored,
        Err(problem) => return (catalog, vec![problem.remedy("Remove it, and run `pinch update --models`")]),
    };
    let mut newer = Map::new();
    for (provider, mut entry) in stored.into_iter().filter(|(_, entry)| is_ours(entry)) {
        let Some(Value::Array(models)) = entry.get_mut("models").map(Value::take) else { continue };
        let id = |record: &Value| record.get("id").and_then(Value::as_str).map(str::to_owned);
        let records: Map<String, Value> =
            models.into_iter().filter_map(|record| Some((id(&record)?, record))).collect();
        newer.insert(canonical_provider(&provider).to_owned(), Value::Object(records));
    }
    if newer.is_empty() {
        return (catalog, Vec::new());
    }
    let refreshed = catalog.refreshed(&Value::Object(newer).to_string());
    let problems = refreshed.problems.into_iter().map(|what| Problem::new(file, what).remedy("It is ignored"));
    (refreshed.catalog, problems.collect())
}
