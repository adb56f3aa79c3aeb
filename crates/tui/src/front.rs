//! The terminal side of the loop: input, frame timing, and drawing.

mod resizing;

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use self::resizing::{ResizeStep, Resizing};
use crate::Row;
use crate::editor::pasted_text;
use crate::hyperlink::Hyperlinks;
use crate::image::{CellSize, FrameImages};
use crate::terminal::{
    Cursor, DeviceError, Fullscreen, InlineScreen, LineDevice, Modes, PlainNotes, PlainScreen, ProgramStatus, QUERIES,
    Report, SIZE_QUERY, Size, TerminalCapabilities, TerminalDevice, TerminalInput,
};
use crate::text::is_obeyed;

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// Minimum time between two frames on a remote terminal.
const REMOTE_FRAME: Duration = Duration::from_millis(33);
/// One frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenFrame {
    /// Rows for the scrollback; none in fullscreen mode.
    pub(crate) finished: Vec<Row>,
    /// The live area, or the whole screen.
    pub(crate) live: Vec<Row>,
    /// Data to send to the terminal for images in these rows.
    pub(crate) images: FrameImages,
    /// Position of the cursor, and whether it is shown. `None`: hidden, in the first column of the live area.
    pub(crate) cursor: Option<Cursor>,
    /// Notes besides the conversation, for plain output.
    pub(crate) plain: PlainNotes,
    /// Title of the window.
    pub(crate) title: String,
    /// Whether the terminal should indicate progress.
    pub(crate) progress: bool,
    /// Status to report to the terminal.
    pub(crate) status: ProgramStatus,
}

/// An event for the interface.
#[derive(Debug)]
pub(crate) enum FrontEvent {
    /// Input from the user.
    TerminalInput(TerminalInput),
    /// A frame is due.
    ScreenFrame,
}

enum ScreenMode {
    Inline(InlineScreen),
    Fullscreen(Fullscreen),
    Plain(PlainScreen),
}

/// How the terminal is read and written.
enum FrontDevice {
    Raw(TerminalDevice),
    Lines(LineDevice),
}

impl FrontDevice {
    fn size(&self) -> io::Result<Size> {
        match self {
            Self::Raw(device) => device.size(),
            Self::Lines(device) => Ok(device.size()),
        }
    }

    fn cell_size(&self) -> CellSize {
        match self {
            Self::Raw(device) => device.cell_size(),
            Self::Lines(_) => CellSize::default(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Raw(device) => device.write(bytes),
            Self::Lines(device) if !bytes.is_empty() => device.write(bytes),
            Self::Lines(_) => Ok(()),
        }
    }

    async fn next(&mut self) -> TerminalInput {
        match self {
            Self::Raw(device) => device.next().await,
            Self::Lines(device) => device.next().await,
        }
    }

    fn try_next(&mut self) -> Option<TerminalInput> {
        match self {
            Self::Raw(device) => device.try_next(),
            Self::Lines(device) => device.try_next(),
        }
    }

    /// Changes modes; a terminal that is read line by line has none.
    fn change_modes(&mut self, change: impl FnOnce(Modes) -> Modes) -> io::Result<()> {
        match self {
            Self::Raw(device) => device.set_modes(change(device.modes())),
            Self::Lines(_) => Ok(()),
        }
    }

    fn leave(&mut self) -> io::Result<()> {
        match self {
            Self::Raw(device) => device.leave(),
            Self::Lines(_) => Ok(()),
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        match self {
            Self::Raw(device) => device.enter(),
            Self::Lines(_) => Ok(()),
        }
    }
}

/// The terminal, and the state of its screen.
pub(crate) struct Front {
    device: FrontDevice,
    display: ScreenMode,
    capabilities: TerminalCapabilities,
    cell: CellSize,
    /// The initial size, for plain output.
    plain_size: Size,
    resizing: Option<Resizing>,
    dirty: bool,
    drawn_at: Option<Instant>,
    title: String,
    progress: bool,
    status: ProgramStatus,
    /// Whether the mouse is enabled in fullscreen mode.
    mouse: bool,
    /// URLs of the links in frames.
    links: Hyperlinks,
}

impl Front {
    /// Takes over the terminal, and unless the output is plain, queries its capabilities; answers arrive as inputs.
    pub(crate) fn new(capabilities: TerminalCapabilities, links: Hyperlinks) -> Result<Self, DeviceError> {
        let (device, display) = if capabilities.plain {
            (FrontDevice::Lines(LineDevice::open()?), ScreenMode::Plain(PlainScreen::default()))
        } else {
            let mut device = TerminalDevice::open()?;
            device.write(QUERIES)?;
            let mut screen = InlineScreen::new(device.size()?, capabilities.reflows);
            screen.set_links(links.clone());
            (FrontDevice::Raw(device), ScreenMode::Inline(screen))
        };
        Ok(Self {
            cell: device.cell_size(),
            plain_size: device.size()?,
            device,
            display,
            capabilities,
            resizing: None,
            dirty: true,
            drawn_at: None,
            title: String::new(),
            progress: false,
            status: ProgramStatus::Idle,
            mouse: true,
            links,
        })
    }

    pub(crate) fn capabilities(&self) -> &TerminalCapabilities {
        &self.capabilities
    }

    pub(crate) fn size(&self) -> Size {
        match &self.display {
            ScreenMode::Inline(screen) => screen.size(),
            ScreenMode::Fullscreen(screen) => screen.size(),
            ScreenMode::Plain(_) => self.plain_size,
        }
    }

    /// Returns the size of a cell in pixels.
    pub(crate) fn cell_size(&self) -> CellSize {
        self.cell
    }

    /// Marks the interface as changed, so that a frame is due soon.
    pub(crate) fn mark(&mut self) {
        self.dirty = true;
    }

    /// Returns whether nothing can be drawn, because the terminal is being resized.
    pub(crate) fn is_blocked(&self) -> bool {
        self.resizing.as_ref().is_some_and(|resizing| !resizing.is_hidden())
    }

    /// Returns whether fullscreen mode is active.
    pub(crate) fn is_fullscreen(&self) -> bool {
        matches!(self.display, ScreenMode::Fullscreen(_))
    }

    /// Returns when the next frame is due. `animates`: the animation interval of the screen.
    fn due(&self, animates: Option<Duration>) -> Option<Instant> {
        if let Some(resizing) = &self.resizing {
            return Some(resizing.due());
        }
        let frame = if self.capabilities.remote { REMOTE_FRAME } else { FRAME };
        let Some(drawn_at) = self.drawn_at else { return Some(Instant::now()) };
        match (self.dirty, animates) {
            (true, _) => Some(drawn_at + frame),
            (false, Some(interval)) => Some(drawn_at + interval.max(frame)),
            (false, None) => None,
        }
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses nothing.
    pub(crate) async fn next(&mut self, animates: Option<Duration>) -> FrontEvent {
        loop {
            let due = self.due(animates);
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = timer => {
                    if self.resize_step() {
                        return FrontEvent::ScreenFrame;
                    }
                }
                input = self.device.next() => match input {
                    TerminalInput::Resized(size) => self.resizing(size),
                    TerminalInput::Report(Report::Corner(size)) => {
                        if let Some(resizing) = &mut self.resizing {
                            resizing.answered(size, Instant::now());
                        }
                    }
                    TerminalInput::Report(report) => {
                        if self.learn(&report) {
                            return FrontEvent::TerminalInput(TerminalInput::Report(report));
                        }
                    }
                    input => return FrontEvent::TerminalInput(self.capabilities.corrected(input)),
                },
            }
        }
    }

    /// Handles a resize event.
    fn resizing(&mut self, size: Size) {
        let now = Instant::now();
        let (is_inline, is_late) = (matches!(self.display, ScreenMode::Inline(_)), self.capabilities.multiplexer);
        self.resizing.get_or_insert_with(|| Resizing::new(is_inline, is_late, now)).resized(size, now);
        if let ScreenMode::Inline(screen) = &self.display
            && screen.is_anchored()
        {
            self.hide();
        }
    }

    /// Erases the live area.
    fn hide(&mut self) {
        if let ScreenMode::Inline(screen) = &mut self.display
            && let Some(resizing) = self.resizing.as_mut().filter(|resizing| !resizing.is_hidden())
        {
            resizing.hidden();
            let bytes = screen.hide();
            // A terminal that is gone is noticed when reading from it.
            self.device.write(&bytes).unwrap_or_default();
        }
    }

    /// Continues a resize if one is in progress. Returns whether a frame is due.
    fn resize_step(&mut self) -> bool {
        let Some(resizing) = &mut self.resizing else { return true };
        match resizing.step(Instant::now()) {
            ResizeStep::Wait => false,
            ResizeStep::Ask => {
                self.device.write(SIZE_QUERY).unwrap_or_default();
                false
            }
            ResizeStep::Hide(size) => {
                self.resize(size);
                self.hide();
                true
            }
            ResizeStep::FinishedRows(size) => {
                self.resize(size);
                true
            }
            ResizeStep::End(size) => {
                self.resizing = None;
                self.resize(size);
                true
            }
        }
    }

    /// Returns an input together with those already available, so that a burst of keys is one change of the screen. On a terminal without
    /// bracketed paste, a pasted text arrives as keys, and becomes one input.
    pub(crate) fn burst(&mut self, first: TerminalInput) -> Vec<TerminalInput> {
        let mut inputs = vec![first];
        while let Some(input) = self.try_next() {
            inputs.push(input);
        }
        let press = |input: &TerminalInput| match input {
            TerminalInput::Key(press) => Some(*press),
            _ => None,
        };
        let presses = inputs.iter().map(press).collect::<Option<Vec<_>>>();
        if let ScreenMode::Plain(screen) = &mut self.display
            && inputs.iter().any(|input| matches!(input, TerminalInput::Line(_)))
        {
            screen.typed();
        }
        match presses.and_then(|presses| pasted_text(&presses)) {
            Some(text) => vec![TerminalInput::Paste(text)],
            None => inputs,
        }
    }

    /// Returns an input if one is already available.
    fn try_next(&mut self) -> Option<TerminalInput> {
        if self.resizing.is_some() {
            return None;
        }
        match self.device.try_next()? {
            TerminalInput::Resized(size) => {
                self.resizing(size);
                None
            }
            TerminalInput::Report(report) => self.learn(&report).then_some(TerminalInput::Report(report)),
            input => Some(self.capabilities.corrected(input)),
        }
    }

    /// Handles a report of the terminal. Returns whether anything changed, or it was the last report.
    fn learn(&mut self, report: &Report) -> bool {
        let is_new = self.capabilities.apply_report(report);
        match report {
            Report::Keyboard => {
                // A terminal that is gone is noticed when reading from it.
                self.device.change_modes(|modes| Modes { keyboard: true, ..modes }).unwrap_or_default();
            }
            Report::Synchronized(can) => match &mut self.display {
                ScreenMode::Inline(screen) => screen.set_synchronized(*can),
                ScreenMode::Fullscreen(screen) => screen.set_synchronized(*can),
                ScreenMode::Plain(_) => {}
            },
            Report::Background(_) | Report::Corner(_) | Report::Done => {}
        }
        is_new || *report == Report::Done
    }

    /// Returns whether keys such as shift+enter arrive with their modifiers.
    pub(crate) fn reports_modifiers(&self) -> bool {
        let is_requested = match &self.device {
            FrontDevice::Raw(device) => device.modes().modified_keys,
            FrontDevice::Lines(_) => false,
        };
        is_requested || self.capabilities.keyboard
    }

    /// Asks the terminal for keys such as shift+enter with their modifiers.
    pub(crate) fn request_modified_keys(&mut self) -> io::Result<()> {
        self.device.change_modes(|modes| Modes { modified_keys: true, ..modes })
    }

    fn resize(&mut self, size: Size) {
        self.cell = self.device.cell_size();
        match &mut self.display {
            ScreenMode::Inline(screen) => screen.resize(size),
            ScreenMode::Fullscreen(screen) => screen.resize(size),
            ScreenMode::Plain(_) => {}
        }
        self.dirty = true;
    }

    /// Makes the next frame draw everything.
    pub(crate) fn invalidate(&mut self) {
        match &mut self.display {
            ScreenMode::Inline(screen) => screen.invalidate(),
            ScreenMode::Fullscreen(screen) => screen.invalidate(),
            ScreenMode::Plain(screen) => screen.forget(),
        }
        self.dirty = true;
    }

    /// Switches between regular and fullscreen mode.
    pub(crate) fn set_fullscreen(&mut self, on: bool) -> io::Result<()> {
        if on == self.is_fullscreen() || self.capabilities.plain {
            return Ok(());
        }
        let size = self.size();
        if on {
            if let ScreenMode::Inline(screen) = &mut self.display {
                let bytes = screen.leave(&[]);
                self.device.write(&bytes)?;
            }
            let mouse = self.mouse;
            self.device.change_modes(|modes| Modes { alternate: true, mouse, ..modes })?;
            let mut screen = Fullscreen::new(size);
            screen.set_synchronized(self.capabilities.synchronized);
            screen.set_links(self.links.clone());
            self.display = ScreenMode::Fullscreen(screen);
        } else {
            self.device.change_modes(|modes| Modes { alternate: false, mouse: false, ..modes })?;
            let mut screen = InlineScreen::new(size, self.capabilities.reflows);
            screen.set_synchronized(self.capabilities.synchronized);
            screen.set_links(self.links.clone());
            self.display = ScreenMode::Inline(screen);
        }
        // A resize in progress continues in the new mode. In regular mode, the live area appears when the size is stable.
        if let Some(before) = self.resizing.take() {
            let now = Instant::now();
            let mut resizing = Resizing::new(!on, self.capabilities.multiplexer, now);
            resizing.resized(before.size(), now);
            if !on {
                resizing.hidden();
            }
            self.resizing = Some(resizing);
        }
        self.dirty = true;
        Ok(())
    }

    /// Enables mouse reporting in fullscreen mode, or disables it.
    pub(crate) fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        let mouse = on && self.is_fullscreen();
        self.device.change_modes(|modes| Modes { mouse, ..modes })
    }

    /// Draws a frame; the current time is in Unix milliseconds.
    pub(crate) fn draw(&mut self, frame: &ScreenFrame, now_ms: i64) -> io::Result<()> {
        if let ScreenMode::Plain(screen) = &mut self.display {
            let bytes = screen.draw(&frame.finished, &frame.plain, now_ms);
            if let FrontDevice::Lines(device) = &mut self.device {
                device.set_hidden(frame.plain.is_secret);
            }
            self.dirty = false;
            self.drawn_at = Some(Instant::now());
            return self.device.write(&bytes);
        }
        let hidden = Cursor::default();
        let is_hidden = self.resizing.is_some();
        let mut bytes = frame.images.before.clone();
        bytes.extend(match &mut self.display {
            ScreenMode::Inline(screen) if is_hidden => {
                screen.draw_with_images(&frame.finished, &[], &frame.images.drawn, hidden)
            }
            ScreenMode::Inline(screen) => {
                let cursor = frame.cursor.unwrap_or(hidden);
                screen.draw_with_images(&frame.finished, &frame.live, &frame.images.drawn, cursor)
            }
            ScreenMode::Fullscreen(screen) => screen.draw(&frame.live, frame.cursor),
            ScreenMode::Plain(_) => Vec::new(),
        });
        if frame.title != self.title {
            let title: String = frame.title.chars().filter(|c| !is_obeyed(*c)).collect();
            bytes.extend(format!("\x1b]0;{title}\x07").bytes());
            self.title.clone_from(&frame.title);
        }
        // Terminals clear progress that is not repeated.
        if frame.progress {
            bytes.extend(b"\x1b]9;4;3\x07".iter().filter(|_| !self.progress));
        } else if self.progress {
            bytes.extend(b"\x1b]9;4;0\x07");
        }
        self.progress = frame.progress;
        if self.capabilities.status && frame.status != self.status {
            bytes.extend(frame.status.bytes());
            self.status = frame.status;
        }
        self.dirty = false;
        self.drawn_at = Some(Instant::now());
        self.device.write(&bytes)
    }

    /// Writes something besides frames, such as a text for the clipboard.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.capabilities.plain {
            return Ok(());
        }
        self.device.write(bytes)
    }

    /// Releases the terminal to another program; `last` replaces the live area.
    pub(crate) fn leave(&mut self, last: &[Row]) -> io::Result<()> {
        let bytes = match &mut self.display {
            ScreenMode::Inline(screen) => screen.leave(last),
            ScreenMode::Plain(screen) => screen.leave(last),
            ScreenMode::Fullscreen(_) => Vec::new(),
        };
        self.device.write(&bytes)?;
        if self.status != ProgramStatus::Idle {
            self.device.write(ProgramStatus::CLEAR)?;
            self.status = ProgramStatus::Idle;
        }
        self.device.leave()
    }

    /// Takes the terminal back.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        self.device.enter()?;
        let size = self.device.size()?;
        self.resize(size);
        if let ScreenMode::Inline(screen) = &mut self.display {
            screen.restart();
        }
        self.title.clear();
        Ok(())
    }
}
