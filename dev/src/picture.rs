//! The picture of `pinch demo` in the README, drawn from the program's output. `cargo xtask codegen` writes or checks it.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, bail};

use crate::cargo;

const PICTURE: &str = "docs/demo.svg";

/// Columns of the terminal; longer lines are truncated.
const COLUMNS: usize = 116;
/// Width of a character and height of a line, in pixels.
const CHARACTER: f64 = 7.8;
const LINE: usize = 18;
/// Margin around the text and height of the title bar, in pixels.
const MARGIN: usize = 16;
const BAR: usize = 34;

/// The columns that contain the kind in a line of the timeline.
const KIND: std::ops::Range<usize> = 11..21;

/// Arguments for the picture.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing, and fail if the picture is out of date
    #[arg(long)]
    check: bool,
}

/// Writes or checks the picture; returns true if it is up to date. Differences only in numbers, such as times, are ignored.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let path = cargo::root().join(PICTURE);
    let new = draw(&record()?);
    let is_same = std::fs::read_to_string(&path).is_ok_and(|old| without_numbers(&old) == without_numbers(&new));
    if !is_same && !args.check {
        std::fs::write(&path, &new).with_context(|| format!("cannot write {PICTURE}"))?;
    }
    let state = match (is_same, args.check) {
        (true, _) => "up to date",
        (false, true) => "stale",
        (false, false) => "written",
    };
    println!("{PICTURE}: {state}");
    Ok(is_same || !args.check)
}

/// Runs the demo in a temporary directory and returns its output, with `~` for the directory.
fn record() -> anyhow::Result<String> {
    let home = tempfile::tempdir()?;
    let dir = home.path().join("demo");
    let output = Command::new(cargo::profile_dir()?.join("pinch"))
        .args(["demo", "--pace", "1", "--dir"])
        .arg(&dir)
        .current_dir(home.path())
        .env("HOME", home.path())
        .output()
        .context("cannot start pinch")?;
    if !output.status.success() {
        bail!("pinch demo failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("pinch demo prints no text")?;
    Ok(text.replace(&*home.path().to_string_lossy(), "~"))
}

/// The text with every number replaced by 0, for comparison.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut was_digit = false;
    for c in text.chars() {
        let is_digit = c.is_ascii_digit();
        if !is_digit || !was_digit {
            out.push(if is_digit { '0' } else { c });
        }
        was_digit = is_digit;
    }
    // A shorter number is padded with more spaces.
    out.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn draw(text: &str) -> String {
    let lines: Vec<&str> = std::iter::once("$ pinch demo").chain(text.trim_end().lines()).collect();
    let (width, height) = (COLUMNS as f64 * CHARACTER + 2.0 * MARGIN as f64, BAR + lines.len() * LINE + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height}\" viewBox=\"0 0 {width:.0} {height}\" \
         role=\"img\" aria-label=\"The output of pinch demo\">\n\
         <style>text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}}\
         .time{{fill:#6e7681}}.attempt,.lanes{{fill:#79c0ff}}.outcome,.repair,.wait{{fill:#e3b341}}.tool{{fill:#d2a8ff}}\
         .block{{fill:#7ee787}}.tokens{{fill:#8b949e}}.prompt{{fill:#7ee787;font-weight:bold}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (at, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _written = writeln!(svg, "<circle cx=\"{}\" cy=\"17\" r=\"5.5\" fill=\"{colour}\"/>", 20 + at * 18);
    }
    for (at, line) in lines.iter().enumerate() {
        let y = BAR + at * LINE + 12;
        if !line.is_empty() {
            let _written =
                writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{}</text>", coloured(line));
        }
    }
    svg + "</svg>\n"
}

/// A line with its time and kind in colour.
fn coloured(line: &str) -> String {
    let line = cut(line);
    if line.starts_with("$ ") || line.starts_with("> ") {
        return format!("<tspan class=\"prompt\">{}</tspan>", escaped(&line));
    }
    let (Some(time), Some(kind), Some(rest)) = (line.get(..KIND.start), line.get(KIND), line.get(KIND.end..)) else {
        return escaped(&line);
    };
    let class = kind.split_whitespace().next().unwrap_or_default();
    let is_time = time.trim().strip_suffix(" s").is_some_and(|seconds| seconds.parse::<f64>().is_ok());
    if !is_time || !class.chars().all(|c| c.is_ascii_lowercase()) {
        return escaped(&line);
    }
    let (time, kind, rest) = (escaped(time), escaped(kind), escaped(rest));
    format!("<tspan class=\"time\">{time}</tspan><tspan class=\"{class}\">{kind}</tspan>{rest}")
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(COLUMNS) {
        Some((at, _)) => format!("{}…", line[..at].trim_end()),
        None => line.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_make_a_picture_stale_and_words_do() {
        assert_eq!(without_numbers("a   1.25 s  b"), without_numbers("a  10.30 s  b"));
        assert_ne!(without_numbers("1 attempt"), without_numbers("1 attempts"));
    }

    #[test]
    fn lines_are_cut_escaped_and_coloured() {
        let line = "  0.012 s  tool       read <a> & b";
        let expected =
            "<tspan class=\"time\">  0.012 s  </tspan><tspan class=\"tool\">tool      </tspan> read &lt;a&gt; &amp; b";
        assert_eq!(coloured(line), expected);
        assert_eq!(coloured("The model server at home"), "The model server at home");
        assert_eq!(coloured("> go"), "<tspan class=\"prompt\">&gt; go</tspan>");
        assert_eq!(cut(&"ä".repeat(COLUMNS + 1)).chars().count(), COLUMNS + 1);
    }
}
