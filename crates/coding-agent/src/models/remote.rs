//! Newer models than those of the program: fetched from a server of catalogs when the user asks for it, kept in `models-store.json`, and laid over
//! the built-in catalog.
//!
//! The file has pi's shape. Only what the running version of pinch has fetched counts: a later one may know better.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
/// The file in the agent directory.
pub const FILE: &str = "models-store.json";

/// Bytes of a catalog of one provider at most.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(4);
/// How long all of it may take.
const TOTAL: Duration = Duration::from_secs(15);
/// Requests for one catalog at most.
const ATTEMPTS: usize = 3;
/// The member that names the version of pinch that fetched an entry.
const VERSION_KEY: &str = "pinchVersion";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What is encoded in the name of a provider as a part of a path: all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Fetching catalogs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogRefresh {
    /// The server: an https URL, or an http one of this machine.
    pub base_url: String,
    /// `models-store.json`.
    pub file: PathBuf,
    /// Clock and environment.
    pub host: Host,
}

/// What became of the catalog of one provider.
#[derive(Debug)]
pub struct CatalogUpdate {
    /// The provider.
    pub provider: ProviderId,
    /// What happened.
    pub outcome: Result<CatalogOutcome, CatalogError>,
}

/// What a server said of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogOutcome {
    /// A catalog.
    Updated {
        /// Models that can be used.
        n_models: usize,
        /// Records that were left out: unreadable ones, and those that would send requests to another server than the built-in models do.
        n_refused: usize,
    },
    /// The catalog that was there already is the newest.
    Unchanged,
    /// It has none.
    Unknown,
}

/// A catalog was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The server cannot be used.
    #[error("{url} is not an https URL, nor one of this machine")]
    BadUrl {
        /// The URL.
        url: String,
    },
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It was stopped.
    #[error("cancelled")]
    Cancelled,
    /// The server refused.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// The answer is no catalog.
    #[error("the answer is not a catalog of models")]
    Invalid,
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] ChangeError),
}

impl CatalogRefresh {
    /// Fetching from the usual server into the file of an agent directory.
    pub fn new(agent_dir: &Path, host: Host) -> Self {
        Self { base_url: DEFAULT_URL.to_owned(), file: agent_dir.join(FILE), host }
    }

    /// Fetches the catalogs of these providers, all at once, and writes what came. What fails leaves the catalog of its provider as it was.
    ///
    /// # Errors
    /// [`CatalogError::BadUrl`] and [`CatalogError::Write`]; the outcomes of the single providers are in the answer.
    pub async fn run(&self, providers: &[ProviderId], cancel: &Cancel) -> Result<Vec<CatalogUpdate>, CatalogError> {
        let url = self.base_url.trim_end_matches('/');
        if !url_parts::is_confidential(url) {
            return Err(CatalogError::BadUrl { url: url_parts::without_secrets(url) });
        }
        // A damaged file is reported when it is written.
        let known = read_object(&self.file).unwrap_or_default();
        let catalog = Catalog::of_build();
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
    }

    /// The outcome, and the entry that is to be kept.
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

    /// Sends a request, again if the server is out of order.
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

/// The records of an answer: a list, an object with a list of `models`, or an object of records.
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

/// The servers that the built-in models of a provider are at.
fn servers(models: &[std::sync::Arc<Model>]) -> BTreeSet<String> {
    models.iter().map(|model| server(&model.base_url)).collect()
}

/// Scheme and authority of a URL; a URL that is none stands for itself.
fn server(url: &str) -> String {
    match url.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() && uri.authority().is_some() => {
            format!("{}://{}", uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |a| a.as_str()))
        }
        _ => url.to_owned(),
    }
}

/// A record that can be used. The server of catalogs cannot move a provider, or keys would be sent to wherever it likes.
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

/// A catalog with what was fetched over it, and what is wrong with the file.
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
