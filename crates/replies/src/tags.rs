//! Tags around reasoning and final answers.

/// Kinds of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Reasoning: `think`, `thinking`, `thought`, `antthinking`.
    Think,
    /// The answer proper.
    Final,
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its kind.
    pub kind: TagKind,
    /// Whether it is a closing tag, `</…>`.
    pub closes: bool,
    /// Whether it is an empty tag, `<…/>`, which opens nothing.
    pub empty: bool,
}

/// Names of tags. One that begins with another comes before it.
const NAMES: [(&str, TagKind); 5] = [
    ("antthinking", TagKind::Think),
    ("thinking", TagKind::Think),
    ("thought", TagKind::Think),
    ("think", TagKind::Think),
    ("final", TagKind::Final),
];

/// How much of an unfinished tag is held back, including attributes.
const MAX_TAG: usize = 256;

/// Parses a whole tag, from `<` to `>`.
pub fn parse(text: &str) -> Option<Tag> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?.trim_start();
    let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |rest| (true, rest.trim_start()));
    let (kind, rest) = NAMES.iter().find_map(|(name, kind)| {
        let rest = inner.get(name.len()..)?;
        inner.get(..name.len())?.eq_ignore_ascii_case(name).then_some((*kind, rest))
    })?;
    let empty = rest.trim_end().ends_with('/');
    let has_attributes = rest.starts_with(char::is_whitespace) || rest.trim().is_empty() || rest.trim() == "/";
    (has_attributes && !rest.contains('<')).then_some(Tag { kind, closes, empty })
}

/// Returns whether text that begins with `<` and has no `>` yet may become a tag.
pub fn may_become(text: &str) -> bool {
    if text.len() > MAX_TAG {
        return false;
    }
    let Some(inner) = text.strip_prefix('<') else { return false };
    let inner = inner.trim_start();
    let inner = inner.strip_prefix('/').map_or(inner, str::trim_start);
    if inner.contains('<') {
        return false;
    }
    NAMES.iter().any(|(name, _)| match inner.get(..name.len()) {
        Some(head) => {
            let rest = &inner[name.len()..];
            head.eq_ignore_ascii_case(name)
                && (rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '/'))
        }
        None => name.get(..inner.len()).is_some_and(|start| start.eq_ignore_ascii_case(inner)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_parsed() {
        let think = |closes, empty| Some(Tag { kind: TagKind::Think, closes, empty });
        for (text, expect) in [
            ("<think>", think(false, false)),
            ("< / THINKING >", think(true, false)),
            ("<thought reason=\"x\">", think(false, false)),
            ("<antthinking/>", think(false, true)),
            ("<final/>", Some(Tag { kind: TagKind::Final, closes: false, empty: true })),
            ("<thinker>", None),
            ("<think-x>", None),
            ("<think_x>", None),
            ("<think:x>", None),
            ("<think <x>", None),
            ("<think\"x\">", None),
            ("<a>", None),
        ] {
            assert_eq!(parse(text), expect, "{text}");
        }
        for (text, expect) in
            [("<", true), ("<thi", true), ("</ fin", true), ("<think a=", true), ("<thin ", false), ("<b", false)]
        {
            assert_eq!(may_become(text), expect, "{text}");
        }
        let long = |n: usize| format!("<think {}", "a".repeat(n - "<think ".len()));
        assert!(may_become(&long(MAX_TAG)) && !may_become(&long(MAX_TAG + 1)));
        assert!(may_become("<think/") && !may_become("<think <") && !may_become("think"));
    }
}
