//! Every wire format does what every wire format must do.

use pinch_testing::wires::anthropic::Anthropic;
use pinch_testing::wires::completions::Completions;

pinch_testing::wire_suite! {
    anthropic => Anthropic, gaps: [];
    completions => Completions, gaps: [];
}
