//! Drafts: one message that is edited during a run, and that the answer replaces.

use std::collections::VecDeque;
use std::time::Duration;

use pinch_stdx::cancel::Deadline;

use super::chunk::{BreakPreference, Chunking, pick_break};
use super::piece::{Edit, Growth, Piece, Pieces};
use super::unit::{TextLimit, TextUnit};

/// What a draft shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviewMode {
    /// There is no draft.
    #[default]
    Off,
    /// The answer so far.
    Partial,
    /// The answer so far, updated a few sentences at a time.
    Block,
    /// The run's activity.
    Progress,
}

impl PreviewMode {
    /// Parses the name used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "partial" => Self::Partial,
            "block" => Self::Block,
            "progress" => Self::Progress,
            _ => return None,
        })
    }
}

/// Settings of drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preview {
    /// What the draft shows.
    pub mode: PreviewMode,
    /// How much the draft grows per update, with [`PreviewMode::Block`].
    pub chunk: Chunking,
    /// What the draft lists, with [`PreviewMode::Progress`].
    pub progress: ProgressDraft,
}

impl Preview {
    /// Default growth per update.
    pub const CHUNK: Chunking = Chunking {
        min_chars: 200,
        max_chars: 800,
        preference: BreakPreference::Paragraph,
        flush_on_paragraph: false,
        unit: TextUnit::Utf16,
    };
}

impl Default for Preview {
    fn default() -> Self {
        Self { mode: PreviewMode::Off, chunk: Self::CHUNK, progress: ProgressDraft::default() }
    }
}

/// What a progress draft lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressDraft {
    /// Maximum number of lines; the newest are kept.
    pub max_lines: usize,
    /// Maximum length of a line, in characters.
    pub max_line_chars: usize,
    /// Whether to list progress reported by running tools.
    pub tool_progress: bool,
    /// Whether to list what the model says between tool calls.
    pub commentary: bool,
    /// What to list of commands.
    pub commands: CommandText,
}

/// What a progress draft lists of the commands that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandText {
    /// That a command runs.
    #[default]
    Status,
    /// The command itself.
    Raw,
}

impl CommandText {
    /// Parses the name used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "status" => Some(Self::Status),
            "raw" => Some(Self::Raw),
            _ => None,
        }
    }
}

impl Default for ProgressDraft {
    fn default() -> Self {
        Self {
            max_lines: 8,
            max_line_chars: 120,
            tool_progress: false,
            commentary: false,
            commands: CommandText::Status,
        }
    }
}

/// A run shorter than this needs no progress list.
const PROGRESS_AFTER: Duration = Duration::from_millis(1_500);

/// Creates the drafts of a run: observes the output of the pipeline, and adds the changes of the draft.
#[derive(Debug)]
pub(crate) struct Drafts {
    options: Preview,
    /// The longest message of the channel.
    limit: Option<TextLimit>,
    /// The change not yet emitted, with [`PreviewMode::Block`].
    pending: Edit,
    lines: VecDeque<String>,
    /// Text of the model since the last tool call.
    commentary: String,
    /// When the list may be shown; `None` before any activity.
    from: Option<Deadline>,
    /// Whether the list has changed since it was shown.
    is_due: bool,
}

impl Drafts {
    pub(crate) fn new(options: Preview, limit: Option<TextLimit>) -> Self {
        Self {
            options,
            limit,
            pending: Edit::default(),
            lines: VecDeque::new(),
            commentary: String::new(),
            from: None,
            is_due: false,
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.options.mode == PreviewMode::Off
    }

    /// Returns whether tool activity is listed.
    pub(crate) fn lists_tools(&self) -> bool {
        self.options.mode == PreviewMode::Progress
    }

    /// Returns what to list of commands.
    pub(crate) fn commands(&self) -> CommandText {
        self.options.progress.commands
    }

    /// Applies growth of the answer's text.
    pub(crate) fn grow(&mut self, growth: &Growth, out: &mut Pieces) {
        let edit = Edit { at: growth.at, text: growth.restored.clone() + &growth.delta };
        match self.options.mode {
            PreviewMode::Off => {}
            PreviewMode::Partial => out.push(Piece::Draft(edit)),
            PreviewMode::Block => {
                self.pending.then(&edit);
                while self.pending.text.len() >= self.options.chunk.min_chars
                    && let Some(end) = pick_break(&self.pending.text, &self.options.chunk)
                {
                    let rest = self.pending.text.split_off(end);
                    let at = self.pending.at + end;
                    out.push(Piece::Draft(std::mem::replace(&mut self.pending, Edit { at, text: rest })));
                }
            }
            PreviewMode::Progress => {
                if self.options.progress.commentary {
                    edit.apply(&mut self.commentary);
                }
            }
        }
    }

    /// Ends the answer.
    pub(crate) fn settle(&mut self, out: &mut Pieces) {
        if self.options.mode == PreviewMode::Block && !self.pending.text.is_empty() {
            let at = self.pending.at + self.pending.text.len();
            out.push(Piece::Draft(std::mem::replace(&mut self.pending, Edit { at, text: String::new() })));
        }
    }

    /// Begins an answer.
    pub(crate) fn begin(&mut self) {
        self.from.get_or_insert_with(|| Deadline::after(PROGRESS_AFTER));
        self.pending = Edit::default();
        self.commentary.clear();
    }

    /// Records a tool call.
    pub(crate) fn tool(&mut self, line: &str, out: &mut Pieces) {
        let text = std::mem::take(&mut self.commentary);
        if let Some(comment) = text.lines().find(|line| !line.trim().is_empty()) {
            self.add(comment);
        }
        self.add(line);
        self.show(out);
    }

    /// Records progress of a running tool.
    pub(crate) fn tool_progress(&mut self, text: &str, out: &mut Pieces) {
        if self.lists_tools() && self.options.progress.tool_progress {
            self.add(text);
            self.show(out);
        }
    }

    fn add(&mut self, line: &str) {
        let ProgressDraft { max_lines, max_line_chars, .. } = self.options.progress;
        let line = line.trim().lines().next().unwrap_or_default();
        if line.is_empty() {
            return;
        }
        let cut = TextUnit::Chars.prefix(line, max_line_chars);
        self.lines.push_back(if cut.len() < line.len() { format!("{cut}…") } else { cut.to_owned() });
        while self.lines.len() > max_lines.max(1) {
            self.lines.pop_front();
        }
        self.is_due = true;
    }

    pub(crate) fn wake_at(&self) -> Option<Deadline> {
        self.from.filter(|_| self.is_due)
    }

    /// Shows the list if it is due.
    pub(crate) fn show(&mut self, out: &mut Pieces) {
        if self.is_due && self.from.is_some_and(|from| from.left().is_zero()) {
            self.is_due = false;
            let joined = |lines: &VecDeque<String>| lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            let mut text = joined(&self.lines);
            while self.lines.len() > 1 && self.limit.is_some_and(|limit| !limit.fits(&text)) {
                self.lines.pop_front();
                text = joined(&self.lines);
            }
            out.push(Piece::Draft(Edit { at: 0, text }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(out: &Pieces) -> String {
        let mut draft = String::new();
        for piece in out {
            if let Piece::Draft(edit) = piece {
                edit.apply(&mut draft);
            }
        }
        draft
    }

    #[test]
    fn a_block_draft_grows_at_breaks_and_ends_with_the_whole_text() {
        let mut drafts = Drafts::new(Preview { mode: PreviewMode::Block, ..Preview::default() }, None);
        let (mut text, mut out) = (String::new(), Pieces::new());
        for n in 0..200 {
            let delta = format!("Sentence {n}. ");
            drafts.grow(&Growth { at: text.len(), delta: delta.clone(), ..Growth::default() }, &mut out);
            text += &delta;
        }
        assert!(out.len() > 1 && out.len() < 20, "{}", out.len());
        drafts.settle(&mut out);
        assert_eq!(shown(&out), text);
    }

    #[test]
    fn a_draft_goes_on_after_a_short_answer_was_settled() {
        let mut drafts = Drafts::new(Preview { mode: PreviewMode::Block, ..Preview::default() }, None);
        let mut out = Pieces::new();
        for (at, delta) in [(0, "One."), (4, " Two.")] {
            drafts.grow(&Growth { at, delta: delta.into(), ..Growth::default() }, &mut out);
            drafts.settle(&mut out);
        }
        assert_eq!(shown(&out), "One. Two.");
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_progress_draft_lists_what_tools_report() {
        for mode in [PreviewMode::Off, PreviewMode::Partial, PreviewMode::Block, PreviewMode::Progress] {
            let progress = ProgressDraft { tool_progress: true, ..ProgressDraft::default() };
            let mut drafts = Drafts::new(Preview { mode, progress, ..Preview::default() }, None);
            let mut out = Pieces::new();
            drafts.begin();
            tokio::time::sleep(PROGRESS_AFTER).await;
            drafts.tool_progress("half", &mut out);
            assert_eq!(shown(&out), if mode == PreviewMode::Progress { "half" } else { "" }, "{mode:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_lists_only_tools_and_only_after_a_delay() {
        let mut drafts = Drafts::new(Preview { mode: PreviewMode::Progress, ..Preview::default() }, None);
        let mut out = Pieces::new();
        drafts.begin();
        drafts.grow(&Growth { delta: "Let me look.".into(), ..Growth::default() }, &mut out);
        assert_eq!((drafts.wake_at().is_none(), out.len()), (true, 0));
        for n in 0..10 {
            drafts.tool(&format!("tool {n} {}", "x".repeat(200)), &mut out);
        }
        assert_eq!(out.len(), 0);
        tokio::time::sleep(drafts.wake_at().unwrap().left()).await;
        drafts.show(&mut out);
        let lines: Vec<String> = shown(&out).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 8);
        assert!(lines[0].starts_with("tool 2 ") && lines.iter().all(|line| line.chars().count() <= 121), "{lines:?}");
    }

    #[test]
    fn names_of_configurations_are_parsed() {
        let modes = ["off", "partial", "block", "progress", "all"].map(PreviewMode::parse);
        let expect = [PreviewMode::Off, PreviewMode::Partial, PreviewMode::Block, PreviewMode::Progress];
        assert_eq!((&modes[..4], modes[4]), (&expect.map(Some)[..], None));
        let commands = ["status", "raw", "all"].map(CommandText::parse);
        assert_eq!(commands, [Some(CommandText::Status), Some(CommandText::Raw), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_of_a_progress_draft_are_cut_and_fit_the_channel() {
        for (max, expect) in [(20, "abcdef…\nxy"), (10, "abcdef…\nxy"), (9, "xy"), (1, "xy")] {
            let progress = ProgressDraft { max_line_chars: 6, commentary: true, ..ProgressDraft::default() };
            let options = Preview { mode: PreviewMode::Progress, progress, ..Preview::default() };
            let mut drafts = Drafts::new(options, Some(TextLimit { max, unit: TextUnit::Chars }));
            let mut out = Pieces::new();
            drafts.begin();
            drafts.grow(&Growth { delta: " \nabcdefg\nh".into(), ..Growth::default() }, &mut out);
            tokio::time::sleep(PROGRESS_AFTER).await;
            drafts.tool(" xy\nz", &mut out);
            assert_eq!(shown(&out), expect, "{max}");
            drafts.tool(" \n", &mut out);
            assert_eq!(out.len(), 1, "nothing changed");
        }
    }
}
