//! Conformance suite for wire formats, with the same scenarios for all.
//!
//! ```ignore
//! pinch_testing::wire_suite! {
//!     anthropic => AnthropicServer, gaps: [];
//!     #[cfg(feature = "mine")]
//!     mine => MyFormat, gaps: [WireScenario::Thinking => "its models do not think aloud"];
//! }
//! ```
//!
//! generates one test per scenario and format. If formats of [`pinch_llm::wire::builtin`] are among them, another test fails unless all of
//! those are. A custom format returns itself from [`Wire::format`]. A gap must have a reason, and fails if the scenario passes after all.

mod support;

mod answers;

mod network;

mod requests;

use crate::wires::Wire;

/// A law of every wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireScenario {
    /// Text arrives in deltas that add up to it.
    Text,
    /// Thinking arrives before the text, and is separate from it.
    Thinking,
    /// Arguments in many deltas are readable after every delta and complete at the end.
    SplitArguments,
    /// Several calls in one answer are separate and in order.
    ParallelCalls,
    /// An answer without content is successful.
    Empty,
    /// A response that ends early is a retryable error, at whichever frame it is cut.
    CutStream,
    /// An error in the stream ends it, and earlier content stays.
    ErrorMidStream,
    /// Tokens are counted and priced.
    Usage,
    /// An answer that reached its length limit reports it.
    Length,
    /// An unknown stop reason is an error that names it.
    UnknownStop,
    /// Absurdly large counts cause no failure.
    HugeCounts,
    /// Arguments that are not an object are an error of the call, with the raw text.
    ArgumentsNotAnObject,
    /// Raw control characters and broken escapes in arguments are repaired.
    ArgumentsRepaired,
    /// The events do not depend on how the bytes are chunked: inside a character, inside an escape, byte by byte.
    ChunkEdges,
    /// Unknown events and keep-alives have no effect.
    UnknownEvents,
    /// Corrupted bytes end the stream once, and cause no panic.
    Garbage,
    /// Every failing status becomes a typed error with the server's text and the requested delay, without a second request.
    Statuses,
    /// Cancelling at any event ends the stream as aborted.
    AbortAtEachEvent,
    /// If cancelled before the start, nothing is sent.
    AbortBefore,
    /// A connection that breaks inside the response is a retryable error, and the content so far stays.
    BrokenConnection,
    /// The idle timeout applies; keep-alives do not reset it.
    IdleDeadline,
    /// The headers timeout applies.
    HeaderDeadline,
    /// Observers see and replace the body, and see the response before the first event.
    Observers,
    /// The message records provider, model, time, duration, thinking level and stop reason.
    Facts,
    /// User images reach models with vision; others get a note.
    UserImages,
    /// Images in tool results reach models with vision; others get a note.
    ToolImages,
    /// A conversation of any other format continues in this one: text, calls and results stay, and foreign thinking is dropped.
    HandOffTo,
    /// A conversation of this format continues in any other.
    HandOffFrom,
    /// A call without a result gets one; blank texts are not sent.
    Pairing,
    /// No blank text is sent anywhere; an empty tool output is replaced by a note.
    BlankTexts,
    /// Ids of another model's calls stay distinct, however they are shortened, and match those of their results.
    LongIds,
    /// Headers of the model, of the credential and of the call override one another in this order, and null removes one.
    Headers,
    /// The limit of the answer never exceeds the available room, and is at least one.
    OutputLimit,
    /// Models that do not support a temperature get none.
    Temperature,
    /// Tool schemas do not contain keywords that a model's family rejects.
    SchemaKeywords,
    /// Equal requests have equal bytes, and a later turn starts with the bytes of the earlier one.
    StableBytes,
    /// Keys appear only in their header.
    Secrets,
}

impl WireScenario {
    /// Runs the scenario on a format.
    ///
    /// # Errors
    /// Returns the violated law.
    pub fn run(self, wire: &dyn Wire) -> Result<(), String> {
        match self {
            Self::Text => answers::text(wire),
            Self::Thinking => answers::thinking(wire),
            Self::SplitArguments => answers::split_arguments(wire),
            Self::ParallelCalls => answers::parallel_calls(wire),
            Self::Empty => answers::empty(wire),
            Self::CutStream => answers::cut_stream(wire),
            Self::ErrorMidStream => answers::error_mid_stream(wire),
            Self::Usage => answers::usage(wire),
            Self::Length => answers::length(wire),
            Self::UnknownStop => answers::unknown_stop(wire),
            Self::HugeCounts => answers::huge_counts(wire),
            Self::ArgumentsNotAnObject => answers::arguments_no_object(wire),
            Self::ArgumentsRepaired => answers::arguments_mended(wire),
            Self::ChunkEdges => answers::chunk_edges(wire),
            Self::UnknownEvents => answers::unknown_events(wire),
            Self::Garbage => answers::garbage(wire),
            Self::Statuses => network::statuses(wire),
            Self::AbortAtEachEvent => network::abort_at_each_event(wire),
            Self::AbortBefore => network::abort_before(wire),
            Self::BrokenConnection => network::broken_connection(wire),
            Self::IdleDeadline => network::idle_deadline(wire),
            Self::HeaderDeadline => network::header_deadline(wire),
            Self::Observers => network::observers(wire),
            Self::Facts => network::facts(wire),
            Self::UserImages => requests::user_images(wire),
            Self::ToolImages => requests::tool_images(wire),
            Self::HandOffTo => requests::hand_off_to(wire),
            Self::HandOffFrom => requests::hand_off_from(wire),
            Self::Pairing => requests::pairing(wire),
            Self::BlankTexts => requests::blank_texts(wire),
            Self::LongIds => requests::long_ids(wire),
            Self::Headers => requests::headers(wire),
            Self::OutputLimit => requests::output_limit(wire),
            Self::Temperature => requests::temperature(wire),
            Self::SchemaKeywords => requests::schema_keywords(wire),
            Self::StableBytes => requests::stable_bytes(wire),
            Self::Secrets => requests::secrets(wire),
        }
    }

    /// Runs the scenario and panics if it fails, or if it is a gap and passes.
    ///
    /// # Panics
    /// As a test does.
    pub fn check(self, wire: &dyn Wire, gaps: &[(Self, &str)]) {
        let gap = gaps.iter().find(|(scenario, _)| *scenario == self);
        match (self.run(wire), gap) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some((_, reason))) => panic!("{}: {self:?} holds, though it should not: {reason}", wire.api()),
            (Err(why), None) => panic!("{}: {self:?}: {why}", wire.api()),
        }
    }
}

/// Fails if some wire formats of pinch-llm have a suite and others do not. Suites of only custom formats are complete.
///
/// # Panics
/// As a test does.
pub fn every_format_has_a_suite(suites: &[&str]) {
    let formats = pinch_llm::wire::builtin();
    if !formats.iter().any(|format| suites.contains(&format.api())) {
        return;
    }
    let missing: Vec<&str> = formats.iter().map(|f| f.api()).filter(|api| !suites.contains(api)).collect();
    assert!(missing.is_empty(), "wire formats without a suite: {missing:?}");
}

/// Generates the tests of the suite for each format; see [the module](self).
#[macro_export]
macro_rules! wire_suite {
    ($($(#[$meta:meta])* $name:ident => $wire:expr, gaps: [$($gap:expr => $reason:expr),* $(,)?]);+ $(;)?) => {
        $(
            $(#[$meta])*
            mod $name {
                use $crate::suites::wire::WireScenario;

                use super::*;

                const GAPS: &[(WireScenario, &str)] = &[$(($gap, $reason)),*];

                $crate::wire_suite!(@scenarios $wire;
                    text Text, thinking Thinking, split_arguments SplitArguments, parallel_calls ParallelCalls, empty Empty,
                    cut_stream CutStream, error_mid_stream ErrorMidStream, usage Usage, length Length,
                    unknown_stop UnknownStop, huge_counts HugeCounts, arguments_no_object ArgumentsNotAnObject, arguments_mended ArgumentsRepaired,
                    chunk_edges ChunkEdges, unknown_events UnknownEvents, garbage Garbage, statuses Statuses,
                    abort_at_each_event AbortAtEachEvent, abort_before AbortBefore, broken_connection BrokenConnection,
                    idle_deadline IdleDeadline, header_deadline HeaderDeadline, observers Observers, facts Facts,
                    user_images UserImages, tool_images ToolImages, hand_off_to HandOffTo, hand_off_from HandOffFrom,
                    pairing Pairing, blank_texts BlankTexts, long_ids LongIds, headers Headers, output_limit OutputLimit,
                    temperature Temperature, schema_keywords SchemaKeywords, stable_bytes StableBytes, secrets Secrets);
            }
        )+

        #[test]
        fn every_format_has_a_suite() {
            let mut suites = Vec::new();
            $(
                $(#[$meta])*
                suites.push($crate::wires::Wire::api(&$wire));
            )+
            $crate::suites::wire::every_format_has_a_suite(&suites);
        }
    };
    (@scenarios $wire:expr; $($test:ident $scenario:ident),+) => {
        $(
            #[test]
            fn $test() {
                WireScenario::$scenario.check(&$wire, GAPS);
            }
        )+
    };
}
