//! Shows the files of a directory and collects remarks about them: `cargo run -- DIRECTORY`. Escape or Ctrl+D exits.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinch_example_review::{FileContent, Review, ReviewAction, read};
use pinch_tui::coding_agent::stdx::host::Host;
use pinch_tui::image::ImageProtocol;
use pinch_tui::terminal::{InlineScreen, QUERIES, TerminalCapabilities, TerminalDevice, TerminalInput};
use pinch_tui::theme::Palette;
use tokio::task::JoinHandle;

/// Returns the names of the files in a directory.
fn files(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Waits for the file that is being read.
async fn done(reading: &mut Option<(String, JoinHandle<FileContent>)>) -> Option<(String, FileContent)> {
    let (_, work) = reading.as_mut()?;
    let content = work.await.unwrap_or_else(|error| FileContent::Problem(error.to_string()));
    let (name, _) = reading.take()?;
    Some((name, content))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let files = files(&dir)?;
    let host = Host::system();
    let mut capabilities = TerminalCapabilities::of(host.env());
    let mut device = TerminalDevice::open()?;
    // The terminal's capabilities arrive as inputs.
    device.write(QUERIES)?;
    let mut screen = InlineScreen::new(device.size()?, capabilities.reflows);
    let images = ImageProtocol::of(host.env()).map(|protocol| (protocol, device.cell_size()));
    let theme = Palette::builtin("dark", capabilities.depth);
    let mut review = Review::new(files, theme, screen.size(), images);
    let mut reading = None;
    let mut since = Instant::now();
    loop {
        let image_data = review.take_image_data();
        let finished = review.take_finished();
        let (live, cursor) = review.live(since.elapsed());
        device.write(&image_data)?;
        let frame = screen.draw(&finished, &live, cursor);
        device.write(&frame)?;
        let animation = review.animation();
        tokio::select! {
            Some((name, content)) = done(&mut reading), if reading.is_some() => review.show(&name, content),
            () = tokio::time::sleep(animation.unwrap_or(Duration::MAX)), if animation.is_some() => {}
            input = device.next() => match input {
                TerminalInput::Key(press) => match review.key(&press) {
                    ReviewAction::None => {}
                    ReviewAction::Read(name) => {
                        since = Instant::now();
                        let path = dir.join(&name);
                        reading = Some((name, tokio::task::spawn_blocking(move || read(&path))));
                    }
                    ReviewAction::Exit => break,
                },
                TerminalInput::Paste(text) => review.paste(&text),
                TerminalInput::Resized(size) => {
                    screen.resize(size);
                    review.resize(size);
                }
                TerminalInput::Report(report) => {
                    capabilities.apply_report(&report);
                    screen.set_synchronized(capabilities.synchronized);
                }
                TerminalInput::Closed => break,
                _ => {}
            },
        }
    }
    let last = screen.leave(&[]);
    device.write(&last)?;
    Ok(())
}
