//! Converts lines typed on a terminal that edits them itself into keys for a dialog.

use crate::key::{Key, KeyCode, KeyPress};

/// A part of a line passed to a dialog.
#[derive(Clone, Copy)]
pub(crate) enum DialogLine<'a> {
    /// The whole line, for dialogs that can handle it.
    Line(&'a str),
    /// A key.
    Key(&'a KeyPress),
}

/// Effect on the dialog.
pub(crate) enum LineStep<E> {
    /// Nothing.
    Ignored,
    /// Nothing, and the characters of the line must not be handled as keys.
    Refused,
    /// Handled, with these effects.
    Taken(Vec<E>),
    /// Handled, with these effects, and the dialog is closed.
    Closed(Vec<E>),
}

/// The dialog cannot handle the line.
pub(crate) struct UnhandledLine;

/// Message about such a line.
pub(crate) const UNHANDLED_LINE: &str =
    "Type the number of a choice or the beginning of its name, or a key after a slash: /escape, /down, /space";

/// Passes a line to a dialog, and returns the effects. A slash names one key: `/escape`, `/down`, `/ctrl+s`. Other lines are passed to the
/// dialog as a whole, or else typed character by character, followed by enter if any of them had an effect, unless the dialog refuses them.
pub(crate) fn answer<E>(
    line: &str,
    mut give: impl FnMut(DialogLine<'_>) -> LineStep<E>,
) -> Result<Vec<E>, UnhandledLine> {
    if let Some(press) = named_key(line) {
        return match give(DialogLine::Key(&press)) {
            LineStep::Ignored | LineStep::Refused => Err(UnhandledLine),
            LineStep::Taken(effects) | LineStep::Closed(effects) => Ok(effects),
        };
    }
    if !line.trim().is_empty() {
        match give(DialogLine::Line(line)) {
            LineStep::Ignored => {}
            LineStep::Refused => return Err(UnhandledLine),
            LineStep::Taken(effects) | LineStep::Closed(effects) => return Ok(effects),
        }
    }
    let mut is_taken = line.is_empty();
    let mut all = Vec::new();
    for press in line.chars().filter(|c| !c.is_control()).map(KeyPress::typed) {
        match give(DialogLine::Key(&press)) {
            LineStep::Ignored | LineStep::Refused => {}
            LineStep::Taken(effects) => {
                is_taken = true;
                all.extend(effects);
            }
            // The rest is not meant for whatever is open now.
            LineStep::Closed(effects) => {
                all.extend(effects);
                return Ok(all);
            }
        }
    }
    // Enter would choose something that was not named.
    if !is_taken {
        return Err(UnhandledLine);
    }
    match give(DialogLine::Key(&ENTER)) {
        LineStep::Ignored | LineStep::Refused => {}
        LineStep::Taken(effects) | LineStep::Closed(effects) => all.extend(effects),
    }
    Ok(all)
}

const ENTER: KeyPress = KeyPress::of(Key::plain(KeyCode::Enter));

/// Returns the key that a line names after a slash.
fn named_key(line: &str) -> Option<KeyPress> {
    let key: Key = line.strip_prefix('/').filter(|name| name.len() > 1)?.parse().ok()?;
    let is_space = key == Key::plain(KeyCode::Space);
    Some(if is_space { KeyPress::typed(' ') } else { KeyPress::of(key) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes a line to a dialog that accepts search letters, the line `No`, and closes at y, enter and escape.
    fn answered(line: &str) -> Option<String> {
        let mut seen = String::new();
        let done = answer(line, |input| match input {
            DialogLine::Line("No") => LineStep::Closed(vec!["no".to_owned()]),
            DialogLine::Line("yes or no") => LineStep::Refused,
            DialogLine::Line(_) => LineStep::Ignored,
            DialogLine::Key(press) => match press.key.to_string().as_str() {
                "enter" => LineStep::Closed(vec!["enter".to_owned()]),
                "escape" => LineStep::Closed(vec!["escape".to_owned()]),
                "y" => LineStep::Closed(vec!["yes".to_owned()]),
                "a" | "b" | "space" => LineStep::Taken(vec![press.key.to_string()]),
                _ => LineStep::Ignored,
            },
        });
        match done {
            Ok(effects) => seen.push_str(&effects.join(" ")),
            Err(UnhandledLine) => return None,
        }
        Some(seen)
    }

    #[test]
    fn a_line_is_a_key_or_a_choice_or_typed_followed_by_enter() {
        for (line, expected) in [
            ("/escape", Some("escape")),
            ("/space", Some("space")),
            ("/down", None),
            ("No", Some("no")),
            ("ab", Some("a b enter")),
            ("", Some("enter")),
            ("yes please", Some("yes")),
            ("yes or no", None),
            ("xx", None),
            ("x", None),
        ] {
            assert_eq!(answered(line).as_deref(), expected, "{line:?}");
        }
    }
}
