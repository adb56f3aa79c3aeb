//! Dialogs made from the state, and texts about the session.

use std::sync::Arc;

use pinch_coding_agent::models::pattern;
use pinch_coding_agent::runtime::SessionRuntime;
use pinch_coding_agent::services::Services;
use pinch_coding_agent::session::SessionStats;
use pinch_coding_agent::settings::values::QuietStartup;
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::Map;

use super::App;
use super::look::SYSTEM_THEME;
use crate::dialog::{ChoiceDialog, SettingsDialog, SettingsFacts, TreeFilter, setting_keys};
use crate::effect::Effect;
use crate::figures::tokens;
use crate::keymap::KeyAction;
use crate::terminal::Size;
use crate::widget::PickItem;

impl App {
    /// Returns the options of the tree dialog: its initial filter, its number of rows, and whether leaving a branch asks for a summary.
    pub(crate) fn tree_options(&self, size: Size, services: &Services) -> (TreeFilter, usize, bool) {
        let filter =
            self.interface.as_ref().map_or(TreeFilter::Default, |interface| TreeFilter::parse(&interface.tree_filter));
        let skips = services.settings().value("branchSummary.skipPrompt").and_then(|value| value.as_bool());
        (filter, (size.height() / 2).max(5), skips != Some(true))
    }

    pub(crate) fn open_settings(&mut self, services: &Services) {
        let settings = services.settings();
        let values: Map<_, _> = setting_keys().filter_map(|key| Some((key.to_owned(), settings.value(key)?))).collect();
        let facts = SettingsFacts {
            values,
            theme: self.theme.name().to_owned(),
            thinking: self.thinking.as_str().to_owned(),
            images: self.image_protocol.is_some(),
        };
        self.open(Box::new(SettingsDialog::new(facts)));
    }

    pub(crate) fn open_themes(&mut self, services: &Services) {
        let resources = services.resources();
        let by_terminal = self.chosen_theme().is_none();
        let system = PickItem::new(SYSTEM_THEME).detail("Light or dark, as the terminal is").current(by_terminal);
        let named = resources.themes.iter().filter(|theme| theme.name != SYSTEM_THEME).map(|theme| {
            let is_current = !by_terminal && theme.name == self.theme.name();
            PickItem::new(theme.name.clone()).current(is_current)
        });
        let items: Vec<PickItem> = std::iter::once(system).chain(named).collect();
        let effect = |item: &PickItem, save| Effect::Theme { name: item.label.clone(), save };
        let previews: Vec<Effect> = items.iter().map(|item| effect(item, false)).collect();
        let choices = items.into_iter().map(|item| {
            let effects = vec![effect(&item, true)];
            (item, effects)
        });
        let before = Effect::Theme { name: self.theme.name().to_owned(), save: false };
        let dialog = ChoiceDialog::new("Theme", choices.collect()).with_preview(previews.into_iter()).or_else(before);
        self.open(Box::new(dialog));
    }

    /// Asks whether the project is trusted.
    pub(crate) fn open_trust(&mut self, services: &Services) {
        let now = if services.trust().is_trusted() { "trusted" } else { "not trusted" };
        let title = format!("{} is {now}", services.cwd().display());
        let yes = PickItem::new("Trust it").detail("Its settings, extensions, skills and prompts are used");
        let no = PickItem::new("Do not trust it").detail("Only its context files are read");
        let choices = vec![(yes, vec![Effect::Trust(true)]), (no, vec![Effect::Trust(false)])];
        self.open(Box::new(ChoiceDialog::new(&title, choices)));
    }

    pub(crate) fn open_thinking(&mut self) {
        let Some(model) = &self.model else { return };
        let about = |level: ThinkingLevel| match level.as_str() {
            "off" => "No thinking",
            "minimal" => "About 1k tokens",
            "low" => "About 2k tokens",
            "medium" => "About 8k tokens",
            "high" => "About 16k tokens",
            _ => "About 32k tokens and more",
        };
        let choices = thinking::supported(model).into_iter().map(|level| {
            let item = PickItem::new(level.as_str()).detail(about(level)).current(level == self.thinking);
            (item, vec![Effect::SetThinking { level, save: false }])
        });
        let choices: Vec<_> = choices.collect();
        if choices.len() < 2 {
            return self.status("The model has no thinking levels");
        }
        let saves = thinking::supported(model).into_iter().map(|level| vec![Effect::SetThinking { level, save: true }]);
        let dialog = ChoiceDialog::new("Thinking level", choices).with_save(saves.collect());
        self.open(Box::new(dialog));
    }

    /// Returns the only model that a text can refer to.
    pub(crate) fn exact_model(&self, reference: &str, all: &[Arc<Model>]) -> Option<Arc<Model>> {
        pattern::exact(all, reference)
    }

    /// Shows that another model is in use.
    pub(crate) fn say_model(&mut self, model: &Model, level: Option<ThinkingLevel>) {
        match level {
            Some(level) if model.reasoning => {
                self.status(&format!("Switched to {} (thinking: {})", model.name, level.as_str()));
            }
            Some(_) => self.status(&format!("Switched to {}", model.name)),
            None => self.status(&format!("Model: {}", model.id)),
        }
    }

    pub(crate) fn say_name(&mut self) {
        match self.footer.session_name.clone() {
            Some(name) => self.status(&format!("Session name: {name}")),
            None => self.status("The session has no name; set one with /name NAME"),
        }
    }

    /// Shows the statistics of the session.
    pub(crate) fn show_stats(&mut self, stats: &SessionStats, name: Option<&str>) {
        let file = stats.session_file.as_ref().map_or("in memory".to_owned(), |path| path.display().to_string());
        let spent = &stats.spent;
        let mut text = String::from("**Session**\n\n");
        if let Some(name) = name {
            text.push_str(&format!("- Name: {}\n", name.replace('\n', " ")));
        }
        text.push_str(&format!(
            "- File: `{file}`\n- ID: `{}`\n- Messages: {} ({} from you, {} answers)\n- Tool calls: {} ({} results)\n\
             - Tokens: {} (input {}, output {}, cache read {}, cache write {})\n- Cost: ${:.4}\n",
            stats.session_id,
            stats.total_messages,
            stats.user_messages,
            stats.assistant_messages,
            stats.tool_calls,
            stats.tool_results,
            tokens(spent.total()),
            tokens(spent.input),
            tokens(spent.output),
            tokens(spent.cache_read),
            tokens(spent.cache_write),
            spent.cost,
        ));
        self.transcript.markdown(&text);
    }

    /// Shows the welcome text for a user without a model.
    pub(crate) fn welcome(&mut self) {
        self.transcript.header(&format!("pinch v{}", self.options.version), "No model is configured yet");
        self.transcript.markdown(
            "Log in to a provider below, with a subscription or an API key. Other ways to get a model:\n\n\
             - Set an API key in the environment, such as `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`\n\
             - Start a local server: Ollama, llama.cpp or LM Studio; it appears in the list below\n\
             - Describe a server of your own in `models.json`\n",
        );
    }

    /// Returns whether a dialog is open.
    pub(crate) fn has_dialog(&self) -> bool {
        !self.dialogs.is_empty()
    }

    /// Shows the header and the loaded resources.
    pub(super) fn show_header(&mut self, runtime: &SessionRuntime) {
        let quiet = self.interface.as_ref().map_or(QuietStartup::Off, |interface| interface.quiet_startup);
        if quiet == QuietStartup::On && !self.options.verbose {
            return;
        }
        let hint = |action| self.keymap.hint(action);
        let hints = format!(
            "{} interrupt · {} clear, twice to exit · / commands · ! shell · {} expand tools · /help for all keys",
            hint(KeyAction::Interrupt),
            hint(KeyAction::Clear),
            hint(KeyAction::ToolsExpand),
        );
        self.transcript.header(&format!("pinch v{}", self.options.version), &hints);
        if quiet == QuietStartup::Header && !self.options.verbose {
            return;
        }
        let resources = runtime.services().resources();
        let mut sections = Vec::new();
        let mut section = |title: &str, names: Vec<String>| {
            if !names.is_empty() {
                sections.push(format!("{title}: {}", names.join(", ")));
            }
        };
        let home = self.options.host.home();
        section(
            "Context",
            resources.context_files.iter().map(|file| crate::figures::short_path(&file.path, home)).collect(),
        );
        section("Skills", resources.skills().iter().map(|skill| skill.name.clone()).collect());
        section("Prompts", resources.commands.templates.iter().map(|template| template.name.clone()).collect());
        section("Extensions", runtime.session().control().extensions().names().map(|name| name.to_string()).collect());
        if !sections.is_empty() {
            self.transcript.dim(&sections.join("\n"));
        }
    }
}
