//! The stages of a reply in order. They have names, so that a host can insert its own before or after any of them.
//!
//! | name | what it does |
//! |---|---|
//! | [`SCAN`] | separates text for people from reasoning and tags |
//! | [`MARKUP`] | removes tool calls and other markup that the model wrote as text |
//! | [`CHUNK`] | splits visible text into blocks |
//! | [`DIRECTIVES`] | parses reply tags and `MEDIA:` lines |
//! | [`TOKENS`] | removes silent and heartbeat tokens, and text meant only for programs |
//! | [`COALESCE`] | joins small blocks |
//! | [`DEDUPE`] | drops blocks that were already sent |
//! | [`THREADS`] | sets the message that a block replies to |
//!
//! The input of `scan` is the model's text ([`Piece::Text`](super::Piece::Text)); between `scan` and `chunk` it is visible text
//! ([`Piece::Visible`](super::Piece::Visible)), which is also what partial replies and drafts show; after
//! `chunk` blocks ([`Piece::Block`](super::Piece::Block)).
//!
//! ```
//! use pinch_replies::compose::{COALESCE, Stages};
//! use pinch_replies::dedupe::Dedupe;
//! use pinch_replies::ReplyOptions;
//!
//! let mut stages = Stages::new(&ReplyOptions::default());
//! stages.insert_before(COALESCE, "mine", Dedupe::default())?;
//! assert_eq!(stages.names().collect::<Vec<_>>(), ["scan", "markup", "chunk", "directives", "tokens", "mine", "coalesce", "dedupe", "threads"]);
//! # Ok::<(), pinch_replies::compose::UnknownStage>(())
//! ```

use std::fmt;

use super::coalesce::Coalesce;
use super::dedupe::Dedupe;
use super::directives::Directives;
use super::directives::threading::Threads;
use super::markup::MarkupGuard;
use super::normalise::Cleanup;
use super::{ReplyOptions, Stage};

/// Separates text for people from reasoning and tags.
pub const SCAN: &str = "scan";
/// Removes tool calls and other markup that the model wrote as text.
pub const MARKUP: &str = "markup";
/// Splits visible text into blocks.
pub const CHUNK: &str = "chunk";
/// Parses reply tags and `MEDIA:` lines.
pub const DIRECTIVES: &str = "directives";
/// Removes silent and heartbeat tokens, and text meant only for programs.
pub const TOKENS: &str = "tokens";
/// Joins small blocks, if enabled.
pub const COALESCE: &str = "coalesce";
/// Drops blocks that were already sent.
pub const DEDUPE: &str = "dedupe";
/// Sets the message that a block replies to.
pub const THREADS: &str = "threads";

/// A named position in the order.
struct Place {
    name: &'static str,
    stage: PlaceStage,
}

enum PlaceStage {
    /// A stage owned by the pipeline, which also reads its state.
    BuiltIn,
    /// A stage disabled by these options.
    Off,
    /// An independent stage.
    Own(Box<dyn Stage>),
}

/// The stages of a reply in order.
pub struct Stages(Vec<Place>);

/// No stage has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no reply stage named \"{0}\"")]
pub struct UnknownStage(pub &'static str);

impl Stages {
    /// Creates the default stages for these options. This function alone defines what a reply passes through.
    pub fn new(options: &ReplyOptions) -> Self {
        let own = |name, stage| Place { name, stage: PlaceStage::Own(stage) };
        let coalesce = match &options.coalescing {
            Some(coalescing) => PlaceStage::Own(Box::new(Coalesce::new(coalescing.clone()))),
            None => PlaceStage::Off,
        };
        let built_in = |name| Place { name, stage: PlaceStage::BuiltIn };
        Self(vec![
            built_in(SCAN),
            own(MARKUP, Box::<MarkupGuard>::default()),
            built_in(CHUNK),
            own(DIRECTIVES, Box::new(Directives::new(options.directives.clone()))),
            own(TOKENS, Box::new(Cleanup::new(options.texts.clone()))),
            Place { name: COALESCE, stage: coalesce },
            own(DEDUPE, Box::<Dedupe>::default()),
            own(
                THREADS,
                Box::new(Threads::new(options.reply_to, options.current_message.clone(), options.directives.tags)),
            ),
        ])
    }

    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|place| place.name)
    }

    /// Inserts a stage before another.
    ///
    /// # Errors
    /// [`UnknownStage`]; nothing is inserted.
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

    /// Inserts a stage after another.
    ///
    /// # Errors
    /// [`UnknownStage`]; nothing is inserted.
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

    /// Appends a stage after all others.
    pub fn push(&mut self, new: &'static str, stage: impl Stage + 'static) {
        self.insert(self.0.len(), new, Box::new(stage));
    }

    fn insert(&mut self, at: usize, name: &'static str, stage: Box<dyn Stage>) {
        self.0.insert(at, Place { name, stage: PlaceStage::Own(stage) });
    }

    fn position(&self, name: &'static str) -> Result<usize, UnknownStage> {
        self.names().position(|known| known == name).ok_or(UnknownStage(name))
    }

    /// Returns the stages before `scan`, between it and `chunk`, and after `chunk`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_inserted_before_and_after_others_and_at_the_end() {
        let mut stages = Stages::new(&ReplyOptions::default());
        stages.insert_before(SCAN, "first", Dedupe::default()).unwrap();
        stages.insert_after(SCAN, "second", Dedupe::default()).unwrap();
        stages.insert_after(THREADS, "late", Dedupe::default()).unwrap();
        stages.push("last", Dedupe::default());
        let names = "[\"first\", \"scan\", \"second\", \"markup\", \"chunk\", \"directives\", \"tokens\", \"coalesce\", \"dedupe\", \"threads\", \"late\", \"last\"]";
        assert_eq!(format!("{stages:?}"), names);
        assert_eq!(stages.insert_before("none", "mine", Dedupe::default()), Err(UnknownStage("none")));
        assert_eq!(stages.insert_after("none", "mine", Dedupe::default()), Err(UnknownStage("none")));
        assert_eq!(format!("{stages:?}"), names);
        // The stages of the host before `scan`, one of ours and one of the host after it, and four and two after `chunk`.
        assert_eq!(stages.into_chains().map(|chain| chain.len()), [1, 2, 6]);
    }
}
