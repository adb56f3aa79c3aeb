//! What a user interface shows, so that extensions can look it up without waiting.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a user interface shows at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UiSnapshot {
    /// The text in the editor, with pasted texts in place of their markers.
    pub editor_text: String,
    /// Whether tool output is expanded.
    pub tools_expanded: bool,
    /// Name of the theme in use.
    pub theme: String,
    /// The keys of actions, such as `ctrl+o` for `app.tools.expand`.
    pub keys: Arc<BTreeMap<String, String>>,
    /// The themes that can be chosen.
    pub themes: Arc<Vec<ThemeColors>>,
}

/// The colours of a theme, as far as the terminal can show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThemeColors {
    /// Its name.
    pub name: String,
    /// Its file; `None`: it is built in.
    pub path: Option<PathBuf>,
    /// Foreground colours by their names in theme files, as parameters of SGR sequences (`38;2;1;2;3`).
    pub foreground: BTreeMap<String, String>,
    /// Background colours.
    pub background: BTreeMap<String, String>,
}

/// The sign of activity while the model works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingIndicator {
    /// The frames of the animation, with colours in SGR sequences. One frame stands still; without frames there is no sign.
    pub frames: Vec<String>,
    /// How long each frame is shown; `None`: as long as those of the usual sign.
    pub interval: Option<Duration>,
}
