//! Stubs for searches in builds without the feature `search`.

use std::io;
use std::path::Path;

use futures::stream::{self, BoxStream};

use super::{FileOpener, FindQuery, FoundPath, GrepLine, GrepQuery, MachineError, SearchError, SearchItem};

pub(super) fn find(
    query: FindQuery,
    _: fn(&Path) -> bool,
) -> BoxStream<'static, Result<SearchItem<FoundPath>, SearchError>> {
    Box::pin(stream::iter([Err(unsupported("find", &query.root))]))
}

pub(super) fn grep(query: GrepQuery, _: FileOpener) -> BoxStream<'static, Result<SearchItem<GrepLine>, SearchError>> {
    Box::pin(stream::iter([Err(unsupported("grep", &query.root))]))
}

fn unsupported(operation: &'static str, root: &Path) -> SearchError {
    let why = io::Error::new(io::ErrorKind::Unsupported, "built without the feature search");
    MachineError::new(why, operation, Some(root)).into()
}
