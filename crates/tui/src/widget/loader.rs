//! A spinner.

use std::time::Duration;

use ratatui_core::text::Span;

use crate::Row;
use crate::theme::{ColorRole, Palette};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const INTERVAL: Duration = Duration::from_millis(80);

/// A spinner with a text. It is stateless: the frame follows from the elapsed time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loader {
    frames: Vec<String>,
    interval: Duration,
}

impl Default for Loader {
    fn default() -> Self {
        Self { frames: FRAMES.map(str::to_owned).to_vec(), interval: INTERVAL }
    }
}

impl Loader {
    /// Creates a spinner with custom frames. A single frame does not move, and without frames only the text is shown.
    pub fn with_frames(frames: Vec<String>, interval: Duration) -> Self {
        Self { frames, interval: interval.max(Duration::from_millis(10)) }
    }

    /// Creates a spinner that does not move.
    pub fn still() -> Self {
        Self::with_frames(vec!["*".to_owned()], INTERVAL)
    }

    /// Returns how long each frame is shown; `None`: nothing moves, and no timer is needed.
    pub fn interval(&self) -> Option<Duration> {
        (self.frames.len() > 1).then_some(self.interval)
    }

    /// Returns the frame at an elapsed time; `None`: there are no frames.
    pub fn frame(&self, elapsed: Duration) -> Option<&str> {
        let at = usize::try_from(elapsed.as_millis() / self.interval.as_millis().max(1)).ok()?;
        self.frames.get(at % self.frames.len().max(1)).map(String::as_str)
    }

    /// Returns the row at an elapsed time.
    pub fn row(&self, elapsed: Duration, text: &str, theme: &Palette) -> Row {
        let mut spans = Vec::new();
        if let Some(frame) = self.frame(elapsed) {
            spans.push(Span::styled(format!("{frame} "), theme.fg(ColorRole::Accent)));
        }
        spans.push(Span::styled(text.to_owned(), theme.fg(ColorRole::Muted)));
        Row::from(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorDepth;

    #[test]
    fn the_frame_follows_from_the_elapsed_time() {
        let theme = Palette::builtin("dark", ColorDepth::None);
        let at = |ms| Loader::default().row(Duration::from_millis(ms), "Working", &theme).to_string();
        assert_eq!([at(0), at(79), at(80), at(800)], ["⠋ Working", "⠋ Working", "⠙ Working", "⠋ Working"]);
        assert_eq!(Loader::still().interval(), None);
        assert_eq!(Loader::with_frames(Vec::new(), INTERVAL).row(INTERVAL, "x", &theme).to_string(), "x");
    }
}
