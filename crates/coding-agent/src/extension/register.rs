//! What extensions bring along: tools, commands, flags, shortcuts, and more.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::Tool;
use serde_json::{Map, Value};

use super::Command;

/// A command-line option of an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Its kind, and the value when it is not given.
    pub kind: FlagKind,
}

/// The kind of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlagKind {
    /// It is there or not.
    Boolean {
        /// Its value when it is not given.
        default: Option<bool>,
    },
    /// It has a text.
    Text {
        /// Its value when it is not given.
        default: Option<String>,
    },
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlagValue {
    /// It was given, or not.
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
pub struct Shortcut {
    /// The key, as key bindings write it.
    pub key: String,
    /// What it runs, without arguments.
    pub command: Arc<dyn Command>,
}

/// A change of the registered providers, for the owner of the models.
#[derive(Clone, Debug, PartialEq)]
pub enum ProviderChange {
    /// A provider comes, or changes.
    Register {
        /// Its name.
        name: String,
        /// What models.json would say of it.
        config: Map<String, Value>,
    },
    /// A provider goes; built-in ones are as they were.
    Unregister {
        /// Its name.
        name: String,
    },
}

/// What one extension brings along. Nothing of it counts when [`super::Extension::register`] fails.
#[derive(Default)]
pub struct Registrations {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) commands: Vec<Arc<dyn Command>>,
    pub(super) flags: Vec<Flag>,
    pub(super) shortcuts: Vec<Shortcut>,
    pub(super) renderers: Vec<String>,
    pub(super) providers: Vec<ProviderChange>,
}

impl Registrations {
    /// A tool. One of a built-in tool's name takes its place; of several extensions' tools of one name the first counts.
    pub fn tool(&mut self, tool: Arc<dyn Tool>) {
        self.tools.push(tool);
    }

    /// A command. Commands of one name become `name:1`, `name:2`, ….
    pub fn command(&mut self, command: Arc<dyn Command>) {
        self.commands.push(command);
    }

    /// A command-line option. Of several of one name the first counts.
    pub fn flag(&mut self, flag: Flag) {
        self.flags.push(flag);
    }

    /// A key that runs a command. Of several for one key the last counts.
    pub fn shortcut(&mut self, key: impl Into<String>, command: Arc<dyn Command>) {
        self.shortcuts.push(Shortcut { key: key.into(), command });
    }

    /// Says that this extension's messages of a type are its own to show. Names only: a front end that draws knows what to do with them.
    pub fn message_renderer(&mut self, custom_type: impl Into<String>) {
        self.renderers.push(custom_type.into());
    }

    /// A provider, as models.json would describe it.
    pub fn provider(&mut self, name: impl Into<String>, config: Map<String, Value>) {
        self.providers.push(ProviderChange::Register { name: name.into(), config });
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
