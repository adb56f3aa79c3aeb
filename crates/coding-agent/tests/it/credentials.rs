//! Credentials found on the machine.

use std::sync::Arc;

use pinch_coding_agent::auth::{AuthError, AuthStorage, RequestAuth};
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_llm::keys::AMBIENT;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};
use serde_json::json;

#[tokio::test]
async fn a_clouds_credential_files_replace_a_key() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".aws/credentials");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[default]\n").unwrap();
    let adc = home.path().join("adc.json");
    std::fs::write(&adc, "{}").unwrap();
    let env: Env = [
        ("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), adc.to_string_lossy().into_owned()),
        ("GOOGLE_CLOUD_PROJECT".to_owned(), "p".to_owned()),
        ("GOOGLE_CLOUD_LOCATION".to_owned(), "l".to_owned()),
    ]
    .into_iter()
    .collect();
    let host = Host::builder().home(home.path()).env(env).build();
    let (storage, _) = AuthStorage::load(&home.path().join("auth.json"));
    let auth = RegistryAuth::new(Arc::new(ModelRegistry::builtin()), storage, None, host);
    let key = async |provider: &str| {
        let record = json!({"id": "m", "api": "x", "provider": provider, "baseUrl": ""});
        let model = Model::from_record(&record).unwrap();
        assert_eq!(auth.is_configured(&model.provider), auth.for_model(&model, &Cancel::new()).await.is_ok());
        auth.for_model(&model, &Cancel::new()).await.map(|auth| auth.key.unwrap().reveal().to_owned())
    };
    assert_eq!(key("amazon-bedrock").await.unwrap(), AMBIENT);
    assert_eq!(key("google-vertex").await.unwrap(), AMBIENT);
    assert!(matches!(key("openai").await, Err(AuthError::Missing { .. })));
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&adc).unwrap();
    assert!(key("amazon-bedrock").await.is_err() && key("google-vertex").await.is_err());
}
