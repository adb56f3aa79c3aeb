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
    codex => Responses::Codex, gaps: [];
    google => Google::Generative, gaps: [];
    #[cfg(feature = "vertex")]
    vertex => Google::Vertex, gaps: [];
    mistral => Mistral, gaps: [];
    #[cfg(feature = "bedrock")]
    bedrock => Bedrock, gaps: [];
}
