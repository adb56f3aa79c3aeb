//! Conformance suite for session stores, whatever their storage.
//!
//! A [`StorePlace`] gives the suite access to the sessions: through stores, as programs do, and as raw bytes, as a crash or a foreign
//! program would.
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::future::BoxFuture;
//! use pinch_session::store::{JsonlStore, SessionRef, SessionStore};
//! use pinch_testing::suites::store::{StorePlace, StoreScenario};
//!
//! struct Directory(std::path::PathBuf);
//!
//! impl StorePlace for Directory {
//!     fn store(&self) -> Arc<dyn SessionStore> {
//!         Arc::new(JsonlStore::flat(&self.0))
//!     }
//!
//!     fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef> {
//!         let named = JsonlStore::flat(&self.0).file_of(&SessionRef::Id(id.into()));
//!         let path = named.unwrap_or_else(|| self.0.join(format!("{id}.jsonl")));
//!         std::fs::write(&path, text).expect("the directory can be written");
//!         Box::pin(async { SessionRef::Path(path) })
//!     }
//! }
//!
//! # let directory = std::env::temp_dir().join(format!("store-suite-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! StoreScenario::Moved.check(&Directory(directory.clone()), &[]);
//! # std::fs::remove_dir_all(&directory).unwrap();
//! ```
//!
//! In a test file the macro generates one test per scenario; each starts with a new place:
//!
//! ```ignore
//! pinch_testing::store_suite! {
//!     files => Directory::new(), gaps: [];
//!     mine => MyPlace::new(), gaps: [StoreScenario::TornTail => "a row is written whole or not at all"];
//! }
//! ```
//!
//! A gap must have a reason, and fails if the scenario passes after all.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::store::{SessionRef, SessionStore};

mod support;

mod journal;

mod list;

mod log;

/// Storage of sessions; empty at the start of a scenario.
pub trait StorePlace: Send + Sync {
    /// Returns the sessions as another program sees them: each call opens a new store.
    fn store(&self) -> Arc<dyn SessionStore>;

    /// Makes a session contain exactly these bytes, whatever they are, like a program that was killed or knows nothing of locks. Creates it
    /// if there is none with this id. Returns its name for programs; if it has a header, it must be found by its id, too.
    fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef>;
}

/// Declares the scenarios once: the enum, their names in tests, and their functions.
macro_rules! scenarios {
    ($($(#[$doc:meta])+ $name:ident => $run:path),+ $(,)?) => {
        /// A law of every store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StoreScenario {
            $($(#[$doc])+ $name,)+
        }

        impl StoreScenario {
            /// All scenarios.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Runs the scenario on a place.
            ///
            /// # Errors
            /// Returns the violated law.
            pub fn run(self, place: &dyn StorePlace) -> Result<(), String> {
                match self {
                    $(Self::$name => $run(place),)+
                }
            }
        }
    };
}

scenarios! {
    /// Lines are returned in the order in which they were appended, and ends add up.
    Order => journal::order,
    /// Lines are returned byte by byte, including those of unknown types.
    Bytes => journal::bytes,
    /// A line of many megabytes is supported.
    HugeLine => journal::huge_line,
    /// A session exists once its first line is appended, and not before.
    LazyBegin => journal::lazy_begin,
    /// A missing session is reported as missing.
    Missing => journal::missing,
    /// A new session never overwrites another.
    BegunTwice => journal::begun_twice,
    /// An append after a foreign one writes nothing and returns the foreign lines.
    Moved => journal::moved,
    /// An append to a session that was truncated fails.
    CutShort => journal::cut_short,
    /// A line starts on a new line, even after one without its terminator.
    MissingNewline => journal::missing_newline,
    /// Replacing loses nothing that was written meanwhile.
    Replaced => journal::replaced,
    /// A removed session is gone, and only that one; later writes do not restore it.
    Removed => journal::removed,
    /// A writer that has lost its lease writes nothing.
    Fenced => journal::fenced,
    /// Flushing lines to disk has no visible effect.
    Synced => journal::synced,
    /// An append that is dropped halfway has written all its lines or none.
    Dropped => journal::dropped,
    /// With many concurrent writers, each line is whole and present once, and each writer's lines are in order.
    Parallel => journal::parallel,
    /// A list shows the right fields, the latest changed first, and only sessions.
    Summaries => list::summaries,
    /// Lists and the most recent session are limited to their working directory.
    Scopes => list::scopes,
    /// A list is never out of date.
    Fresh => list::fresh,
    /// Many sessions are listed, with progress, and each is found.
    Many => list::many,
    /// After every operation another program sees the same session.
    Reopen => log::reopen,
    /// A torn line loses nothing but itself.
    TornTail => log::torn_tail,
    /// A line that was read while it was being written is read completely later.
    FinishedMeanwhile => log::finished_meanwhile,
    /// Empty and blank sessions start with the first message, like new ones.
    Empty => log::empty,
    /// A text that is not a session is rejected and left unchanged.
    NoSession => log::no_session,
    /// Old sessions are migrated once, with all their fields; current ones are not changed.
    Migrated => log::migrated,
    /// Entries of other programs are preserved byte by byte.
    Unknown => log::unknown,
    /// A branch becomes a separate session; its source is unchanged.
    Branched => log::branched,
    /// Wherever a program dies, every call has a result once the next one continues.
    Guard => log::guard,
    /// Foreign entries that continue our leaf are followed and reported.
    Followed => log::followed,
    /// Foreign entries elsewhere leave our leaf unchanged, and are reported.
    Beside => log::beside,
    /// Calls that another program left open get results before we continue after them.
    CallsMeanwhile => log::calls_meanwhile,
    /// An entry that could not be written does not exist in memory either.
    CutUnderALog => log::cut_under_a_log,
    /// Several programs in one session lose nothing, and nothing forks silently.
    ParallelLogs => log::parallel,
}

impl StoreScenario {
    /// Runs the scenario and panics if it fails, or if it is a gap and passes.
    ///
    /// # Panics
    /// As a test does.
    pub fn check(self, place: &dyn StorePlace, gaps: &[(Self, &str)]) {
        let gap = gaps.iter().find(|(scenario, _)| *scenario == self);
        match (self.run(place), gap) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some((_, reason))) => panic!("{self:?} holds, though it should not: {reason}"),
            (Err(why), None) => panic!("{self:?}: {why}"),
        }
    }
}

/// Generates the tests of the suite for each place; see [the module](self).
#[macro_export]
macro_rules! store_suite {
    ($($(#[$meta:meta])* $name:ident => $place:expr, gaps: [$($gap:expr => $reason:expr),* $(,)?]);+ $(;)?) => {
        $(
            $(#[$meta])*
            mod $name {
                use $crate::suites::store::StoreScenario;

                use super::*;

                const GAPS: &[(StoreScenario, &str)] = &[$(($gap, $reason)),*];

                /// Fails if the tests below are not complete.
                #[test]
                fn every_scenario_is_run() {
                    assert_eq!(SCENARIOS, StoreScenario::ALL);
                }

                $crate::store_suite!(@scenarios $place;
                    order Order, bytes Bytes, huge_line HugeLine, lazy_begin LazyBegin, missing Missing,
                    begun_twice BegunTwice, moved Moved, cut_short CutShort, missing_newline MissingNewline,
                    replaced Replaced, removed Removed, fenced Fenced, synced Synced, dropped Dropped, parallel Parallel,
                    summaries Summaries, scopes Scopes, fresh Fresh, many Many, reopen Reopen, torn_tail TornTail,
                    finished_meanwhile FinishedMeanwhile, empty Empty, no_session NoSession, migrated Migrated,
                    unknown Unknown, branched Branched, guard Guard, followed Followed, beside Beside,
                    calls_meanwhile CallsMeanwhile, cut_under_a_log CutUnderALog, parallel_logs ParallelLogs);
            }
        )+
    };
    (@scenarios $place:expr; $($test:ident $scenario:ident),+) => {
        const SCENARIOS: &[StoreScenario] = &[$(StoreScenario::$scenario),+];

        $(
            #[test]
            fn $test() {
                StoreScenario::$scenario.check(&$place, GAPS);
            }
        )+
    };
}
