//! A notebook in the terminal: typed text is shown as Markdown and goes into the scrollback. Escape or Ctrl+D exits.
//!
//! ```text
//! cargo run -p pinch-tui --features highlight --example notebook
//! ```

use pinch_coding_agent::stdx::host::Host;
use pinch_tui::editor::{Editor, EditorEvent};
use pinch_tui::key::{Key, KeyCode};
use pinch_tui::keymap::Keymap;
use pinch_tui::markdown::{Markdown, MarkdownOptions};
use pinch_tui::terminal::{InlineScreen, QUERIES, TerminalCapabilities, TerminalDevice, TerminalInput};
use pinch_tui::theme::{ColorRole, Palette};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut capabilities = TerminalCapabilities::of(Host::system().env());
    let mut device = TerminalDevice::open()?;
    // The terminal's capabilities arrive as inputs.
    device.write(QUERIES)?;
    let mut screen = InlineScreen::new(device.size()?, capabilities.reflows);
    let (keymap, theme) = (Keymap::default(), Palette::builtin("dark", capabilities.depth));
    let mut editor = Editor::new().with_placeholder("Type Markdown, enter shows it");
    let mut finished = Vec::new();
    loop {
        let columns = screen.size().width();
        let (live, at) = editor.rows(columns, 10, &theme, theme.fg(ColorRole::Border));
        let frame = screen.draw(&finished, &live, at.into());
        device.write(&frame)?;
        finished.clear();
        match device.next().await {
            TerminalInput::Key(press) if press.key == Key::plain(KeyCode::Escape) || press.key == Key::ctrl('d') => {
                break;
            }
            TerminalInput::Key(press) => {
                if let EditorEvent::Submit(submission) = editor.handle(&press, &keymap) {
                    let mut note = Markdown::of(&submission.text, MarkdownOptions::default());
                    finished = note.rows(columns, &theme);
                    editor.remember(&submission);
                }
            }
            TerminalInput::Paste(text) => editor.paste(&text),
            TerminalInput::Resized(size) => screen.resize(size),
            TerminalInput::Report(report) => {
                capabilities.apply_report(&report);
                screen.set_synchronized(capabilities.synchronized);
            }
            TerminalInput::Closed => break,
            _ => {}
        }
    }
    let last = screen.leave(&[]);
    device.write(&last)?;
    Ok(())
}
