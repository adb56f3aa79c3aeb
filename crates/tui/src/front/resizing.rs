//! What happens while a terminal is being resized, and when. The reasons are explained in `terminal/screen`.

use std::time::Duration;

use tokio::time::Instant;

use crate::terminal::Size;

/// The live area is drawn again when no resize has been reported for this long.
const SETTLED: Duration = Duration::from_millis(50);
/// The same in a terminal multiplexer: longer than the 250 ms during which tmux reports nothing after a report.
const SETTLED_LATE: Duration = Duration::from_millis(350);
/// Number of reports that make a storm, in which the window is probably being dragged. The time above is then twice as long.
const STORM: u32 = 3;
/// In fullscreen mode, a frame is drawn at least this often.
const LONGEST_FULLSCREEN: Duration = Duration::from_millis(150);
/// Interval at which finished rows are written meanwhile.
const ROWS: Duration = Duration::from_millis(250);
/// Time limit for the terminal's answer about its size.
const ANSWER: Duration = Duration::from_millis(300);
/// Pause between two questions while the live area is still shown.
const AGAIN: Duration = Duration::from_millis(20);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResizeStep {
    /// Nothing yet.
    Wait,
    /// Ask the terminal for its actual size.
    Ask,
    /// Erase the live area, which has been rewrapped to this size.
    Hide(Size),
    /// Write finished rows, in this size.
    FinishedRows(Size),
    /// The size is stable: draw everything.
    End(Size),
}

/// A resize in progress.
#[derive(Debug)]
pub(super) struct Resizing {
    is_inline: bool,
    settled: Duration,
    /// The size reported last, and the number of reports.
    size: Size,
    n_reports: u32,
    since: Instant,
    /// When the size was last reported, or turned out to be another one.
    last: Instant,
    /// When finished rows were last written.
    rows: Instant,
    /// Whether the live area has been erased.
    is_hidden: bool,
    /// When the pending question was asked. There is at most one.
    asked: Option<Instant>,
    /// The answer to the last question.
    answer: Option<Size>,
    /// The answer before.
    earlier: Option<Size>,
    /// Earliest time of the next question while the live area is shown.
    again: Instant,
}

impl Resizing {
    /// Begins a resize. `is_inline`: in regular mode; `is_late`: in a terminal that reports resizes late.
    pub(super) fn new(is_inline: bool, is_late: bool, now: Instant) -> Self {
        Self {
            is_inline,
            settled: if is_inline && is_late { SETTLED_LATE } else { SETTLED },
            size: Size::new(1, 1),
            n_reports: 0,
            since: now,
            last: now,
            rows: now,
            is_hidden: false,
            asked: None,
            answer: None,
            earlier: None,
            again: now,
        }
    }

    /// Handles a reported size.
    pub(super) fn resized(&mut self, size: Size, now: Instant) {
        (self.size, self.last) = (size, now);
        self.n_reports += 1;
        if self.n_reports == STORM && self.settled == SETTLED_LATE {
            self.settled *= 2;
        }
        // The pending answer may be older than this report.
        self.forget();
    }

    /// Handles an answer of the terminal.
    pub(super) fn answered(&mut self, size: Size, now: Instant) {
        if self.asked.take().is_some() {
            self.earlier = self.answer.replace(size);
            self.again = now + AGAIN;
            if self.confirmed(now).is_none() {
                // A report of this size should follow.
                self.last = now;
            }
        }
    }

    fn forget(&mut self) {
        (self.asked, self.answer, self.earlier) = (None, None, None);
    }

    /// Returns the size if it is certain: the terminal has reported and answered the same one, or answered the same one twice, or does not
    /// answer.
    fn confirmed(&self, now: Instant) -> Option<Size> {
        match (self.asked, self.answer) {
            (Some(asked), _) => (now >= asked + ANSWER).then_some(self.size),
            (None, answer) => answer.filter(|size| *size == self.size || self.earlier == Some(*size)),
        }
    }

    fn ask(&mut self, now: Instant) -> ResizeStep {
        if self.asked.is_some() {
            return ResizeStep::Wait;
        }
        self.asked = Some(now);
        ResizeStep::Ask
    }

    /// Returns what to do now.
    pub(super) fn step(&mut self, now: Instant) -> ResizeStep {
        if now < self.due() {
            return ResizeStep::Wait;
        }
        if !self.is_inline {
            return ResizeStep::End(self.size);
        }
        match (self.confirmed(now), self.is_hidden) {
            (Some(size), false) => ResizeStep::Hide(size),
            (None, false) => self.ask(now),
            (_, true) if now < self.last + self.settled => {
                self.rows = now;
                ResizeStep::FinishedRows(self.size)
            }
            (Some(size), true) => ResizeStep::End(size),
            (None, true) => self.ask(now),
        }
    }

    /// Returns when to act next.
    pub(super) fn due(&self) -> Instant {
        let settled = self.last + self.settled;
        if !self.is_inline {
            return settled.min(self.since + LONGEST_FULLSCREEN);
        }
        match (self.asked, self.is_hidden) {
            (Some(asked), _) => asked + ANSWER,
            (None, _) if self.answer == Some(self.size) => self.last,
            (None, true) => settled.min(self.rows + ROWS),
            (None, false) => self.again,
        }
    }

    /// Returns the size that was reported last.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// The live area has been erased.
    pub(super) fn hidden(&mut self) {
        self.is_hidden = true;
        self.forget();
    }

    /// Returns whether the live area has been erased.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a resize, answering each question with the next of these sizes or, at the end, not at all. Returns every step that is not a
    /// pause, with its time in milliseconds.
    fn steps(is_late: bool, is_hidden: bool, reports: &[(u64, Size)], answers: &[Size]) -> Vec<(u64, ResizeStep)> {
        let start = Instant::now();
        let mut resizing = Resizing::new(true, is_late, start);
        let (mut answers, mut reports) = (answers.iter(), reports.iter().peekable());
        let mut steps = Vec::new();
        for ms in 0..5_000 {
            let now = start + Duration::from_millis(ms);
            if let Some((_, size)) = reports.next_if(|(at, _)| *at == ms) {
                resizing.resized(*size, now);
                if is_hidden {
                    resizing.hidden();
                }
            }
            let step = resizing.step(now);
            match step {
                ResizeStep::Wait => continue,
                ResizeStep::Ask => {
                    if let Some(size) = answers.next() {
                        resizing.answered(*size, now);
                    }
                }
                ResizeStep::Hide(_) => resizing.hidden(),
                ResizeStep::FinishedRows(_) | ResizeStep::End(_) => {}
            }
            steps.push((ms, step));
            if matches!(step, ResizeStep::End(_)) {
                return steps;
            }
        }
        panic!("the resize does not end: {steps:?}");
    }

    use ResizeStep::{Ask, End, FinishedRows, Hide};
    const A: Size = Size { columns: 80, rows: 24 };
    const B: Size = Size { columns: 100, rows: 30 };

    #[test]
    fn the_live_area_returns_when_the_size_is_stable_and_confirmed() {
        assert_eq!(steps(false, true, &[(0, A), (30, B)], &[B]), [(80, Ask), (81, End(B))]);
    }

    #[test]
    fn finished_rows_are_written_during_a_long_resize() {
        let reports: Vec<(u64, Size)> = (0..=6).map(|n| (n * 100, A)).collect();
        let expected = [
            (250, FinishedRows(A)),
            (500, FinishedRows(A)),
            (750, FinishedRows(A)),
            (1000, FinishedRows(A)),
            (1250, FinishedRows(A)),
            (1300, Ask),
            (1301, End(A)),
        ];
        assert_eq!(steps(true, true, &reports, &[A]), expected);
    }

    #[test]
    fn a_size_that_differs_from_the_reported_one_must_be_answered_twice() {
        assert_eq!(steps(false, true, &[(0, A)], &[B, A]), [(50, Ask), (100, Ask), (101, End(A))]);
        assert_eq!(steps(false, true, &[(0, A)], &[B, B]), [(50, Ask), (100, Ask), (101, End(B))]);
    }

    #[test]
    fn a_terminal_that_does_not_answer_is_believed() {
        assert_eq!(steps(false, true, &[(0, A)], &[]), [(50, Ask), (350, End(A))]);
    }

    #[test]
    fn the_live_area_is_erased_when_its_width_is_known() {
        let found = steps(false, false, &[(0, A), (11, B)], &[B, B, B]);
        assert_eq!(found, [(0, Ask), (20, Ask), (21, Hide(B)), (61, Ask), (62, End(B))]);
        let late = steps(false, false, &[(0, A)], &[B, B, B, B]);
        assert_eq!(late[..3], [(0, Ask), (20, Ask), (40, Hide(B))]);
    }
}
