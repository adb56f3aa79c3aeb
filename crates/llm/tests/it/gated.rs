//! Errors for wire formats that are not built in name the feature that enables them.

use pinch_llm::provider::ProviderRegistry;

#[test]
fn a_missing_format_names_its_feature() {
    let registry = ProviderRegistry::builtin();
    let text = |api: &str| registry.get(&api.into()).err().map(|error| error.to_string());
    assert_eq!(text("x").as_deref(), Some("No API provider registered for api: x"));
    let expected = "API bedrock-converse-stream is not built in (enable feature bedrock)";
    assert_eq!(text("bedrock-converse-stream").as_deref(), (!cfg!(feature = "bedrock")).then_some(expected));
}
