//! Parts of entries that extensions draw. They are drawn in the background, and again when the room, the theme or the content changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_coding_agent::extension::rendering::{RenderRoom, RenderSubject, Renderer, RendererKey, Renderers, ToolLook};

use crate::Row;
use crate::sgr;
use crate::text::truncate;
use crate::theme::Palette;

/// Maximum number of lines, and of bytes in a line, that are kept.
const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 64 * 1024;

/// What was drawn, or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DrawingVersion {
    room: RenderRoom,
    /// Revision of the content, and of the renderers and the theme.
    revision: u64,
    look: u64,
}

/// Identifies a request to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrawingTicket {
    id: u64,
    version: DrawingVersion,
}

/// A request to draw.
pub(crate) struct DrawingRequest {
    pub(crate) ticket: DrawingTicket,
    pub(crate) subject: RenderSubject,
    pub(crate) renderer: Arc<dyn Renderer>,
}

impl DrawingRequest {
    /// Returns the room for the lines.
    pub(crate) fn room(&self) -> RenderRoom {
        self.ticket.version.room
    }
}

/// The renderers, and what they are to draw.
#[derive(Default)]
pub(crate) struct DrawingBoard {
    renderers: Renderers,
    look: u64,
    last_id: u64,
    requests: Vec<DrawingRequest>,
}

impl DrawingBoard {
    /// Replaces the renderers.
    pub(crate) fn set_renderers(&mut self, renderers: Renderers) {
        self.renderers = renderers;
        self.look += 1;
    }

    /// Called when the theme has changed.
    pub(crate) fn look_changed(&mut self) {
        self.look += 1;
    }

    /// Returns what is to be drawn since the last call.
    pub(crate) fn take_requests(&mut self) -> Vec<DrawingRequest> {
        std::mem::take(&mut self.requests)
    }
}

/// The board of a conversation, shared with layouts that otherwise only read.
#[derive(Clone, Default)]
pub(crate) struct SharedDrawings(Arc<Mutex<DrawingBoard>>);

impl SharedDrawings {
    pub(crate) fn lock(&self) -> MutexGuard<'_, DrawingBoard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the renderer of something.
    pub(super) fn renderer(&self, key: &RendererKey) -> Option<(ToolLook, Arc<dyn Renderer>)> {
        self.lock().renderers.get(key)
    }
}

impl std::fmt::Debug for SharedDrawings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SharedDrawings").field(&self.lock().renderers).finish()
    }
}

/// Two values are equal if they are the same.
impl PartialEq for SharedDrawings {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedDrawings {}

/// What an extension draws of an entry.
#[derive(Debug, Default)]
pub(super) struct PartDrawing {
    id: u64,
    /// Revision of the content.
    revision: u64,
    asked: Option<DrawingVersion>,
    /// The lines; `None`: it is shown as usual.
    drawn: Option<(DrawingVersion, Option<Vec<String>>)>,
}

/// How to show a part of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DrawnPart {
    /// Not yet.
    Later,
    Usual,
    Rows(Vec<Row>),
}

impl PartDrawing {
    /// Called when the content has changed.
    pub(super) fn changed(&mut self) {
        self.revision += 1;
    }

    /// Returns whether something is to be drawn that has not arrived yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns whether an extension has drawn it.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn.as_ref().is_some_and(|(_, lines)| lines.is_some())
    }

    /// Returns what was drawn last, and has it drawn again if it has changed.
    pub(super) fn part(
        &mut self,
        room: RenderRoom,
        renderer: &Arc<dyn Renderer>,
        (board, theme): (&SharedDrawings, &Palette),
        subject: impl FnOnce() -> RenderSubject,
    ) -> DrawnPart {
        let mut board = board.lock();
        let version = DrawingVersion { room, revision: self.revision, look: board.look };
        let is_current = self.drawn.as_ref().is_some_and(|(drawn, _)| *drawn == version);
        // One at a time: what arrives tells whether it must be drawn again.
        if !is_current && self.asked.is_none() {
            if self.id == 0 {
                board.last_id += 1;
                self.id = board.last_id;
            }
            self.asked = Some(version);
            let ticket = DrawingTicket { id: self.id, version };
            board.requests.push(DrawingRequest { ticket, subject: subject(), renderer: Arc::clone(renderer) });
        }
        match &self.drawn {
            None => DrawnPart::Later,
            Some((_, None)) => DrawnPart::Usual,
            Some((_, Some(lines))) => {
                let row = |line: &String| truncate(&sgr::row(line, theme), room.columns, "");
                DrawnPart::Rows(lines.iter().map(row).collect())
            }
        }
    }

    /// Takes lines if they are for this one; `None`: it is shown as usual. Returns whether it has.
    pub(super) fn arrived(&mut self, ticket: &DrawingTicket, lines: &Option<Vec<String>>) -> bool {
        if self.id != ticket.id {
            return false;
        }
        self.asked = None;
        let mut lines = lines.clone();
        if let Some(lines) = &mut lines {
            lines.truncate(MAX_LINES);
            lines.iter_mut().for_each(|line| line.truncate(line.floor_char_boundary(MAX_LINE)));
        }
        self.drawn = Some((ticket.version, lines));
        true
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use pinch_coding_agent::extension::ExtensionError;
    use pinch_llm::message::Content;

    use super::*;
    use crate::theme::ColorDepth;

    struct NeverAsked;

    impl Renderer for NeverAsked {
        fn render<'a>(
            &'a self,
            _: &'a RenderSubject,
            _: RenderRoom,
        ) -> BoxFuture<'a, Result<Option<Vec<String>>, ExtensionError>> {
            Box::pin(async { Ok(None) })
        }
    }

    #[test]
    fn one_drawing_is_made_at_a_time_until_it_is_of_the_latest_version() {
        let board = SharedDrawings::default();
        let theme = Palette::builtin("dark", ColorDepth::None);
        let renderer: Arc<dyn Renderer> = Arc::new(NeverAsked);
        let mut drawing = PartDrawing::default();
        let part = |drawing: &mut PartDrawing, columns: usize| {
            let room = RenderRoom { columns, is_expanded: false };
            let subject = || RenderSubject::Message {
                custom_type: "t".to_owned(),
                content: Content::Text(String::new()),
                details: None,
            };
            let part = drawing.part(room, &renderer, (&board, &theme), subject);
            let asked: Vec<_> = board.lock().take_requests().into_iter().map(|request| request.ticket).collect();
            (part, asked)
        };
        let rows = |text: &str| DrawnPart::Rows(vec![Row::from(text.to_owned())]);
        let (first, asked) = part(&mut drawing, 10);
        let [ticket] = asked[..] else { panic!("{asked:?}") };
        assert_eq!(first, DrawnPart::Later);
        // The content changes meanwhile, and the room.
        drawing.changed();
        assert_eq!(part(&mut drawing, 4), (DrawnPart::Later, Vec::new()));
        assert!(!PartDrawing::default().arrived(&ticket, &None));
        assert!(drawing.arrived(&ticket, &Some(vec!["too long\u{7}".to_owned()])));
        // The old lines are shown in the new room until there are others.
        let (shown, asked) = part(&mut drawing, 4);
        let [ticket] = asked[..] else { panic!("{asked:?}") };
        assert_eq!(shown, rows("too "));
        assert!(drawing.is_awaited() && drawing.arrived(&ticket, &Some(vec!["new".to_owned()])));
        assert_eq!(part(&mut drawing, 4), (rows("new"), Vec::new()));
        assert!(!drawing.is_awaited() && drawing.is_drawn());
        // Another theme.
        board.lock().look_changed();
        let (_, asked) = part(&mut drawing, 4);
        drawing.arrived(&asked[0], &None);
        assert_eq!(part(&mut drawing, 4), (DrawnPart::Usual, Vec::new()));
    }

    #[test]
    fn lines_are_limited() {
        let board = SharedDrawings::default();
        let theme = Palette::builtin("dark", ColorDepth::None);
        let renderer: Arc<dyn Renderer> = Arc::new(NeverAsked);
        let room = RenderRoom { columns: usize::MAX, is_expanded: false };
        let mut drawing = PartDrawing::default();
        let subject = || RenderSubject::Message {
            custom_type: "t".to_owned(),
            content: Content::Text(String::new()),
            details: None,
        };
        drawing.part(room, &renderer, (&board, &theme), subject);
        let ticket = board.lock().take_requests()[0].ticket;
        drawing.arrived(&ticket, &Some(vec!["ä".repeat(MAX_LINE); MAX_LINES + 1]));
        let lines = drawing.drawn.unwrap().1.unwrap();
        assert_eq!((lines.len(), lines[0].len()), (MAX_LINES, MAX_LINE));
    }
}
