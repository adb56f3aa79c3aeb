//! Incremental parsing of JSON that is still arriving.
//!
//! Models send the arguments of a tool call in chunks of a few characters. Reparsing the whole text for every chunk takes quadratic time;
//! this parser keeps its state between chunks and visits each byte once.
//!
//! Hand-written because `jiter`, which parses unfinished JSON but only from its start, takes 67 ms for a file of 62 KB in chunks of 20
//! bytes; this takes 0.07 ms, and 1.2 ms if the object is requested after each chunk.

use serde_json::{Map, Number, Value};

mod string;
#[cfg(test)]
mod tests;

use string::{StringPiece, StringState};

/// Maximum nesting of containers; the same limit as serde_json's.
const MAX_DEPTH: usize = 127;

/// Parses a JSON object chunk by chunk and provides its value so far.
///
/// Complete members are final, an open string has its text so far, an open number is included once it is valid, and `tr` counts as `true`.
/// A key without a value is omitted. Strings are parsed leniently, as [`super::repair`] repairs them: raw control characters are kept, a
/// backslash that starts no escape is literal, and a lone surrogate is U+FFFD. After the first other error nothing more is parsed, and
/// complete parts stay. Text that is not an object gives `{}`, and text after the object is ignored.
///
/// ```
/// use pinch_stdx::json::partial::PartialJson;
///
/// let mut json = PartialJson::new();
/// json.push(r#"{"path":"src/li"#);
/// assert_eq!(json.object()["path"], "src/li");
/// json.push(r#"b.rs"}"#);
/// assert_eq!(json.object()["path"], "src/lib.rs");
/// ```
#[derive(Debug, Default)]
pub struct PartialJson {
    state: PartialState,
    /// Open containers, outermost first.
    open: Vec<Container>,
    /// The root object, once it is closed.
    done: Map<String, Value>,
}

#[derive(Debug)]
enum Container {
    Object { members: Map<String, Value>, key: Option<String> },
    Array(Vec<Value>),
}

#[derive(Debug, Default)]
enum PartialState {
    /// Only white space so far.
    #[default]
    Start,
    /// After `{`.
    KeyOrEnd,
    /// After `,` in an object.
    Key,
    InKey(StringState),
    /// After a key.
    Colon,
    /// After `:`, or after `,` in an array.
    Value,
    /// After `[`.
    ValueOrEnd,
    InString(StringState),
    InNumber(String),
    InWord {
        word: &'static str,
        n_read: usize,
    },
    /// After a value inside a container.
    AfterValue,
    /// After the root object, or after an error: nothing more is parsed.
    End,
}

impl PartialJson {
    /// Creates a parser without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses more text. Takes time proportional to the chunk, whatever came before.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !matches!(self.state, PartialState::End) {
            rest = self.step(rest);
        }
    }

    /// Returns the object so far. Takes time proportional to its size.
    pub fn object(&self) -> Map<String, Value> {
        let mut inner = self.open_value();
        for container in self.open.iter().rev() {
            inner = Some(match container {
                Container::Object { members, key } => {
                    let mut members = members.clone();
                    if let (Some(key), Some(value)) = (key, inner) {
                        members.insert(key.clone(), value);
                    }
                    Value::Object(members)
                }
                Container::Array(items) => Value::Array(items.iter().cloned().chain(inner).collect()),
            });
        }
        match inner {
            Some(Value::Object(object)) => object,
            _ => self.done.clone(),
        }
    }

    /// Returns the value being parsed, if it can be shown.
    fn open_value(&self) -> Option<Value> {
        match &self.state {
            PartialState::InString(string) => Some(Value::String(string.text.clone())),
            PartialState::InNumber(digits) => number(digits),
            PartialState::InWord { word, .. } => Some(word_value(word)),
            _ => None,
        }
    }

    /// Parses from the start of `text`, which is not empty, and returns the rest.
    fn step<'a>(&mut self, text: &'a str) -> &'a str {
        match &mut self.state {
            PartialState::InKey(string) | PartialState::InString(string) => {
                let (piece, rest) = string.read(text);
                match piece {
                    StringPiece::Open => {}
                    StringPiece::Closed => self.close_string(),
                    StringPiece::Broken => self.state = PartialState::End,
                }
                return rest;
            }
            PartialState::InNumber(digits) => {
                let n_read =
                    text.bytes().take_while(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
                digits.push_str(&text[..n_read]);
                let rest = &text[n_read..];
                if let Some(next) = rest.bytes().next() {
                    let ends = matches!(next, b',' | b']' | b'}') || is_space(next);
                    match number(digits).filter(|_| ends) {
                        Some(value) => self.attach(value),
                        None => self.state = PartialState::End,
                    }
                }
                return rest;
            }
            PartialState::InWord { word, n_read } => {
                let (word, wanted) = (*word, word.as_bytes()[*n_read]);
                if text.as_bytes()[0] != wanted {
                    self.state = PartialState::End;
                    return text;
                }
                *n_read += 1;
                if *n_read == word.len() {
                    self.attach(word_value(word));
                }
                return &text[1..];
            }
            _ => {}
        }
        let text = text.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
        let Some(first) = text.chars().next() else { return text };
        self.structure(first);
        // A character that starts a number belongs to it.
        if matches!(self.state, PartialState::InNumber(_)) { text } else { &text[first.len_utf8()..] }
    }

    /// Processes one character between values.
    fn structure(&mut self, c: char) {
        self.state = match (&self.state, c) {
            (PartialState::Start, '{') => {
                self.open(Container::Object { members: Map::new(), key: None }, PartialState::KeyOrEnd)
            }
            (PartialState::KeyOrEnd | PartialState::Key, '"') => PartialState::InKey(StringState::default()),
            (PartialState::KeyOrEnd | PartialState::Key, '}')
            | (PartialState::ValueOrEnd | PartialState::Value, ']') => return self.close(c),
            (PartialState::Colon, ':') => PartialState::Value,
            (PartialState::Value | PartialState::ValueOrEnd, _) => self.begin_value(c),
            (PartialState::AfterValue, ',') => match self.open.last() {
                Some(Container::Object { .. }) => PartialState::Key,
                _ => PartialState::Value,
            },
            (PartialState::AfterValue, '}' | ']') => return self.close(c),
            _ => PartialState::End,
        };
    }

    fn begin_value(&mut self, c: char) -> PartialState {
        match c {
            '"' => PartialState::InString(StringState::default()),
            '{' => self.open(Container::Object { members: Map::new(), key: None }, PartialState::KeyOrEnd),
            '[' => self.open(Container::Array(Vec::new()), PartialState::ValueOrEnd),
            '-' | '0'..='9' => PartialState::InNumber(String::new()),
            't' => PartialState::InWord { word: "true", n_read: 1 },
            'f' => PartialState::InWord { word: "false", n_read: 1 },
            'n' => PartialState::InWord { word: "null", n_read: 1 },
            _ => PartialState::End,
        }
    }

    fn open(&mut self, container: Container, then: PartialState) -> PartialState {
        if self.open.len() >= MAX_DEPTH {
            return PartialState::End;
        }
        self.open.push(container);
        then
    }

    /// Closes the innermost container if `c` is its bracket.
    fn close(&mut self, c: char) {
        let fits =
            matches!((self.open.last(), c), (Some(Container::Object { .. }), '}') | (Some(Container::Array(_)), ']'));
        self.state = PartialState::End;
        if !fits {
            return;
        }
        match self.open.pop() {
            Some(Container::Object { members, .. }) if self.open.is_empty() => self.done = members,
            Some(Container::Object { members, .. }) => self.attach(Value::Object(members)),
            Some(Container::Array(items)) => self.attach(Value::Array(items)),
            None => {}
        }
    }

    /// Adds a complete value to the innermost container.
    fn attach(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Container::Object { members, key }) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
            Some(Container::Array(items)) => items.push(value),
            None => {}
        }
        self.state = PartialState::AfterValue;
    }

    fn close_string(&mut self) {
        match std::mem::replace(&mut self.state, PartialState::Colon) {
            PartialState::InString(string) => self.attach(Value::String(string.text)),
            PartialState::InKey(string) => {
                if let Some(Container::Object { key, .. }) = self.open.last_mut() {
                    *key = Some(string.text);
                }
            }
            _ => {}
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Parses a number, ignoring an unfinished exponent; returns `None` for text that is not a number (yet).
fn number(digits: &str) -> Option<Value> {
    let parse = |digits: &str| serde_json::from_str::<Number>(digits).ok().map(Value::Number);
    parse(digits).or_else(|| {
        let (mantissa, exponent) = digits.rsplit_once(['e', 'E'])?;
        let value = parse(mantissa)?;
        // A complete exponent too large for a float: JavaScript parses infinity, and writes null.
        let is_whole = exponent.ends_with(|c: char| c.is_ascii_digit());
        Some(if is_whole { Value::Null } else { value })
    })
}

/// Returns the value of a word, complete or not.
fn word_value(word: &str) -> Value {
    match word {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => Value::Null,
    }
}
