//! Images in the conversation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_agent_core::tool::ToolOutput;
use pinch_llm::message::{Block, Content, Image, UserMessage};

use super::*;
use crate::image::{CellSize, ImageProtocol};
use crate::theme::ColorDepth;

const COLUMNS: usize = 40;

fn png(width: u16, height: u16) -> Image {
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    file.extend([u32::from(width).to_be_bytes(), u32::from(height).to_be_bytes()].concat());
    Image { data: STANDARD.encode(file), mime_type: "image/png".to_owned() }
}

fn said(text: &str, images: Vec<Image>) -> Arc<Message> {
    let blocks = std::iter::once(Block::text(text)).chain(images.into_iter().map(Block::Image));
    Arc::new(Message::User(UserMessage::new(Content::Blocks(blocks.collect()), 1)))
}

fn view(protocol: Option<ImageProtocol>) -> TranscriptView {
    let view = TranscriptView::default();
    view.images().configure(protocol, 60);
    view.images().set_screen(24, CellSize::default());
    view
}

/// Returns rows with `▒` for image placeholders, and a mark where an image is drawn.
fn shown(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        assert!(crate::text::row_width(row) <= COLUMNS);
        let line: String = row
            .to_string()
            .split('\u{10eeee}')
            .map(|part| part.trim_start_matches(|c: char| ('\u{300}'..'\u{b00}').contains(&c)))
            .collect::<Vec<_>>()
            .join("▒");
        let anchor = crate::image::anchor(row)
            .map_or(String::new(), |(column, number)| format!("  <- image {number} at {column}"));
        text.push_str(format!("{}{anchor}", line.trim_end()).trim_end());
        text.push('\n');
    }
    text
}

fn finished(view: &mut TranscriptView, depth: ColorDepth) -> String {
    shown(&view.take_finished(COLUMNS, &Palette::builtin("dark", depth), &Keymap::default()))
}

#[test]
fn images_of_the_user_are_below_the_text() {
    let mut view = view(Some(ImageProtocol::KittyPlaceholders));
    view.message_ended(&said("look", vec![png(90, 54), png(18, 18)]));
    insta::assert_snapshot!(finished(&mut view, ColorDepth::True), @r"
    look
    ▒▒▒▒▒▒▒▒▒▒
    ▒▒▒▒▒▒▒▒▒▒
    ▒▒▒▒▒▒▒▒▒▒
    ▒▒
    ");
    let sent = String::from_utf8(view.images().take_frame().before).unwrap();
    assert_eq!(sent.matches("a=T").count(), 2);
}

#[test]
fn a_line_replaces_an_image_that_cannot_be_shown() {
    let broken = Image { data: "QUJD".to_owned(), mime_type: "image/\u{1b}[2Jpng".to_owned() };
    let mut view = view(None);
    view.message_ended(&said("look", vec![png(90, 54), broken]));
    insta::assert_snapshot!(finished(&mut view, ColorDepth::True), @r"
    look
    [Image: image/png 90x54]
    [Image: image/png]
    ");
}

#[test]
fn drawn_images_have_blank_rows_in_the_scrollback_and_a_line_elsewhere() {
    for depth in [ColorDepth::True, ColorDepth::None] {
        let mut view = view(Some(ImageProtocol::Iterm2));
        view.message_ended(&said("look", vec![png(90, 54)]));
        let theme = Palette::builtin("dark", depth);
        let window = view.window(COLUMNS, 20, &theme, &Keymap::default());
        assert!(shown(&window.rows).contains("[Image: image/png 90x54]"));
        let live = view.live(COLUMNS, &theme, &Keymap::default(), 0);
        assert!(shown(&live).contains("[Image: image/png 90x54]"));
        assert_eq!(view.images().take_frame(), Default::default());
        let rows = finished(&mut view, depth);
        assert!(rows.contains("<- image 0"), "{rows}");
        assert_eq!(view.images().take_frame().drawn.len(), 1);
        if depth == ColorDepth::True {
            insta::assert_snapshot!(rows, @r"
            look
             <- image 0 at 1
            ");
        }
    }
}

#[test]
fn a_tool_image_has_at_most_20_rows_until_expanded_and_is_sent_once() {
    let mut view = view(Some(ImageProtocol::KittyPlaceholders));
    view.mode_changed(true);
    let mut tool = TranscriptEntry::tool("1", "read");
    tool.end_tool(&ToolOutput { content: vec![Block::Image(png(300, 900))], ..ToolOutput::text("") }, None);
    view.push(tool);
    let theme = Palette::builtin("dark", ColorDepth::True);
    let window = |view: &mut TranscriptView| {
        let rows = view.window(COLUMNS, 100, &theme, &Keymap::default()).rows;
        let n_rows = rows.iter().filter(|row| row.to_string().contains('\u{10eeee}')).count();
        (n_rows, String::from_utf8(view.images().take_frame().before).unwrap().matches("a=T").count())
    };
    assert_eq!(window(&mut view), (20, 1));
    assert_eq!(window(&mut view), (20, 0), "a second frame");
    view.toggle_last();
    assert_eq!(window(&mut view), (50, 0), "expanded");
    view.mode_changed(false);
    view.mode_changed(true);
    assert_eq!(window(&mut view), (50, 1), "another alternate screen");
}

#[test]
fn an_image_being_converted_holds_back_later_rows() {
    let gif = Image { data: STANDARD.encode(b"GIF89a\x5a\0\x36\0\0\0\0"), mime_type: "image/gif".to_owned() };
    let mut view = view(Some(ImageProtocol::KittyPlaceholders));
    view.images().enable_conversion();
    view.message_ended(&said("first", Vec::new()));
    view.message_ended(&said("second", vec![gif.clone()]));
    view.message_ended(&said("third", vec![gif]));
    let rows = finished(&mut view, ColorDepth::True);
    assert!(rows.contains("first") && !rows.contains("second"), "{rows}");
    let wanted = view.images().take_unconverted();
    assert_eq!(wanted.len(), 1);
    assert_eq!(finished(&mut view, ColorDepth::True), "");
    view.converted(&wanted[0], Some(ImageSource::new(&png(90, 54))));
    let rows = finished(&mut view, ColorDepth::True);
    assert_eq!((rows.matches('▒').count(), rows.contains("third")), (60, true), "{rows}");
}
