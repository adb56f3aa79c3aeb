//! What every wire format must do, whatever it looks like: canonical scenarios, the same for all.
//!
//! ```ignore
//! pinch_testing::wire_suite! {
//!     anthropic => AnthropicServer, gaps: [];
//!     #[cfg(feature = "mine")]
//!     mine => MyFormat, gaps: [WireScenario::Thinking => "its models do not think aloud"];
//! }
//! ```
//!
//! makes one test of each scenario and format. When formats of [`pinch_llm::wire::builtin`] are among them, another test fails unless all of
//! those are. A format of your own returns itself from [`Wire::format`]. A gap must have a reason, and fails when the scenario passes after all.

mod support;

mod answers;

mod network;

mod requests;

use crate::wires::Wire;

/// One thing that every wire format must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireScenario {
    /// Text arrives in deltas that add up to it.
    Text,
    /// Thinking arrives before the text, and stays apart from it.
    Thinking,
    /// Arguments in many deltas are readable at every delta and whole at the end.
    SplitArguments,
    /// Several calls in one answer stay apart and in order.
    ParallelCalls,
    /// An answer without content is a good answer.
    Empty,
    /// A response that ends before its time is a retryable error, at whichever frame it is cut.
    CutStream,
    /// An error in the stream ends it, and what came before stays.
    ErrorMidStream,
    /// Tokens are counted and priced.
    Usage,
    /// An answer that reached its length limit says so.
    Length,
    /// An unknown stop reason is an error that names it.
    UnknownStop,
    /// Counts beyond all reason break nothing.
    HugeCounts,
    /// Arguments that are not an object are an error of the call, with the raw text.
    ArgumentsNoObject,
    /// Raw control characters and broken escapes in arguments are repaired.
    ArgumentsMended,
    /// However the bytes are cut into chunks, the events are the same: inside a character, inside an escape, byte by byte.
    ChunkEdges,
    /// Unknown events and keep-alives change nothing.
    UnknownEvents,
    /// Bytes that were damaged on the way end the stream once, and break nothing.
    Garbage,
    /// Every failing status becomes a typed error with the server's text and the time to wait, without a second request.
    Statuses,
    /// Cancelling at any event ends the stream as aborted.
    AbortAtEachEvent,
    /// Cancelled before it begins, nothing is sent.
    AbortBefore,
    /// A connection that breaks inside the response is a retryable error, and what came stays.
    BrokenConnection,
    /// The idle timeout applies; keep-alives do not reset it.
    IdleDeadline,
    /// The headers timeout applies.
    HeaderDeadline,
    /// Observers see and replace the body, and see the response before the first event.
    Observers,
    /// The message records provider, model, time, duration, thinking level and stop reason.
    Facts,
    /// Images of users reach models that see; others get a note.
    UserImages,
    /// Images in tool results reach models that see; others get a note.
    ToolImages,
    /// A conversation of any other format continues in this one: text, calls and results stay, foreign thinking is dropped.
    HandOffTo,
    /// A conversation of this format continues in any other.
    HandOffFrom,
    /// A call without a result gets one; blank texts are not sent.
    Pairing,
    /// No blank text is sent anywhere; an empty output of a tool is replaced by a note.
    BlankTexts,
    /// Ids of another model's calls stay distinct, however they are shortened, and match those of their results.
    LongIds,
    /// Headers of the model, of the credential and of the call override one another in this order, and nothing removes one.
    Headers,
    /// The limit of the answer is never above the room that is left, and never below one.
    OutputLimit,
    /// Models that do not support a temperature get none.
    Temperature,
    /// Tools' schemas come without the keywords that a model's family refuses.
    SchemaKeywords,
    /// Equal requests have equal bytes, and a later turn begins with the earlier one.
    StableBytes,
    /// Keys appear only in their header.
    Secrets,
}

impl WireScenario {
    /// Runs the scenario on a format.
    ///
    /// # Errors
    /// What does not hold.
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
            Self::ArgumentsNoObject => answers::arguments_no_object(wire),
            Self::ArgumentsMended => answers::arguments_mended(wire),
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

    /// Runs the scenario and panics when it does not hold, or when it is a gap and holds.
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

/// Fails when some wire formats of pinch-llm have a suite and others do not. A suite of formats of your own alone is complete.
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

/// Makes the tests of the suite for each format; see [the module](self).
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
                    unknown_stop UnknownStop, huge_counts HugeCounts, arguments_no_object ArgumentsNoObject, arguments_mended ArgumentsMended,
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
