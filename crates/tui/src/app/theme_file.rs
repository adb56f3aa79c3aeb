//! Watching the file of the theme in use. Files are polled, because watching them fails on network mounts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_coding_agent::resources::themes::Theme as ThemeFile;
use pinch_stdx::fs::FileStamp;

/// Interval at which the file is examined.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a changed file must stay unchanged before it is read, because editors write in several steps.
const SETTLED: Duration = Duration::from_millis(100);

/// The theme file in use, as last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedTheme {
    pub(crate) path: PathBuf,
    /// `None`: it has not been read since the theme is in use.
    pub(crate) stamp: Option<FileStamp>,
}

/// A theme file after it was examined.
#[derive(Debug)]
pub(crate) struct ExaminedTheme {
    pub(crate) watched: WatchedTheme,
    /// The theme or what is wrong with it, if the file has changed.
    pub(crate) read: Option<Result<ThemeFile, String>>,
}

/// Examines a theme file after a while. A missing file counts as unchanged, because editors replace files.
pub(crate) async fn examine(watched: WatchedTheme) -> ExaminedTheme {
    tokio::time::sleep(INTERVAL).await;
    let mut found = stamp(&watched.path).await;
    loop {
        if found.is_none() || found == watched.stamp {
            return ExaminedTheme { watched, read: None };
        }
        tokio::time::sleep(SETTLED).await;
        let again = stamp(&watched.path).await;
        if again == found {
            break;
        }
        found = again;
    }
    let path = watched.path.clone();
    let read = tokio::task::spawn_blocking(move || ThemeFile::read(&path).map_err(|problem| problem.to_string()));
    let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
    ExaminedTheme { watched: WatchedTheme { stamp: found, ..watched }, read: Some(read) }
}

async fn stamp(path: &Path) -> Option<FileStamp> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || FileStamp::of(&path)).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn theme(accent: &str) -> String {
        let colors: serde_json::Map<_, _> = pinch_coding_agent::resources::themes::COLORS
            .into_iter()
            .map(|name| (name.to_owned(), if name == "accent" { accent.into() } else { "".into() }))
            .collect();
        serde_json::json!({"name": "mine", "colors": colors}).to_string()
    }

    #[tokio::test]
    async fn a_theme_is_read_when_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.json");
        fs::write(&path, theme("#010203")).unwrap();
        let first = examine(WatchedTheme { path: path.clone(), stamp: None }).await;
        assert_eq!(first.read.unwrap().unwrap().name, "mine");
        let same = examine(first.watched).await;
        assert!(same.read.is_none());
        fs::write(&path, "{").unwrap();
        let broken = examine(same.watched).await;
        let problem = broken.read.unwrap().unwrap_err();
        assert!(problem.contains("mine.json: is not a theme: is not valid JSON"), "{problem}");
        fs::remove_file(&path).unwrap();
        let missing = examine(broken.watched.clone()).await;
        assert!(missing.read.is_none() && missing.watched == broken.watched, "the last version stays");
        fs::write(&path, theme("#040506")).unwrap();
        assert!(examine(missing.watched).await.read.unwrap().is_ok());
    }
}
