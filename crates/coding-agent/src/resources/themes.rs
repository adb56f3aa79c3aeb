//! Themes: named colors from JSON files, and two built-in themes.

use std::collections::BTreeMap;
use std::path::Path;

use pinch_stdx::json::{jsonc, lossy};
use serde_json::{Map, Value};

use super::info::{Diagnostic, SourceInfo};
use super::text_file;

mod builtin;

/// The colors that every theme has.
pub const COLORS: [&str; 51] = [
    "accent",
    "border",
    "borderAccent",
    "borderMuted",
    "success",
    "error",
    "warning",
    "muted",
    "dim",
    "text",
    "thinkingText",
    "selectedBg",
    "userMessageBg",
    "userMessageText",
    "customMessageBg",
    "customMessageText",
    "customMessageLabel",
    "toolPendingBg",
    "toolSuccessBg",
    "toolErrorBg",
    "toolTitle",
    "toolOutput",
    "mdHeading",
    "mdLink",
    "mdLinkUrl",
    "mdCode",
    "mdCodeBlock",
    "mdCodeBlockBorder",
    "mdQuote",
    "mdQuoteBorder",
    "mdHr",
    "mdListBullet",
    "toolDiffAdded",
    "toolDiffRemoved",
    "toolDiffContext",
    "syntaxComment",
    "syntaxKeyword",
    "syntaxFunction",
    "syntaxVariable",
    "syntaxString",
    "syntaxNumber",
    "syntaxType",
    "syntaxOperator",
    "syntaxPunctuation",
    "thinkingOff",
    "thinkingMinimal",
    "thinkingLow",
    "thinkingMedium",
    "thinkingHigh",
    "thinkingXhigh",
    "bashMode",
];

/// The optional colors for exported pages.
pub const EXPORT_COLORS: [&str; 3] = ["pageBg", "cardBg", "infoBg"];

/// A color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// The terminal's default.
    Default,
    /// One of the 256 terminal colors.
    Index(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// A theme.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// Its colors: all of [`COLORS`], and additional ones from its file.
    pub colors: BTreeMap<String, Color>,
    /// Colors for exported pages, if any.
    pub export: BTreeMap<String, Color>,
    /// Where it comes from.
    pub info: SourceInfo,
}

impl Theme {
    /// Returns the built-in themes: `dark` and `light`.
    pub fn builtin() -> Vec<Self> {
        [("dark", builtin::DARK), ("light", builtin::LIGHT)]
            .into_iter()
            .filter_map(|(name, text)| {
                let info = SourceInfo { path: name.into(), source: "builtin".into(), ..SourceInfo::default() };
                Self::parse(text).ok().map(|theme| Self { info, ..theme })
            })
            .collect()
    }

    /// Parses a theme.
    ///
    /// # Errors
    /// All problems, a sentence each.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let text = jsonc::to_json(lossy::without_bom(text));
        let root: Value = lossy::from_str(&text).map_err(|error| vec![format!("is not valid JSON: {error}")])?;
        let Some(root) = root.as_object() else { return Err(vec!["must be a JSON object".to_owned()]) };
        let mut reader = ThemeReader { vars: root.get("vars").and_then(Value::as_object), errors: Vec::new() };
        reader.expect_object(root, "vars", false);
        reader.expect_object(root, "export", false);
        reader.expect_object(root, "colors", true);
        let name = root.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if name.is_empty() {
            reader.errors.push("name: must be a non-empty string".to_owned());
        }
        for name in reader.vars.into_iter().flat_map(Map::keys) {
            // An unused variable must be a color as well.
            reader.color(&format!("vars.{name}"), &Value::String(name.clone()));
        }
        let colors = reader.colors(root, "colors");
        let missing: Vec<&str> = match root.get("colors").is_some_and(Value::is_object) {
            true => COLORS.into_iter().filter(|name| root["colors"].get(name).is_none()).collect(),
            false => Vec::new(),
        };
        if !missing.is_empty() {
            reader.errors.push(format!("colors: missing {}", missing.join(", ")));
        }
        let export = reader.colors(root, "export");
        if reader.errors.is_empty() {
            Ok(Self { name, colors, export, info: SourceInfo::default() })
        } else {
            Err(reader.errors)
        }
    }

    /// Reads a theme file.
    ///
    /// # Errors
    /// Lists all problems.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let failed = |why: String| Diagnostic::warning(path, why);
        let text = text_file::read(path).map_err(failed)?;
        let theme = Self::parse(&text);
        theme.map_err(|errors| failed(format!("is not a theme: {}", errors.join("; "))))
    }
}

/// Parses colors and collects problems.
struct ThemeReader<'a> {
    vars: Option<&'a Map<String, Value>>,
    errors: Vec<String>,
}

impl ThemeReader<'_> {
    fn expect_object(&mut self, root: &Map<String, Value>, name: &str, required: bool) {
        if root.get(name).map_or(required, |value| !value.is_object()) {
            self.errors.push(format!("{name}: must be an object"));
        }
    }

    fn colors(&mut self, root: &Map<String, Value>, section: &str) -> BTreeMap<String, Color> {
        let members = root.get(section).and_then(Value::as_object).into_iter().flatten();
        let read =
            |(name, value): (&String, &Value)| Some((name.clone(), self.color(&format!("{section}.{name}"), value)?));
        members.filter_map(read).collect()
    }

    /// Parses a color, resolving variables recursively.
    fn color(&mut self, at: &str, value: &Value) -> Option<Color> {
        let mut value = value;
        let n_vars = self.vars.map_or(0, Map::len);
        for _ in 0..=n_vars {
            match direct(value) {
                Some(color) => return Some(color),
                None => {
                    let name = value.as_str();
                    match name.and_then(|name| self.vars?.get(name)) {
                        Some(next) => value = next,
                        None => {
                            self.errors.push(match name {
                                Some(name) if !name.starts_with('#') => format!("{at}: unknown variable {name}"),
                                _ => {
                                    format!(
                                        "{at}: must be #rrggbb, 0 to 255, a variable or an empty string, not {value}"
                                    )
                                }
                            });
                            return None;
                        }
                    }
                }
            }
        }
        self.errors.push(format!("{at}: its variables refer to each other in a cycle"));
        None
    }
}

/// Parses a color that is not a variable.
fn direct(value: &Value) -> Option<Color> {
    if let Some(index) = value.as_u64() {
        return u8::try_from(index).ok().map(Color::Index);
    }
    let text = value.as_str()?;
    if text.is_empty() {
        return Some(Color::Default);
    }
    let digits = text
        .strip_prefix('#')
        .filter(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(Color::Rgb(red, green, blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn built_in_themes_are_complete() {
        let themes = Theme::builtin();
        assert_eq!(themes.iter().map(|theme| theme.name.as_str()).collect::<Vec<_>>(), ["dark", "light"]);
        assert!(themes.iter().all(|theme| theme.colors.len() == COLORS.len() && theme.export.len() == 3));
    }

    #[test]
    fn all_problems_are_reported_together() {
        let mut colors: Map<String, Value> = COLORS.map(|name| (name.to_owned(), json!(""))).into_iter().collect();
        let text =
            |colors: &Map<String, Value>, vars: Value| json!({"name": "t", "vars": vars, "colors": colors}).to_string();
        colors.insert("accent".into(), json!("a"));
        colors.insert("dim".into(), json!(255));
        let theme = Theme::parse(&text(&colors, json!({"a": "b", "b": "#0aFF10"}))).unwrap();
        assert_eq!((theme.colors["accent"], theme.colors["dim"]), (Color::Rgb(10, 255, 16), Color::Index(255)));
        colors.shift_remove("text");
        colors.insert("dim".into(), json!(256));
        colors.insert("error".into(), json!("c"));
        colors.insert("muted".into(), json!("none"));
        let errors = Theme::parse(&text(&colors, json!({"a": "#12345", "c": "d", "d": "c"}))).unwrap_err();
        assert_eq!(
            errors,
            [
                "vars.a: must be #rrggbb, 0 to 255, a variable or an empty string, not \"#12345\"",
                "vars.c: its variables refer to each other in a cycle",
                "vars.d: its variables refer to each other in a cycle",
                "colors.accent: must be #rrggbb, 0 to 255, a variable or an empty string, not \"#12345\"",
                "colors.error: its variables refer to each other in a cycle",
                "colors.muted: unknown variable none",
                "colors.dim: must be #rrggbb, 0 to 255, a variable or an empty string, not 256",
                "colors: missing text",
            ]
        );
        assert_eq!(Theme::parse("[]").unwrap_err(), ["must be a JSON object"]);
        assert_eq!(Theme::parse("{\"vars\": 1}").unwrap_err().len(), 3);
    }
}
