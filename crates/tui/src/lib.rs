//! A terminal for coding agents: the parts that draw and edit, and the interactive mode and the agent chat of `pinch`.
//!
//! The parts can be used by themselves:
//!
//! * [`text`]: width, wrapping, truncation, and making foreign text harmless;
//! * [`hyperlink`]: links that can be clicked;
//! * [`theme`]: styles by name, at the depth of colour that a terminal has;
//! * [`key`]: keys as people write them in `keybindings.json`;
//! * [`image`]: images in a terminal;
//! * [`terminal`]: the terminal itself: input, and rows that get onto it without disturbing its scrollback;
//! * [`keymap`]: which key does what;
//! * [`editor`]: a text that is edited with keys, and completion;
//! * [`highlight`]: code in its colours;
//! * [`markdown`]: Markdown as it arrives;
//! * [`diff`]: changes of a file, word by word;
//! * [`widget`]: lists to choose from, and a sign that something is going on;
//! * [`configure`]: enabling and disabling extensions, skills, prompts and themes;
//! * [`app`]: the interactive mode;
//! * [`chat`]: a chat with agents, wherever they run.
//!
//! Everything that is shown is rows: [`Row`] is a line of styled text that is not wider than what it was made for.

pub mod text;

pub mod hyperlink;

pub mod theme;

pub mod key;

pub mod image;

pub mod terminal;

pub mod keymap;

pub mod editor;

pub mod highlight;

pub mod markdown;

pub mod diff;

pub mod widget;

mod figures;

mod external;

mod clipboard;

mod front;

mod prompt_history;

mod transcript;

mod compose;

mod slash;

mod typed_line;

mod editor_line;

mod effect;

mod dialog;

pub mod configure;

pub mod app;

pub mod chat;

/// One row of a screen: styled text on a single line.
pub type Row = ratatui_core::text::Line<'static>;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
