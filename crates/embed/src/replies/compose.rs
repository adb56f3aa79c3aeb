//! The parts of a reply in order, each with a name, so that a host can insert its own before or after any of them.
//!
//! | name | what it does |
//! |---|---|
//! | [`SCAN`] | separates words for people from reasoning and tags |
//! | [`CHUNK`] | cuts visible text into blocks |
//! | [`DIRECTIVES`] | reads reply tags and `MEDIA:` lines |
//! | [`TOKENS`] | removes silent and heartbeat tokens, and what only programs should read |
//! | [`COALESCE`] | joins small blocks |
//! | [`DEDUPE`] | drops blocks that went out already |
//! | [`THREADS`] | sets the message that a block replies to |
//!
//! Before `scan` pass the words of the model ([`Piece::Text`](super::Piece::Text)), between `scan` and `chunk` visible text
//! ([`Piece::Visible`](super::Piece::Visible)), after `chunk` blocks ([`Piece::Block`](super::Piece::Block)).
//!
//! ```
//! use pinch_embed::replies::compose::{COALESCE, Stages};
//! use pinch_embed::replies::dedupe::Dedupe;
//! use pinch_embed::replies::ReplyOptions;
//!
//! let mut stages = Stages::new(&ReplyOptions::default());
//! stages.insert_before(COALESCE, "mine", Dedupe::default())?;
//! assert_eq!(stages.names().collect::<Vec<_>>(), ["scan", "chunk", "directives", "tokens", "mine", "coalesce", "dedupe", "threads"]);
//! # Ok::<(), pinch_embed::replies::compose::UnknownStage>(())
//! ```

use std::fmt;

use super::coalesce::Coalesce;
use super::dedupe::Dedupe;
use super::directives::Directives;
use super::directives::threading::Threads;
use super::normalise::Cleanup;
use super::{ReplyOptions, Stage};

/// Separates words for people from reasoning and tags.
pub const SCAN: &str = "scan";
/// Cuts visible text into blocks.
pub const CHUNK: &str = "chunk";
/// Reads reply tags and `MEDIA:` lines.
pub const DIRECTIVES: &str = "directives";
/// Removes silent and heartbeat tokens, and what only programs should read.
pub const TOKENS: &str = "tokens";
/// Joins small blocks, if blocks are joined at all.
pub const COALESCE: &str = "coalesce";
/// Drops blocks that went out already.
pub const DEDUPE: &str = "dedupe";
/// Sets the message that a block replies to.
pub const THREADS: &str = "threads";

/// One place in the order.
struct Place {
    name: &'static str,
    stage: PlaceStage,
}

enum PlaceStage {
    /// Part of the pipeline itself: it reports to its owner, too.
    BuiltIn,
    /// Nothing, with these options.
    Off,
    /// A part of its own.
    Own(Box<dyn Stage>),
}

/// The parts of a reply in order.
pub struct Stages(Vec<Place>);

/// No stage has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no reply stage is called \"{0}\"")]
pub struct UnknownStage(pub &'static str);

impl Stages {
    /// The default parts for these options. This is the one place that says what a reply passes through.
    pub fn new(options: &ReplyOptions) -> Self {
        let own = |name, stage| Place { name, stage: PlaceStage::Own(stage) };
        let coalesce = match &options.coalescing {
            Some(coalescing) => PlaceStage::Own(Box::new(Coalesce::new(coalescing.clone()))),
            None => PlaceStage::Off,
        };
        let built_in = |name| Place { name, stage: PlaceStage::BuiltIn };
        Self(vec![
            built_in(SCAN),
            built_in(CHUNK),
            own(DIRECTIVES, Box::new(Directives::new(options.media_roots.clone()))),
            own(TOKENS, Box::new(Cleanup)),
            Place { name: COALESCE, stage: coalesce },
            own(DEDUPE, Box::<Dedupe>::default()),
            own(THREADS, Box::new(Threads::new(options.reply_to, options.current_message.clone()))),
        ])
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|place| place.name)
    }

    /// Inserts a part before another.
    ///
    /// # Errors
    /// [`UnknownStage`]; nothing is inserted then.
    pub fn insert_before(
        &mut self,
        name: &'static str,
        new: &'static str,
        stage: impl Stage + 'static,
    ) -> Result<(), UnknownStage> {
        let at = self.position(name)?;
        self.insert(at, new, Box::new(stage));
        Ok(())
    }

    /// Inserts a part after another.
    ///
    /// # Errors
    /// [`UnknownStage`]; nothing is inserted then.
    pub fn insert_after(
        &mut self,
        name: &'static str,
        new: &'static str,
        stage: impl Stage + 'static,
    ) -> Result<(), UnknownStage> {
        let at = self.position(name)? + 1;
        self.insert(at, new, Box::new(stage));
        Ok(())
    }

    /// Adds a part behind all others.
    pub fn push(&mut self, new: &'static str, stage: impl Stage + 'static) {
        self.insert(self.0.len(), new, Box::new(stage));
    }

    fn insert(&mut self, at: usize, name: &'static str, stage: Box<dyn Stage>) {
        self.0.insert(at, Place { name, stage: PlaceStage::Own(stage) });
    }

    fn position(&self, name: &'static str) -> Result<usize, UnknownStage> {
        self.names().position(|known| known == name).ok_or(UnknownStage(name))
    }

    /// The parts before `scan`, between it and `chunk`, and after that.
    pub(super) fn into_chains(self) -> [Vec<Box<dyn Stage>>; 3] {
        let mut chains = [Vec::new(), Vec::new(), Vec::new()];
        let mut chain = 0;
        for place in self.0 {
            match place.stage {
                PlaceStage::BuiltIn => chain += 1,
                PlaceStage::Off => {}
                PlaceStage::Own(stage) => chains[chain.min(2)].push(stage),
            }
        }
        chains
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
