//! Registrations of extensions: tools, commands, flags, shortcuts, and more.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::Tool;

use super::Command;
use super::rendering::{RegisteredRenderer, Renderer, RendererKey, ToolLook};
use crate::models::ProviderDefinition;

/// A command-line flag of an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// Name, without dashes.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Kind and default value.
    pub kind: FlagKind,
}

/// The kind of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlagKind {
    /// A switch without a value.
    Boolean {
        /// Default value.
        default: Option<bool>,
    },
    /// A flag with a text value.
    Text {
        /// Default value.
        default: Option<String>,
    },
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlagValue {
    /// Whether it was given.
    Boolean(bool),
    /// Its text.
    Text(String),
}

impl FlagKind {
    pub(super) fn default_value(&self) -> Option<FlagValue> {
        match self {
            Self::Boolean { default } => default.map(FlagValue::Boolean),
            Self::Text { default } => default.clone().map(FlagValue::Text),
        }
    }
}

/// A key that runs a command.
#[derive(Clone)]
pub(super) struct Shortcut {
    /// The key, in key binding syntax.
    pub(super) key: String,
    /// The command to run, without arguments.
    pub(super) command: Arc<dyn Command>,
}

/// A change to the registered providers, for the owner of the models.
#[derive(Clone, Debug)]
pub enum ProviderChange {
    /// Adds or changes a provider.
    Register {
        /// Its name.
        name: String,
        /// Its definition.
        config: ProviderDefinition,
    },
    /// Removes a provider; built-in ones are restored.
    Unregister {
        /// Its name.
        name: String,
    },
}

/// The registrations of one extension. Discarded if [`super::Extension::register`] fails.
#[derive(Default)]
pub struct Registrations {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) commands: Vec<Arc<dyn Command>>,
    pub(super) flags: Vec<Flag>,
    pub(super) shortcuts: Vec<Shortcut>,
    pub(super) renderers: Vec<RegisteredRenderer>,
    pub(super) providers: Vec<ProviderChange>,
}

impl Registrations {
    /// Registers a tool. It replaces a built-in tool of the same name; among extensions, the first one wins.
    pub fn tool(&mut self, tool: Arc<dyn Tool>) {
        self.tools.push(tool);
    }

    /// Registers a command. Commands with the same name become `name:1`, `name:2`, ….
    pub fn command(&mut self, command: Arc<dyn Command>) {
        self.commands.push(command);
    }

    /// Registers a command-line flag. The first one of a name wins.
    pub fn flag(&mut self, flag: Flag) {
        self.flags.push(flag);
    }

    /// Registers a key that runs a command: `alt+x`, `shift+f5`. The last one of a key wins.
    pub fn shortcut(&mut self, key: impl Into<String>, command: Arc<dyn Command>) {
        self.shortcuts.push(Shortcut { key: key.into(), command });
    }

    /// Registers what draws messages of a type. The first one of a type wins.
    pub fn message_renderer(&mut self, custom_type: impl Into<String>, renderer: Arc<dyn Renderer>) {
        let key = RendererKey::Message(custom_type.into());
        self.renderers.push(RegisteredRenderer { key, look: ToolLook::default(), renderer });
    }

    /// Registers what draws parts of a tool's calls. The first one for a tool wins.
    pub fn tool_renderer(&mut self, tool: impl Into<String>, look: ToolLook, renderer: Arc<dyn Renderer>) {
        self.renderers.push(RegisteredRenderer { key: RendererKey::Tool(tool.into()), look, renderer });
    }

    /// Registers a provider.
    pub fn provider(&mut self, name: impl Into<String>, config: impl Into<ProviderDefinition>) {
        self.providers.push(ProviderChange::Register { name: name.into(), config: config.into() });
    }
}

impl fmt::Debug for Registrations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registrations")
            .field("tools", &self.tools)
            .field("n_commands", &self.commands.len())
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}
