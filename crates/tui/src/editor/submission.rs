//! Submissions of an editor.

use std::path::PathBuf;

use super::marker::{MarkedText, MarkerContent};

/// A submitted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The trimmed text, with pasted texts in place of their markers. Image markers stay.
    pub text: String,
    /// Images whose markers are in the text.
    pub images: Vec<PastedImage>,
    /// The text with its markers, for the history.
    pub(super) marked: MarkedText,
}

/// An image in a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedImage {
    /// Its marker in the text: `[image 1: name.png]`.
    pub label: String,
    /// Path of the file.
    pub path: PathBuf,
}

impl Submission {
    pub(super) fn new(marked: MarkedText) -> Self {
        let marked = marked.trimmed();
        let image = |(label, content): (&str, &MarkerContent)| match content {
            MarkerContent::Image(path) => Some(PastedImage { label: label.to_owned(), path: path.clone() }),
            MarkerContent::Text(_) => None,
        };
        let images = marked.markers().filter_map(|marker| image((&marker.label, &marker.content))).collect();
        Self { text: marked.expanded(), images, marked }
    }
}
