//! What people paste: a code, a code with its state, or the whole address at which the browser ended.

/// A pasted code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    /// The code.
    pub code: Option<String>,
    /// The state that came with it.
    pub state: Option<String>,
    /// The server's reason when there is no code.
    pub error: Option<String>,
}

/// Reads what was pasted.
pub fn read(text: &str) -> Pasted {
    let text = text.trim();
    if text.is_empty() {
        return Pasted::default();
    }
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()));
    if is_url {
        let query = text.split_once('?').map_or("", |(_, query)| query);
        return from_query(query.split('#').next().unwrap_or(""));
    }
    if let Some((code, state)) = text.split_once('#') {
        return Pasted { code: non_empty(code), state: non_empty(state), error: None };
    }
    if text.contains("code=") {
        return from_query(text.trim_start_matches('?'));
    }
    Pasted { code: Some(text.to_owned()), ..Pasted::default() }
}

/// Reads the query of the address at which a browser ended.
pub(super) fn from_query(query: &str) -> Pasted {
    let mut pasted = Pasted::default();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let field = match name {
            "code" => &mut pasted.code,
            "state" => &mut pasted.state,
            "error" => &mut pasted.error,
            _ => continue,
        };
        if field.is_none() {
            *field = non_empty(&decoded(value));
        }
    }
    pasted
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        match (first, hex) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(first),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
    fn all_that_people_paste() {
        check(" http://localhost:1/cb?code=a%2Bb+c&state=s&x=1#frag ", Some("a+b c"), Some("s"));
        check("http://localhost:1/cb", None, None);
        check("abc#st", Some("abc"), Some("st"));
        check("?code=a&state=s", Some("a"), Some("s"));
        check("state=s&code=a&code=b", Some("a"), Some("s"));
        check("abc", Some("abc"), None);
        check("  ", None, None);
        check("code=%zz%e9%", Some("%zz\u{FFFD}%"), None);
        assert_eq!(read("http://h/?error=access_denied").error.as_deref(), Some("access_denied"));
    }
}
