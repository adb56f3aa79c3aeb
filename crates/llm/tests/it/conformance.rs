//! Every wire format passes the conformance suite.

use pinch_testing::wires::anthropic::AnthropicServer;
#[cfg(feature = "bedrock")]
use pinch_testing::wires::bedrock::BedrockServer;
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::google::GoogleServer;
use pinch_testing::wires::mistral::MistralServer;
use pinch_testing::wires::responses::ResponsesServer;

pinch_testing::wire_suite! {
    anthropic => AnthropicServer, gaps: [];
    completions => CompletionsServer, gaps: [];
    responses => ResponsesServer::OpenAi, gaps: [];
    azure => ResponsesServer::Azure, gaps: [];
    codex => ResponsesServer::Codex, gaps: [WireScenario::OutputLimit => "subscriptions take no limit"];
    google => GoogleServer::Generative, gaps: [WireScenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    #[cfg(feature = "vertex")]
    vertex => GoogleServer::Vertex, gaps: [WireScenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    #[cfg(feature = "cloud-code-assist")]
    cloud_code => GoogleServer::CodeAssist, gaps: [WireScenario::SchemaKeywords => "Google's own formats take the whole of JSON Schema"];
    mistral => MistralServer, gaps: [];
    #[cfg(feature = "bedrock")]
    bedrock => BedrockServer, gaps: [];
}
