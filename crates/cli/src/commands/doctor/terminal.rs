//! Checks the terminal, as far as possible without querying it.

use std::io::IsTerminal as _;

use pinch_embed::stdx::host::Host;

use super::report::{DoctorSection, FindingStatus};

/// Checks the terminal's variables.
pub(super) fn look(host: &Host) -> DoctorSection {
    let mut section = DoctorSection::new("Terminal");
    let env = host.env();
    let is_terminal =
        [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    let text = match is_terminal {
        [true, true, _] => "input and output",
        [false, true, _] => "output only",
        [true, false, _] => "input only",
        [false, false, true] => "messages only",
        [false, false, false] => "none: input and output are files or pipes",
    };
    section.add(FindingStatus::Note, "terminal", text);
    let kind = env.non_empty("TERM").unwrap_or("unknown");
    let program = env.non_empty("TERM_PROGRAM").map(|program| format!(", {program}")).unwrap_or_default();
    section.add(FindingStatus::Note, "kind", format!("{kind}{program}"));
    let colours = match (env.non_empty("NO_COLOR"), env.get("COLORTERM")) {
        (Some(_), _) => "none: NO_COLOR is set",
        (None, Some("truecolor" | "24bit")) => "all",
        (None, _) if kind.contains("256color") => "256",
        (None, _) if kind == "dumb" || kind == "unknown" => "none",
        (None, _) => "few",
    };
    section.add(FindingStatus::Note, "colors", colours);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| env.non_empty(name)).unwrap_or("C");
    let is_utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    // Windows and macOS use UTF-8 whatever these variables say.
    let needs_it = cfg!(target_os = "linux") && is_terminal[1];
    let mark = if is_utf8 || !needs_it { FindingStatus::Note } else { FindingStatus::Warn };
    let hint = if mark == FindingStatus::Warn { ". Non-ASCII text may be garbled: use a UTF-8 locale" } else { "" };
    section.add(mark, "locale", format!("{locale}{hint}"));
    section
}
