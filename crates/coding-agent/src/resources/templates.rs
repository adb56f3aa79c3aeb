//! Prompt templates: `/name arguments` expands to the text of a file with the arguments inserted.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::collect::ListedFile;
use super::frontmatter;
use super::info::SourceInfo;
use super::text_file;

/// Maximum characters of a description derived from the text.
const MAX_DESCRIPTION: usize = 60;

/// A prompt template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    /// The name after the slash.
    pub name: String,
    /// A description.
    pub description: String,
    /// A hint about its arguments, for people.
    pub argument_hint: Option<String>,
    /// The text with placeholders for arguments.
    pub content: String,
    /// The file.
    pub path: PathBuf,
    /// Where it comes from.
    pub info: SourceInfo,
}

impl Template {
    /// Parses a template's text.
    ///
    /// # Errors
    /// Fails if its front matter is not valid YAML.
    pub fn parse(name: &str, text: &str, path: &Path) -> Result<Self, String> {
        let document = frontmatter::parse(text)?;
        let member = |key: &str| document.head.get(key).and_then(Value::as_str).map(str::to_owned);
        let description = member("description").filter(|text| !text.is_empty());
        Ok(Self {
            name: name.to_owned(),
            description: description.unwrap_or_else(|| first_line(&document.body)),
            argument_hint: member("argument-hint"),
            content: document.body,
            path: path.to_owned(),
            info: SourceInfo::default(),
        })
    }

    /// Reads a template file. Returns `None` if the path is not a file.
    ///
    /// # Errors
    /// Describes why it cannot be used.
    pub fn read(file: &ListedFile) -> Result<Option<Self>, String> {
        let path = file.path.as_path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { return Ok(None) };
        match text_file::read_listed(file) {
            Ok(text) => Self::parse(name, &text, path).map(Some),
            Err(_) if path.exists() && !path.is_file() => Ok(None),
            Err(why) => Err(why),
        }
    }
}

/// Returns the first non-empty line, shortened.
fn first_line(body: &str) -> String {
    let line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_DESCRIPTION) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

/// Templates by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates(Vec<Template>);

/// The first of several with the same name wins.
impl FromIterator<Template> for Templates {
    fn from_iter<I: IntoIterator<Item = Template>>(templates: I) -> Self {
        let mut kept = Self::default();
        for template in templates {
            let _is_new = kept.add(template).is_ok();
        }
        kept
    }
}

impl Templates {
    /// Adds a template, unless its name is taken.
    ///
    /// # Errors
    /// Returns the existing template with this name.
    pub fn add(&mut self, template: Template) -> Result<(), &Template> {
        match self.0.iter().position(|first| first.name == template.name) {
            Some(at) => Err(&self.0[at]),
            None => {
                self.0.push(template);
                Ok(())
            }
        }
    }

    /// Returns the template with a name.
    pub fn get(&self, name: &str) -> Option<&Template> {
        self.0.iter().find(|template| template.name == name)
    }

    /// Returns all templates in order.
    pub fn iter(&self) -> impl Iterator<Item = &Template> {
        self.0.iter()
    }

    /// Expands `/name arguments` to the template's text; any other text is returned unchanged.
    pub fn expand<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(command) = text.strip_prefix('/') else { return text.into() };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match self.get(name) {
            Some(template) => substitute(&template.content, &arguments(rest)).into(),
            None => text.into(),
        }
    }
}

/// Returns whether a character separates arguments: whitespace as in JavaScript.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Splits arguments at whitespace. A quote at the start of an argument groups its content, even if empty; `\"` inside quotes is a literal
/// quote; an unclosed quote extends to the end.
pub fn arguments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while let Some(first) = rest.chars().next() {
        if first == '"' || first == '\'' {
            let (argument, behind) = quoted(&rest[1..], first);
            found.push(argument);
            rest = behind;
        } else {
            let end = rest.find(is_blank).unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches(is_blank);
    }
    found
}

/// Returns a quoted argument with the text up to the next whitespace, and the rest.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut argument = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && text[at + 1..].starts_with(quote) {
            argument.push(quote);
            chars.next();
        } else if c == quote {
            let rest = &text[at + c.len_utf8()..];
            let end = rest.find(is_blank).unwrap_or(rest.len());
            argument.push_str(&rest[..end]);
            return (argument, &rest[end..]);
        } else {
            argument.push(c);
        }
    }
    (argument, "")
}

/// Inserts arguments into a text: `$1`, `$@`, `$ARGUMENTS`, `${1:-default}`, `${@:-default}`, `${@:2}` and `${@:2:3}`. Makes a single pass:
/// placeholders in arguments are not expanded.
pub fn substitute(content: &str, arguments: &[String]) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let place = &rest[at + 1..];
        match replaced(place, arguments) {
            Some((value, len)) => {
                text.push_str(&value);
                rest = &place[len..];
            }
            None => {
                text.push('$');
                rest = place;
            }
        }
    }
    text + rest
}

/// Returns the value and length of a placeholder after a dollar sign, or `None` if it is not one.
fn replaced(place: &str, arguments: &[String]) -> Option<(String, usize)> {
    let all = || arguments.join(" ");
    if let Some(inside) = place.strip_prefix('{') {
        let end = inside.find('}')?;
        return Some((in_braces(&inside[..end], arguments)?, end + 2));
    }
    if place.starts_with('@') {
        return Some((all(), 1));
    }
    if place.starts_with("ARGUMENTS") {
        return Some((all(), "ARGUMENTS".len()));
    }
    let n_digits = place.bytes().take_while(u8::is_ascii_digit).count();
    (n_digits > 0).then(|| (argument(&place[..n_digits], arguments).unwrap_or_default().to_owned(), n_digits))
}

/// Returns an argument by number, starting at 1.
fn argument<'a>(digits: &str, arguments: &'a [String]) -> Option<&'a str> {
    let number: usize = digits.parse().ok()?;
    arguments.get(number.checked_sub(1)?).map(String::as_str)
}

fn in_braces(inside: &str, arguments: &[String]) -> Option<String> {
    let (name, option) = inside.split_once(':')?;
    if let Some(default) = option.strip_prefix('-') {
        let value = match name {
            "@" => arguments.join(" "),
            digits if is_number(digits) => argument(digits, arguments).unwrap_or_default().to_owned(),
            _ => return None,
        };
        return Some(if value.is_empty() { default.to_owned() } else { value });
    }
    if name != "@" {
        return None;
    }
    let (from, n) = match option.split_once(':') {
        Some((from, n)) if is_number(n) => (from, n.parse().unwrap_or(usize::MAX)),
        Some(_) => return None,
        None => (option, usize::MAX),
    };
    let from: usize = Some(from).filter(|from| is_number(from))?.parse().unwrap_or(usize::MAX);
    let taken = arguments.iter().skip(from.saturating_sub(1)).take(n);
    Some(taken.map(String::as_str).collect::<Vec<_>>().join(" "))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, given: &str, expected: &str) {
        assert_eq!(substitute(content, &arguments(given)), expected);
    }

    #[test]
    fn arguments_are_inserted() {
        check("$1-$2|$3|$0", "a 'b c'", "a-b c||");
        check("$@ and $ARGUMENTS", "a \"\" b", "a  b and a  b");
        check("${@:2} ${@:2:1} ${@:0}", "a b c", "b c b a b c");
        check("${1:-x} ${2:-y} ${@:-z}", "a", "a y a");
        check("${@:-z} ${HOME} $", "", "z ${HOME} $");
        check("$1", "\"a \\\" b\"c", "a \" bc");
        check("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS");
        check("$99999999999999999999999", "a", "");
        check("$1|$2|$3|$4", "a\nb\u{a0}\"c\nd\"\r\n e", "a|b|c\nd|e");
    }

    #[test]
    fn only_known_names_are_expanded() {
        let fix = Template::parse("fix", "---\nargument-hint: <what>\n---\nFix $1", Path::new("fix.md")).unwrap();
        assert_eq!((fix.description.as_str(), fix.argument_hint.as_deref()), ("Fix $1", Some("<what>")));
        let again = Template { path: "other/fix.md".into(), ..fix.clone() };
        let mut templates = Templates::default();
        assert_eq!(templates.add(fix.clone()), Ok(()));
        assert_eq!(templates.add(again), Err(&fix));
        assert_eq!(templates.expand("/fix it now"), "Fix it");
        assert_eq!(templates.expand("/fix\nit"), "Fix it");
        assert_eq!(templates.expand("/fixed it"), "/fixed it");
        assert_eq!(templates.expand("fix it"), "fix it");
    }
}
