//! A simple conversion of pages to Markdown, for pages without an extractable article.

/// A page as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainPage {
    /// The text: headings, links and lists are marked up, everything else is plain.
    pub text: String,
    /// The title.
    pub title: Option<String>,
}

/// An element whose content is converted when it ends.
struct OpenElement {
    name: String,
    href: String,
    from: usize,
}

/// Elements dropped with their content.
const DROPPED: [&str; 3] = ["script", "style", "noscript"];
/// Elements that end with a line break.
const BLOCKS: [&str; 10] = ["p", "div", "section", "article", "header", "footer", "table", "tr", "ul", "ol"];
/// Maximum number of open elements; deeper ones become plain text.
const MAX_OPEN: usize = 256;

/// Converts a page.
pub fn to_markdown(html: &str) -> PlainPage {
    let mut page = PlainPage::default();
    let mut out = String::with_capacity(html.len() / 2);
    let mut open: Vec<OpenElement> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&decode_entities(&rest[..at]));
        rest = &rest[at..];
        let Some((tag, after)) = next_tag(rest) else {
            out.push('<');
            rest = &rest[1..];
            continue;
        };
        rest = after;
        if DROPPED.contains(&tag.name.as_str()) && !tag.is_end {
            rest = after_element(rest, &tag.name);
        } else if tag.is_end {
            end_element(&tag.name, &mut open, &mut out, &mut page);
        } else if matches!(tag.name.as_str(), "br" | "hr") {
            out.push('\n');
        } else if is_marked(&tag.name) && open.len() < MAX_OPEN {
            open.push(OpenElement { name: tag.name, href: tag.href, from: out.len() });
        }
    }
    out.push_str(&decode_entities(rest));
    page.text = normal(&out);
    page
}

fn is_heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn is_marked(name: &str) -> bool {
    matches!(name, "a" | "li" | "title") || is_heading(name).is_some()
}

/// Converts the content of an element that ends here.
fn end_element(name: &str, open: &mut Vec<OpenElement>, out: &mut String, page: &mut PlainPage) {
    if BLOCKS.contains(&name) {
        out.push('\n');
    }
    let Some(at) = open.iter().rposition(|element| element.name == name) else { return };
    let element = open.swap_remove(at);
    // Unclosed inner elements become plain text.
    open.truncate(at);
    let label = normal(&out[element.from..]);
    let marked = match name {
        "title" => {
            page.title.get_or_insert_with(|| label.clone());
            return;
        }
        "a" if element.href.is_empty() => return,
        "a" if label.is_empty() => element.href,
        "a" => format!("[{label}]({})", element.href),
        "li" if label.is_empty() => String::new(),
        "li" => format!("\n- {label}"),
        name => format!("\n{} {label}\n", "#".repeat(is_heading(name).unwrap_or(1))),
    };
    out.truncate(element.from);
    out.push_str(&marked);
}

struct HtmlTag {
    name: String,
    href: String,
    is_end: bool,
}

/// Returns the tag at the start of a text, and the text after it. A comment is a tag without a name.
fn next_tag(text: &str) -> Option<(HtmlTag, &str)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        let after = comment.find("-->").map_or("", |at| &comment[at + 3..]);
        return Some((HtmlTag { name: String::new(), href: String::new(), is_end: false }, after));
    }
    let inner = &text[1..];
    let is_tag = inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
    let end = inner.find('>').filter(|_| is_tag)?;
    let (body, after) = (&inner[..end], &inner[end + 1..]);
    let (is_end, body) = body.strip_prefix('/').map_or((false, body), |body| (true, body));
    let name: String = body.chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let href = if name == "a" { attribute(body, "href") } else { String::new() };
    Some((HtmlTag { name, href, is_end }, after))
}

/// Returns the value of a quoted attribute, or an empty string.
fn attribute(body: &str, name: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let found = lower.match_indices(name).find_map(|(at, _)| {
        let is_word = lower[..at].ends_with(|c: char| c.is_ascii_whitespace());
        let value = body[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| is_word && matches!(c, '"' | '\''))?;
        value[1..].split_once(quote).map(|(value, _)| decode_entities(value))
    });
    found.unwrap_or_default()
}

/// Returns the text after a dropped element; empty if it is not closed.
fn after_element<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let after = &rest[at + 2..];
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after.find('>').map_or("", |end| &after[end + 1..]);
        }
        rest = after;
    }
    ""
}

/// Maximum length of an entity to decode.
const MAX_ENTITY: usize = 10;

/// Decodes the HTML entities of a text: the most common names, and numbers. Unknown ones stay.
pub fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(MAX_ENTITY).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    let code = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        },
        None => None,
    };
    if let Some(code) = code {
        return char::from_u32(code);
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "nbsp" => ' ',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "lt" => '<',
        "gt" => '>',
        _ => return None,
    })
}

/// Normalizes whitespace: no trailing spaces, one between words, and at most one empty line.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut n_breaks = 0;
    for c in text.chars() {
        match c {
            '\r' => {}
            '\n' => {
                out.truncate(out.trim_end_matches([' ', '\t']).len());
                n_breaks += 1;
                if n_breaks <= 2 {
                    out.push('\n');
                }
            }
            ' ' | '\t' if out.ends_with([' ', '\t']) => {
                out.pop();
                out.push(' ');
            }
            c => {
                if !matches!(c, ' ' | '\t') {
                    n_breaks = 0;
                }
                out.push(c);
            }
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, expect: &str) {
        assert_eq!(to_markdown(html).text, expect, "{html}");
    }

    #[test]
    fn hostile_pages_become_text() {
        check("a < b &amp;&lt;&unknown; &#x41;&#66; &#xffffffff;", "a < b &<&unknown; AB &#xffffffff;");
        check("<script>var a = '</p>';</SCRIPT>x<style>", "x");
        check("<a href='x'>one<a href=\"y\"><b>two</b></a>", "one[two](y)");
        check("<h2>A</h3>B", "AB");
        check("<li>a<li>b</li>", "a\n- b");
        check("<!-- <p> --><p title='>'>x", "'>x");
        check("<a data-href='n' href = 'z'>q</a>", "[q](z)");
        check("x<", "x<");
        let deep = "<a href='x'>".repeat(100_000) + &"</a>".repeat(100_000);
        assert!(to_markdown(&deep).text.len() < 100_000);
        check(&"\n \n".repeat(50_000), "");
    }
}
