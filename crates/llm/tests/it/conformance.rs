//! Every wire format does what every wire format must do.

use pinch_testing::wires::anthropic::Anthropic;
use pinch_testing::wires::completions::Completions;
use pinch_testing::wires::google::Google;
use pinch_testing::wires::mistral::Mistral;
use pinch_testing::wires::responses::Responses;

/// Why there is nothing to mend in arguments.
const WHOLE_CALLS: &str = "calls come whole, as JSON in JSON: what is no JSON breaks the whole event";

pinch_testing::wire_suite! {
    anthropic => Anthropic, gaps: [];
    completions => Completions, gaps: [];
    responses => Responses::OpenAi, gaps: [];
    azure => Responses::Azure, gaps: [];
    codex => Responses::Codex, gaps: [];
    google => Google::Generative, gaps: [
        Scenario::ArgumentsNoObject => WHOLE_CALLS,
        Scenario::ArgumentsMended => WHOLE_CALLS,
    ];
    #[cfg(feature = "vertex")]
    vertex => Google::Vertex, gaps: [
        Scenario::ArgumentsNoObject => WHOLE_CALLS,
        Scenario::ArgumentsMended => WHOLE_CALLS,
    ];
    mistral => Mistral, gaps: [];
}
