//! Pasted texts: a code, a code with its state, or the full redirect URL.

use url::{Url, form_urlencoded};

/// A pasted code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pasted {
    /// The code.
    pub code: Option<String>,
    /// The state that came with it.
    pub state: Option<String>,
    /// The server's reason if there is no code.
    pub error: Option<String>,
}

/// Parses a pasted text.
pub fn read(text: &str) -> Pasted {
    let text = text.trim();
    if text.is_empty() {
        return Pasted::default();
    }
    if text.contains("://") {
        // Line breaks inserted by a terminal are not part of the URL.
        return Url::parse(text).ok().and_then(|url| url.query().map(from_query)).unwrap_or_default();
    }
    if let Some((code, state)) = text.split_once('#') {
        return Pasted { code: non_empty(code), state: non_empty(state), error: None };
    }
    if text.contains("code=") {
        return from_query(text.trim_start_matches('?'));
    }
    Pasted { code: Some(text.to_owned()), ..Pasted::default() }
}

/// Parses the query of a redirect URL.
pub(super) fn from_query(query: &str) -> Pasted {
    let mut pasted = Pasted::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "code" => &mut pasted.code,
            "state" => &mut pasted.state,
            "error" => &mut pasted.error,
            _ => continue,
        };
        if field.is_none() {
            *field = non_empty(&value);
        }
    }
    pasted
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: Option<&str>, state: Option<&str>) {
        let pasted = read(text);
        assert_eq!((pasted.code.as_deref(), pasted.state.as_deref()), (code, state), "{text}");
    }

    #[test]
    fn pasted_codes_and_urls_are_parsed() {
        check(" http://localhost:1/cb?code=a%2Bb+c&state=s&x=1#frag ", Some("a+b c"), Some("s"));
        check("http://localhost:1/cb?code=a\nb&sta\r\nte=s", Some("ab"), Some("s"));
        check("http://localhost:1/cb", None, None);
        check("http://[localhost/cb?code=a", None, None);
        check("abc#st", Some("abc"), Some("st"));
        check("?code=a&state=s", Some("a"), Some("s"));
        check("state=s&code=a&code=b", Some("a"), Some("s"));
        check("abc", Some("abc"), None);
        check("  ", None, None);
        check("code=%+f", Some("% f"), None);
        check("code=%zz%e9%", Some("%zz\u{FFFD}%"), None);
        assert_eq!(read("http://h/?error=access_denied").error.as_deref(), Some("access_denied"));
    }
}
