//! Links on the screen (OSC 8). The style of a text contains the number of its URL, encoded in the otherwise unused underline colour.
//! Widths, wrapping and comparisons of rows are thus unaffected by links, and only the code that writes rows to the terminal looks up URLs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use ratatui_core::style::{Color, Style};

/// Maximum length of a URL accepted by terminals and browsers, in bytes.
const MAX_URL: usize = 2083;
/// Maximum total size of all URLs, in bytes; further links are shown with their URLs.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A table of URLs, shared by the code that lays out text and the code that writes it to the terminal.
#[derive(Clone, Debug, Default)]
pub struct Hyperlinks(Arc<Mutex<LinkTable>>);

#[derive(Debug, Default)]
struct LinkTable {
    urls: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    n_bytes: usize,
}

/// Two tables are equal if they are the same.
impl PartialEq for Hyperlinks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Hyperlinks {}

impl Hyperlinks {
    /// Turns a style into that of a link; `None` if the URL is not allowed for terminals, or there are too many.
    pub fn link(&self, url: &str, style: Style) -> Option<Style> {
        let url = clean_url(url)?;
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match table.numbers.get(&*url) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(table.urls.len()).ok().filter(|number| *number < 1 << 24)?;
                if table.n_bytes + url.len() > MAX_BYTES {
                    return None;
                }
                table.n_bytes += url.len();
                let url: Arc<str> = url.into();
                table.urls.push(Arc::clone(&url));
                table.numbers.insert(url, number);
                number
            }
        };
        let [_, red, green, blue] = number.to_be_bytes();
        Some(style.underline_color(Color::Rgb(red, green, blue)))
    }

    /// Returns the number and URL of the link that a style belongs to.
    pub(crate) fn of(&self, style: Style) -> Option<(u32, Arc<str>)> {
        let Some(Color::Rgb(red, green, blue)) = style.underline_color else { return None };
        let number = u32::from_be_bytes([0, red, green, blue]);
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let url = table.urls.get(usize::try_from(number).ok()?)?;
        Some((number, Arc::clone(url)))
    }
}

/// Returns a URL that is safe for terminals: of a web page, a mailbox or a local file, in printable ASCII.
fn clean_url(url: &str) -> Option<String> {
    let url = url.trim_matches(' ');
    let (scheme, rest) = url.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let is_allowed = match scheme.as_str() {
        "http" | "https" => {
            rest.strip_prefix("//").is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['))
        }
        "mailto" => rest.contains('@'),
        // A file URL with a host would request the file from another computer.
        "file" => rest.starts_with("///") || rest.starts_with("//localhost/"),
        _ => false,
    };
    if !is_allowed || url.len() > MAX_URL || url.chars().any(char::is_control) {
        return None;
    }
    let mut clean = format!("{scheme}:");
    append_encoded(&mut clean, rest, &[]);
    (clean.len() <= MAX_URL).then_some(clean)
}

/// Appends a text with everything but printable ASCII percent-encoded, and also the bytes in `more`.
fn append_encoded(to: &mut String, text: &str, more: &[u8]) {
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if !more.contains(&byte) => to.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => write!(to, "%{byte:02X}").unwrap_or_default(),
        }
    }
}

/// Returns the URL of a file; a relative path is resolved against a directory. `None`: there is no URL for it.
pub(crate) fn file_url(path: &Path, below: &Path) -> Option<String> {
    let mut url = "file://".to_owned();
    for part in below.join(path).components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => {
                url.push('/');
                append_encoded(&mut url, name.to_str()?, b"%?#;");
            }
            Component::CurDir => {}
            // The target of a parent component is unknown here.
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_urls_are_printable() {
        for (url, expected) in [
            ("https://a.b/c?d=e#f", Some("https://a.b/c?d=e#f")),
            ("HTTP://A.b", Some("http://A.b")),
            ("http://[::1]:80/", Some("http://[::1]:80/")),
            ("https://a.b/日 本", Some("https://a.b/%E6%97%A5%20%E6%9C%AC")),
            ("mailto:a@b.c", Some("mailto:a@b.c")),
            ("file:///etc/hosts", Some("file:///etc/hosts")),
            ("file://server/share", None),
            ("file:relative", None),
            ("mailto:nobody", None),
            ("https:/a.b", None),
            ("https://", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("vscode://a", None),
            ("src/main.rs", None),
            ("", None),
            ("https://a.b/\u{1b}]0;x\u{7}", None),
            ("https://a.b/\u{9c}", None),
            ("https://a.b/\n", None),
        ] {
            assert_eq!(clean_url(url).as_deref(), expected, "{url:?}");
        }
        let long = |n: usize| format!("https://a.b/{}", "x".repeat(n));
        assert!(clean_url(&long(MAX_URL - 12)).is_some() && clean_url(&long(MAX_URL - 11)).is_none());
        assert!(clean_url(&format!("https://a.b/{}", "é".repeat(500))).is_none(), "it is too long when encoded");
    }

    #[test]
    fn files_have_urls() {
        for (path, expected) in [
            ("src/a b.rs", Some("file:///work/src/a%20b.rs")),
            ("/etc/50%?#", Some("file:///etc/50%25%3F%23")),
            ("./x", Some("file:///work/x")),
            ("../x", None),
        ] {
            let url = file_url(Path::new(path), Path::new("/work"));
            assert_eq!(url.as_deref(), expected, "{path}");
            assert!(url.is_none_or(|url| clean_url(&url).is_some()));
        }
    }

    #[test]
    fn equal_urls_have_equal_numbers_and_their_total_size_is_bounded() {
        let links = Hyperlinks::default();
        let style = links.link("https://a.b", Style::new()).unwrap();
        links.link("https://a.c", Style::new()).unwrap();
        assert_eq!(links.link("https://a.b", Style::new()), Some(style));
        assert_eq!(links.of(style).unwrap(), (0, "https://a.b".into()));
        assert_eq!(links.of(Style::new()), None);
        assert_eq!(Hyperlinks::default().of(style), None);
        let long = |n: usize| format!("https://a.b/{n}{}", "x".repeat(2_000));
        assert!((0..10_000).any(|n| links.link(&long(n), Style::new()).is_none()));
        assert!(links.0.lock().unwrap().n_bytes <= MAX_BYTES);
    }
}
