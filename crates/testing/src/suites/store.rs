//! What every store of sessions must do, whatever it keeps them in: canonical scenarios, the same for all.
//!
//! A place says how the suite reaches the sessions: as programs do, through stores, and as a crash or a foreign program would, by its bytes.
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
//!         let named = JsonlStore::flat(&self.0).file_of(&SessionRef::Id(id.to_owned()));
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
//! In a test file the macro makes one test of each scenario; each begins with a place of its own:
//!
//! ```ignore
//! pinch_testing::store_suite! {
//!     files => Directory::new(), gaps: [];
//!     mine => MyPlace::new(), gaps: [StoreScenario::TornTail => "a row is written whole or not at all"];
//! }
//! ```
//!
//! A gap must have a reason, and fails when the scenario passes after all.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::store::{SessionRef, SessionStore};

mod support;

mod journal;

mod list;

mod log;

/// Where sessions are kept; empty when a scenario begins.
pub trait StorePlace: Send + Sync {
    /// The sessions as one more program sees them: each call opens a store of its own.
    fn store(&self) -> Arc<dyn SessionStore>;

    /// Makes a session hold exactly these bytes, whatever they are, as a program that was killed or knows nothing of locks would leave
    /// them. It begins when there is none with this id. Returns how programs name it; with a header inside it must be found by its id, too.
    fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef>;
}

/// Declares the scenarios once: the enum, its names in tests, and what runs them.
macro_rules! scenarios {
    ($($(#[$doc:meta])+ $name:ident => $run:path),+ $(,)?) => {
        /// One thing that every store must do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StoreScenario {
            $($(#[$doc])+ $name,)+
        }

        impl StoreScenario {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Runs the scenario on a place.
            ///
            /// # Errors
            /// What does not hold.
            pub fn run(self, place: &dyn StorePlace) -> Result<(), String> {
                match self {
                    $(Self::$name => $run(place),)+
                }
            }
        }
    };
}

scenarios! {
    /// Lines come back in the order in which they were appended, and ends add up.
    Order => journal::order,
    /// Lines are returned byte by byte, also those of unknown types.
    Bytes => journal::bytes,
    /// A line of many megabytes is a line.
    HugeLine => journal::huge_line,
    /// A session is there with its first line, and not before.
    LazyBegin => journal::lazy_begin,
    /// A missing session is reported as missing.
    Missing => journal::missing,
    /// A new session never takes over another.
    BegunTwice => journal::begun_twice,
    /// An append after a foreign one writes nothing and returns the foreign lines.
    Moved => journal::moved,
    /// An append to a session that became shorter fails.
    CutShort => journal::cut_short,
    /// A line begins on a line of its own, also after one without its end.
    MissingNewline => journal::missing_newline,
    /// Replacing loses nothing that was written meanwhile.
    Replaced => journal::replaced,
    /// A removed session is gone, and only that one; no later write brings it back.
    Removed => journal::removed,
    /// A writer that has lost its lease writes nothing.
    Fenced => journal::fenced,
    /// Forcing lines to the disk changes nothing that is seen.
    Synced => journal::synced,
    /// An append that is dropped halfway wrote all its lines or none.
    Dropped => journal::dropped,
    /// Many writers at the same time: each line whole, each there once, each writer's in order.
    Parallel => journal::parallel,
    /// A list shows what it should, the latest changed first, and only sessions.
    Summaries => list::summaries,
    /// Lists and the most recent session keep to their working directory.
    Scopes => list::scopes,
    /// A list is never out of date.
    Fresh => list::fresh,
    /// Many sessions are listed, with progress, and each is found.
    Many => list::many,
    /// After every operation another program sees the same session.
    Reopen => log::reopen,
    /// A line that was torn off costs nothing but itself.
    TornTail => log::torn_tail,
    /// A line that was read while it was being written is read whole later.
    FinishedMeanwhile => log::finished_meanwhile,
    /// Empty and blank sessions begin with the first message; new ones as well.
    Empty => log::empty,
    /// A text that is not a session is refused and left unchanged.
    NoSession => log::no_session,
    /// Old sessions are brought up to date once, with all their fields; those of today are left alone.
    Migrated => log::migrated,
    /// Entries of other programs are carried on byte by byte.
    Unknown => log::unknown,
    /// A branch becomes a session of its own; its source is unchanged.
    Branched => log::branched,
    /// Wherever a program dies, every call has a result once the next one continues.
    Guard => log::guard,
    /// Foreign entries that continue from our leaf are followed and reported.
    Followed => log::followed,
    /// Foreign entries elsewhere leave our leaf unchanged, and are reported.
    Beside => log::beside,
    /// Calls that another program left open get results before we continue after them.
    CallsMeanwhile => log::calls_meanwhile,
    /// An entry that could not be written does not exist in memory either.
    CutUnderALog => log::cut_under_a_log,
    /// Several programs in one session: nothing is lost, nothing forks silently.
    ParallelLogs => log::parallel,
}

impl StoreScenario {
    /// Runs the scenario and panics when it does not hold, or when it is a gap and holds.
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

/// Makes the tests of the suite for each place; see [the module](self).
#[macro_export]
macro_rules! store_suite {
    ($($(#[$meta:meta])* $name:ident => $place:expr, gaps: [$($gap:expr => $reason:expr),* $(,)?]);+ $(;)?) => {
        $(
            $(#[$meta])*
            mod $name {
                use $crate::suites::store::StoreScenario;

                use super::*;

                const GAPS: &[(StoreScenario, &str)] = &[$(($gap, $reason)),*];

                /// Fails when the tests below are not all there are.
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
