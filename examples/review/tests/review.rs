//! The program without a terminal: keys in, rows out.

use std::time::Duration;

use pinch_example_review::{FileContent, Review, ReviewAction, read};
use pinch_tui::Row;
use pinch_tui::image::{CellSize, ImageProtocol, PixelSize};
use pinch_tui::key::{Key, KeyCode, KeyPress};
use pinch_tui::terminal::Size;
use pinch_tui::theme::{ColorDepth, Palette};

const ENTER: KeyPress = KeyPress::of(Key::plain(KeyCode::Enter));
const ESCAPE: KeyPress = KeyPress::of(Key::plain(KeyCode::Escape));

fn review(images: Option<ImageProtocol>) -> Review {
    let files = ["change.diff", "notes.md", "photo.png"].map(str::to_owned).to_vec();
    let theme = Palette::builtin("dark", ColorDepth::None);
    Review::new(files, theme, Size::new(60, 20), images.map(|protocol| (protocol, CellSize::default())))
}

fn text(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect()
}

fn live(review: &mut Review) -> String {
    text(&review.live(Duration::ZERO).0)
}

fn type_in(review: &mut Review, typed: &str) {
    for c in typed.chars() {
        assert_eq!(review.key(&KeyPress::typed(c)), ReviewAction::None);
    }
}

#[test]
fn a_file_is_chosen_read_shown_and_remarked_on() {
    let mut review = review(None);
    assert!(live(&mut review).contains("→ change.diff"));
    type_in(&mut review, "note");
    assert_eq!(review.key(&ENTER), ReviewAction::Read("notes.md".to_owned()));
    assert_eq!(live(&mut review), "⠋ Reading\n");
    assert!(review.animation().is_some());
    review.show("notes.md", FileContent::Markdown("Some **bold** text".to_owned()));
    assert_eq!(text(&review.take_finished()), "notes.md\n\nSome bold text\n\n");
    assert!(live(&mut review).contains("A remark in Markdown"));
    type_in(&mut review, "well *put*");
    review.key(&ENTER);
    assert_eq!(text(&review.take_finished()), "│ well put\n\n");
    review.key(&ESCAPE);
    assert!(live(&mut review).contains("→ notes.md"));
    // The first escape clears the search.
    review.key(&ESCAPE);
    assert_eq!(review.key(&ESCAPE), ReviewAction::Exit);
}

#[test]
fn a_diff_is_shown_with_its_changes_counted() {
    let mut review = review(None);
    review.show("change.diff", FileContent::Diff("-1 let a = 1;\n+1 let a = 2;".to_owned()));
    let shown = text(&review.take_finished());
    assert!(shown.contains("1 addition, 1 removal\n-1 let a = 1;\n+1 let a = 2;"), "{shown}");
}

#[test]
fn an_image_is_shown_where_the_terminal_can() {
    let image = || FileContent::Image { bytes: b"png".to_vec(), size: PixelSize { width: 90, height: 54 } };
    let mut plain = review(None);
    plain.show("photo.png", image());
    assert!(text(&plain.take_finished()).contains("[image of 90 × 54 pixels]"));
    assert!(plain.take_image_data().is_empty());
    let mut kitty = review(Some(ImageProtocol::KittyPlaceholders));
    kitty.show("photo.png", image());
    assert!(String::from_utf8_lossy(&kitty.take_image_data()).starts_with("\u{1b}_Ga=T"));
    // The heading and three rows of placeholders, each with a blank row below.
    assert_eq!(kitty.take_finished().len(), 2 + 4);
}

#[test]
fn unreadable_files_are_problems() {
    let missing = read(std::path::Path::new("no/such/file.md"));
    assert!(matches!(missing, FileContent::Problem(_)), "{missing:?}");
}
