//! The interactive mode in a real terminal emulator, tmux, against a scripted server.

mod user;

mod lifecycle;
mod screens;
mod side_by_side;

use anyhow::{Context, bail};

use super::table::ResultTable;
use user::TmuxUser;

/// Columns and rows of a window.
type WindowSize = (u16, u16);

/// Name and function of a check. The function gets a new user, and the size of the window.
type TerminalCheck = (&'static str, fn(&TmuxUser, WindowSize) -> anyhow::Result<String>);

const SIZES: [WindowSize; 3] = [(80, 24), (200, 60), (40, 10)];

const CHECKS: [TerminalCheck; 12] = [
    ("a conversation", screens::conversation),
    ("200 resizes while streaming", screens::resize_storm),
    ("the same, fullscreen mode", screens::fullscreen_storm),
    ("resizes within paragraphs", screens::wrapped_storm),
    ("80 lines at other widths and heights", screens::unique_lines),
    ("a paste of 1 MB", screens::large_paste),
    ("suspend and continue", lifecycle::suspend),
    ("the external editor", lifecycle::external_editor),
    ("SIGTERM", lifecycle::terminate),
    ("SIGHUP", lifecycle::hang_up),
    ("the terminal is closed", lifecycle::close),
    ("SIGKILL", lifecycle::kill),
];

/// Arguments of `cargo xtask interop terminal`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Run only the checks whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Compare with pi instead: type the same conversations into both. Needs npm.
    #[arg(long)]
    side_by_side: bool,
}

/// Runs the checks.
pub(super) fn run(args: &Args) -> anyhow::Result<bool> {
    let version = crate::tmux::version()
        .context("tmux is missing; install tmux 3.3 or later, for example with `apt install tmux`")?;
    println!("==> {version}");
    if args.side_by_side {
        return side_by_side::run(args.only.as_deref());
    }
    let checks: Vec<&TerminalCheck> =
        CHECKS.iter().filter(|(name, _)| args.only.as_ref().is_none_or(|text| name.contains(text.as_str()))).collect();
    if checks.is_empty() {
        let names = CHECKS.map(|(name, _)| name).join(", ");
        bail!(
            "no check has a name that contains {:?}; the checks are: {names}",
            args.only.as_deref().unwrap_or_default()
        );
    }
    let mut table = ResultTable::default();
    for size in SIZES {
        for (name, check) in &checks {
            let result = TmuxUser::new().and_then(|user| check(&user, size)).map_err(|why| format!("{why:#}"));
            table.row(&format!("{}x{}", size.0, size.1), name, result);
        }
    }
    Ok(table.finish())
}
