//! Every wire format does what every wire format must do.

use pinch_testing::wires::anthropic::Anthropic;
#[cfg(feature = "bedrock")]
use pinch_testing::wires::bedrock::Bedrock;
use pinch_testing::wires::completions::Completions;
use pinch_testing::wires::google::Google;
use pinch_testing::wires::mistral::Mistral;
use pinch_testing::wires::responses::Responses;

pinch_testing::wire_suite! {
    anthropic => Anthropic, gaps: [];
    completions => Completions, gaps: [];
    responses => Responses::OpenAi, gaps: [];
    azure => Responses::Azure, gaps: [];
    codex => Responses::Codex, gaps: [Scenario::OutputLimit => "subscriptions take no limit"];
    google => Google::Generative, gaps: [Scenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    #[cfg(feature = "vertex")]
    vertex => Google::Vertex, gaps: [Scenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    #[cfg(feature = "cloud-code-assist")]
    cloud_code => Google::CodeAssist, gaps: [Scenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    mistral => Mistral, gaps: [];
    #[cfg(feature = "bedrock")]
    bedrock => Bedrock, gaps: [];
}
