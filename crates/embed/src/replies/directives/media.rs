//! `MEDIA:` lines: which files and addresses a text wants sent along.

/// What a `MEDIA:` line came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMedia {
    /// The media.
    pub targets: Vec<String>,
    /// What of the line stays as text.
    pub rest: String,
}

/// The longest target that is taken for one.
const MAX_TARGET: usize = 4096;

/// Reads a line whose first word is `MEDIA:`; `None` for other lines and for targets that may not be sent.
pub fn media_line(line: &str) -> Option<LineMedia> {
    let payload = line.trim_start().strip_prefix("MEDIA:")?.trim();
    if let Some(inner) = quoted(payload) {
        let target = media_target(inner, true)?;
        return Some(LineMedia { targets: vec![target], rest: String::new() });
    }
    let (mut targets, mut rest) = (Vec::new(), Vec::new());
    for part in payload.split_whitespace() {
        let bare = strip_keyword(part);
        match media_target(bare, false) {
            Some(target) => targets.push(target),
            None if bare.is_empty() => {}
            None => rest.push(part),
        }
    }
    let is_local = payload.starts_with("./") || payload.starts_with("file://");
    if (targets.is_empty() || (targets.len() == 1 && !rest.is_empty() && is_local))
        && let Some(whole) = media_target(payload, true)
    {
        (targets, rest) = (vec![whole], Vec::new());
    }
    (!targets.is_empty()).then(|| LineMedia { targets, rest: rest.join(" ") })
}

/// Reads one target; `None` when it may not be sent. Absolute paths, the home directory and parents are refused: a model could name any file.
pub fn media_target(candidate: &str, spaces: bool) -> Option<String> {
    let target = candidate.trim();
    let target = target.trim_start_matches(['`', '"', '\'', '[', '{', '(']);
    let target = target.trim_end_matches(['`', '"', '\'', '\\', '}', ')', ']', ',']);
    let target = target.strip_prefix("file://").unwrap_or(target);
    if target.is_empty() || target.chars().count() > MAX_TARGET || (!spaces && target.contains(char::is_whitespace)) {
        return None;
    }
    let lower = target.get(..8).unwrap_or(target).to_ascii_lowercase();
    let is_address = lower.starts_with("http://") || lower.starts_with("https://");
    let is_address = is_address && !target.contains(char::is_whitespace);
    let is_below = target.starts_with("./") && !target.contains("..");
    (is_address || is_below).then(|| target.to_owned())
}

fn quoted(payload: &str) -> Option<&str> {
    ['"', '\'', '`'].into_iter().find_map(|quote| {
        let inner = payload.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    })
}

fn strip_keyword(part: &str) -> &str {
    match part.get(..6) {
        Some(head) if head.eq_ignore_ascii_case("media:") => &part[6..],
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for (line, targets, rest) in [
            ("MEDIA:https://e.com/a.png", &["https://e.com/a.png"][..], ""),
            ("  MEDIA: https://e.com/a.png words", &["https://e.com/a.png"], "words"),
            ("MEDIA:\"./my pics/a b.png\"", &["./my pics/a b.png"], ""),
            ("MEDIA:./my pics/a b.png", &["./my pics/a b.png"], ""),
            ("MEDIA:file://./a.png", &["./a.png"], ""),
        ] {
            let expect = LineMedia { targets: targets.iter().map(|t| (*t).to_owned()).collect(), rest: rest.into() };
            assert_eq!(media_line(line), Some(expect), "{line}");
        }
        for line in [
            "MEDIA:/etc/passwd",
            "MEDIA:~/x",
            "MEDIA:./../x",
            "media:https://e.com/a",
            "see MEDIA:https://e.com/a",
            "MEDIA:",
        ] {
            assert_eq!(media_line(line), None, "{line}");
        }
    }
}
