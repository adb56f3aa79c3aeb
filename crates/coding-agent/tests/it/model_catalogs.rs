//! Model catalogs from a server: requests, storage, and precedence.

use std::path::PathBuf;

use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::models::remote::{CatalogError, CatalogOutcome, CatalogRefresh};
use pinch_llm::catalog::Catalog;
use pinch_llm::ids::ProviderId;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_testing::server::{Recorded, Server, ServerReply};
use serde_json::{Value, json};

struct CatalogFixture {
    dir: tempfile::TempDir,
    server: Server,
}

impl CatalogFixture {
    async fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), server: Server::start().await.unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("models-store.json")
    }

    fn stored(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.file()).unwrap()).unwrap()
    }

    fn registry(&self) -> ModelRegistry {
        let (registry, problems) = ModelRegistry::load(&self.dir.path().join("models.json"));
        assert_eq!(problems, []);
        registry
    }

    /// Fetches Anthropic's catalog.
    async fn fetch(&self) -> Result<CatalogOutcome, CatalogError> {
        let mut refresh = CatalogRefresh::new(self.dir.path(), Host::builder().build());
        refresh.base_url = self.server.url() + "/";
        let updates = refresh.run(&[anthropic()], &Cancel::new()).await?;
        updates.into_iter().next().unwrap().outcome
    }

    fn last(&self) -> Recorded {
        self.server.requests().pop().unwrap()
    }
}

fn anthropic() -> ProviderId {
    ProviderId::new("anthropic")
}

/// Returns the record of a new model.
fn record(id: &str) -> Value {
    let mut record = Catalog::for_build().models("anthropic")[0].to_record();
    (record["id"], record["name"]) = (id.into(), "Newest".into());
    record
}

#[tokio::test]
async fn newer_models_are_fetched_stored_and_used() {
    let place = CatalogFixture::new().await;
    let known = Catalog::for_build().models("anthropic")[0].id.to_string();
    let n_built_in = Catalog::for_build().n_models("anthropic");
    let body = json!({"models": [record("claude-next"), record(&known)]});
    place.server.reply(ServerReply::json(200, &body).header("etag", "\"v1\""));
    let updated = CatalogOutcome::Updated { n_models: 2, n_refused: 0 };
    assert_eq!(place.fetch().await.unwrap(), updated);
    let asked = place.last();
    assert_eq!(asked.path, "/api/models/providers/anthropic?types=chat");
    assert_eq!((asked.header("authorization"), asked.header("if-none-match")), (None, None));
    let registry = place.registry();
    assert_eq!(registry.models(&anthropic()).len(), n_built_in + 1);
    assert_eq!(registry.find(&anthropic(), "claude-next").unwrap().name, "Newest");
    assert_eq!(registry.find(&anthropic(), &known).unwrap().name, "Newest");
    // The same request again sends no content.
    place.server.reply(ServerReply::status(304));
    assert_eq!(place.fetch().await.unwrap(), CatalogOutcome::Unchanged);
    assert_eq!(place.last().header("if-none-match"), Some("\"v1\""));
    assert!(place.registry().find(&anthropic(), "claude-next").is_some());
    // Entries fetched by another version of pinch are ignored.
    let mut stored = place.stored();
    stored["anthropic"]["pinchVersion"] = "0.0.0".into();
    std::fs::write(place.file(), stored.to_string()).unwrap();
    registry.refresh();
    assert!(registry.find(&anthropic(), "claude-next").is_none());
}

#[tokio::test]
async fn a_broken_document_does_not_hide_the_catalog() {
    let place = CatalogFixture::new().await;
    let models_json = place.dir.path().join("models.json");
    std::fs::write(&models_json, "{half").unwrap();
    let (registry, problems) = ModelRegistry::load(&models_json);
    assert_eq!(problems.len(), 1);
    assert_eq!(registry.models(&anthropic()).len(), Catalog::for_build().models("anthropic").len());
    place.server.reply(ServerReply::json(200, &json!([record("claude-next")])));
    place.fetch().await.unwrap();
    assert_eq!(registry.refresh().len(), 1);
    assert!(registry.find(&anthropic(), "claude-next").is_some());
}

#[tokio::test]
async fn all_answer_formats_are_accepted() {
    for body in [
        json!([record("claude-next")]),
        json!({"models": [record("claude-next")]}),
        json!({"claude-next": record("claude-next")}),
    ] {
        let place = CatalogFixture::new().await;
        place.server.reply(ServerReply::json(200, &body));
        assert_eq!(place.fetch().await.unwrap(), CatalogOutcome::Updated { n_models: 1, n_refused: 0 });
        assert!(place.registry().find(&anthropic(), "claude-next").is_some());
    }
}

#[tokio::test]
async fn a_catalog_cannot_redirect_keys() {
    let place = CatalogFixture::new().await;
    let at = |url: &str| {
        let mut record = record("claude-next");
        record["baseUrl"] = url.into();
        record
    };
    let mut other = record("claude-other");
    (other["provider"], other["headers"]) = ("openai".into(), json!({"x-leak": "$HOME"}));
    let body = json!([
        at("https://evil.example"),
        at("https://api.anthropic.com@evil.example"),
        at("http://api.anthropic.com"),
        other,
        {"id": "broken"},
        3,
    ]);
    place.server.reply(ServerReply::json(200, &body));
    assert_eq!(place.fetch().await.unwrap(), CatalogOutcome::Updated { n_models: 1, n_refused: 5 });
    let stored = &place.stored()["anthropic"]["models"];
    assert_eq!(stored.as_array().map(Vec::len), Some(1));
    assert_eq!((&stored[0]["provider"], stored[0].get("headers")), (&json!("anthropic"), None));
}

#[tokio::test]
async fn a_failure_keeps_the_existing_catalog() {
    let place = CatalogFixture::new().await;
    place.server.reply(ServerReply::json(200, &json!([record("claude-next")])));
    place.fetch().await.unwrap();
    let stored = place.stored();
    place.server.reply(ServerReply::json(200, &json!("nothing")));
    assert!(matches!(place.fetch().await, Err(CatalogError::Invalid)));
    place.server.reply(ServerReply::status(403));
    assert!(matches!(place.fetch().await, Err(CatalogError::Status(status)) if status == 403));
    for _ in 0..3 {
        place.server.reply(ServerReply::status(503));
    }
    assert!(matches!(place.fetch().await, Err(CatalogError::Status(status)) if status == 503));
    assert_eq!(place.stored(), stored);
    // A temporary server error is retried.
    place.server.reply(ServerReply::status(502)).reply(ServerReply::status(404));
    assert_eq!(place.fetch().await.unwrap(), CatalogOutcome::Unknown);
    assert!(place.registry().find(&anthropic(), "claude-next").is_none());
}

#[tokio::test]
async fn only_safe_servers_are_contacted() {
    let place = CatalogFixture::new().await;
    for url in ["http://example.com", "ftp://127.0.0.1", "example.com", "http://u:p@example.com"] {
        let mut refresh = CatalogRefresh::new(place.dir.path(), Host::builder().build());
        refresh.base_url = url.to_owned();
        let refused = refresh.run(&[anthropic()], &Cancel::new()).await.unwrap_err();
        assert!(matches!(&refused, CatalogError::BadUrl { url } if !url.contains(":p@")), "{refused}");
    }
    assert!(!place.file().exists());
}
