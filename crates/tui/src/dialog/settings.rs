//! A dialog to change settings.

use serde_json::{Value, json};

use super::{DialogCx, DialogEvent, DialogView, framed, hint, room};
use crate::Row;
use crate::effect::{DialogName, Effect};
use crate::key::{KeyCode, KeyPress};
use crate::keymap::KeyAction;
use crate::text::{truncate, wrap};
use crate::theme::ColorRole;
use crate::widget::{PickItem, Picker, PickerEvent};

/// Maximum number of settings shown at a time.
const HEIGHT: usize = 10;
/// Minimum rows of the list on low screens, before the description is shortened: the search, three settings and their number.
const MIN_ROWS: usize = 5;

/// Input for the dialog.
#[derive(Clone, Debug)]
pub(crate) struct SettingsFacts {
    /// Values of the settings, by key.
    pub(crate) values: serde_json::Map<String, Value>,
    pub(crate) theme: String,
    pub(crate) thinking: String,
    /// Whether the terminal can show images.
    pub(crate) images: bool,
}

/// A setting that can be changed in the dialog.
struct Setting {
    key: &'static str,
    label: &'static str,
    about: &'static str,
    /// Possible values: display text, and the stored value.
    values: Vec<(String, Value)>,
}

fn flag(key: &'static str, label: &'static str, about: &'static str) -> Setting {
    let values = vec![("on".to_owned(), json!(true)), ("off".to_owned(), json!(false))];
    Setting { key, label, about, values }
}

fn words(key: &'static str, label: &'static str, about: &'static str, values: &[&str]) -> Setting {
    let values = values.iter().map(|word| ((*word).to_owned(), json!(word))).collect();
    Setting { key, label, about, values }
}

fn numbers(key: &'static str, label: &'static str, about: &'static str, values: &[u64]) -> Setting {
    let values = values.iter().map(|number| (number.to_string(), json!(number))).collect();
    Setting { key, label, about, values }
}

fn table() -> Vec<Setting> {
    let queue = ["one-at-a-time", "all"];
    vec![
        flag("compaction.enabled", "Auto-compact", "Summarize the conversation when the context window is nearly full"),
        flag("images.autoResize", "Auto-resize images", "Scale large images down before they are sent"),
        flag("images.blockImages", "Block images", "Never send images to a model"),
        flag("enableSkillCommands", "Skill commands", "Offer skills as /skill:name"),
        flag("showHardwareCursor", "Show hardware cursor", "Show the terminal's own cursor"),
        numbers("editorPaddingX", "Editor padding", "Columns left and right of the editor", &[0, 1, 2, 3]),
        flag("editor.historyFile", "Prompt history", "Keep prompts for the up key in later sessions of the project"),
        flag("editorViKeys", "Vi keys", "Edit the prompt with vi keys"),
        numbers("autocompleteMaxVisible", "Autocomplete items", "Suggestions shown at a time", &[3, 5, 7, 10, 15, 20]),
        flag(
            "terminal.showTerminalProgress",
            "Terminal progress",
            "Report progress to the terminal while a run is active",
        ),
        words(
            "terminal.notify",
            "Notifications",
            "How the terminal notifies you while its window is in the background",
            &["auto", "off", "bell", "osc9", "osc777"],
        ),
        words(
            "terminal.hyperlinks",
            "Links",
            "Whether links can be clicked; auto: in terminals that are known to have them",
            &["auto", "on", "off"],
        ),
        words("steeringMode", "Steering mode", "How many queued steering messages are sent at a time", &queue),
        words("followUpMode", "Follow-up mode", "How many queued follow-ups are sent at a time", &queue),
        words("transport", "Transport", "Transport for providers that support several", &["auto", "sse", "websocket"]),
        flag("hideThinkingBlock", "Hide thinking", "Show one line in place of the model's thinking"),
        words(
            "tuiMode",
            "Screen mode",
            "Whether the terminal keeps the scrollback, or pinch does",
            &["regular", "fullscreen"],
        ),
        flag("quietStartup", "Quiet startup", "Start without the header and the list of resources"),
        words(
            "doubleEscapeAction",
            "Double escape",
            "What pressing escape twice does in an empty editor",
            &["tree", "fork", "none"],
        ),
        words(
            "treeFilterMode",
            "Tree filter",
            "Which entries the session tree shows at first",
            &["default", "no-tools", "user-only", "labeled-only", "all"],
        ),
        flag("branchSummary.skipPrompt", "Skip branch summary", "Go to other branches without asking for a summary"),
    ]
}

/// Returns the settings for terminals that can show images.
fn image_table() -> Vec<Setting> {
    vec![
        flag("terminal.showImages", "Show images", "Show images of tools and messages in the terminal"),
        numbers("terminal.imageWidthCells", "Image width", "Maximum width of an image, in columns", &[60, 80, 120]),
        words(
            "terminal.images",
            "Image protocol",
            "How images are sent to the terminal",
            &["auto", "kitty", "iterm2", "off"],
        ),
    ]
}

/// The dialog.
pub(crate) struct SettingsDialog {
    settings: Vec<Setting>,
    facts: SettingsFacts,
    picker: Picker,
    problem: Option<String>,
}

impl SettingsDialog {
    pub(crate) fn new(facts: SettingsFacts) -> Self {
        let mut settings = table();
        if facts.images {
            settings.extend(image_table());
        }
        let mut dialog = Self { settings, facts, picker: Picker::new(Vec::new(), HEIGHT).with_values(), problem: None };
        dialog.fill();
        dialog
    }

    fn value(&self, setting: &Setting) -> Option<&Value> {
        self.facts.values.get(setting.key)
    }

    fn shown(&self, setting: &Setting) -> String {
        let value = self.value(setting);
        let known = setting.values.iter().find(|(_, known)| Some(known) == value);
        match (known, value) {
            (Some((shown, _)), _) => shown.clone(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(value)) => value.to_string(),
            (None, None) => "unset".to_owned(),
        }
    }

    fn fill(&mut self) {
        let selected = self.picker.selected();
        let items = self.settings.iter().map(|setting| PickItem::new(setting.label).detail(self.shown(setting)));
        let more = [
            PickItem::new("Thinking level").detail(format!("{} ›", self.facts.thinking)),
            PickItem::new("Theme").detail(format!("{} ›", self.facts.theme)),
        ];
        let items: Vec<PickItem> = items.chain(more).collect();
        self.picker.set_items(items);
        if let Some(selected) = selected {
            self.picker.select(selected);
        }
    }

    fn next_value(&mut self, at: usize) -> DialogEvent {
        let Some(setting) = self.settings.get(at) else {
            let dialog = if at == self.settings.len() { DialogName::Thinking } else { DialogName::Themes };
            return DialogEvent::close_with(Effect::Open(dialog));
        };
        let now = setting.values.iter().position(|(_, value)| Some(value) == self.value(setting));
        let next = now.map_or(0, |at| (at + 1) % setting.values.len());
        let Some((_, value)) = setting.values.get(next).cloned() else { return DialogEvent::Ignored };
        let key = setting.key;
        self.facts.values.insert(key.to_owned(), value.clone());
        self.problem = None;
        self.fill();
        DialogEvent::Do(vec![Effect::Set { key, value }])
    }
}

impl DialogView for SettingsDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let hints = [
            hint(&cx.keymap.hint(KeyAction::SelectConfirm), "change"),
            hint(&cx.keymap.hint(KeyAction::SelectCancel), "close"),
        ];
        let setting = self.picker.selected().and_then(|at| self.settings.get(at));
        let about = setting.map_or("", |setting| setting.about);
        let about = ratatui_core::text::Span::styled(about, cx.theme.fg(ColorRole::Muted));
        let mut about = if setting.is_some() { wrap(&[about], cx.columns) } else { Vec::new() };
        let room = room("Settings", &hints, cx).saturating_sub(usize::from(self.problem.is_some()));
        about.truncate(room.saturating_sub(MIN_ROWS));
        self.picker.fit(room.saturating_sub(about.len()));
        let mut content = self.picker.rows(cx.columns, cx.theme);
        content.extend(about);
        if let Some(problem) = &self.problem {
            content.push(truncate(&Row::styled(problem.clone(), cx.theme.fg(ColorRole::Error)), cx.columns, "…"));
        }
        (framed("Settings", content, &hints, cx), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        // A space changes the value unless there is a search text.
        if press.key.code == KeyCode::Space && self.picker.query().is_empty() {
            return self.picker.selected().map_or(DialogEvent::Ignored, |at| self.next_value(at));
        }
        match self.picker.key(press, cx.keymap) {
            PickerEvent::Ignored => DialogEvent::Ignored,
            PickerEvent::Changed => DialogEvent::Changed,
            PickerEvent::Cancelled => DialogEvent::Close(Vec::new()),
            PickerEvent::Chosen(at) => self.next_value(at),
        }
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }

    fn learn(&mut self, news: super::DialogNews) {
        if let super::DialogNews::Problem(text) = news {
            self.problem = Some(text);
        }
    }
}

/// Returns the keys of all settings in the dialog.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    table().into_iter().chain(image_table()).map(|setting| setting.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::Keymap;
    use crate::theme::{ColorDepth, Palette};

    /// Draws the dialog on a screen of this size, of which the footer takes two rows.
    fn shown(columns: usize, rows: usize) -> String {
        let values = serde_json::json!({"compaction.enabled": true, "steeringMode": "one-at-a-time"});
        let values = values.as_object().unwrap().clone();
        let facts = SettingsFacts { values, theme: "dark".to_owned(), thinking: "high".to_owned(), images: false };
        let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
        let cx = DialogCx { theme: &theme, keymap: &keymap, max_rows: rows - 2, columns, now_ms: 0 };
        let drawn = SettingsDialog::new(facts).rows(cx).0;
        assert!(drawn.len() <= cx.max_rows, "{} rows on {columns}x{rows}", drawn.len());
        format!("{columns}x{rows}\n")
            + &drawn.iter().map(|row| format!("{}\n", row.to_string().trim_end())).collect::<String>()
    }

    #[test]
    fn values_and_hints_are_shown_on_narrow_and_low_screens() {
        insta::assert_snapshot!([(80, 24), (40, 12), (20, 12)].map(|(columns, rows)| shown(columns, rows)).join("\n"));
    }
}
