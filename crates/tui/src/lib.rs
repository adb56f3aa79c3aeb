//! A terminal user interface for coding agents: widgets for drawing and editing, and the interactive mode and agent chat of `pinch`.
//!
//! Every module can be used separately:
//!
//! * [`text`]: width, wrapping, truncation, and sanitising of untrusted text;
//! * [`hyperlink`]: clickable links;
//! * [`theme`]: named styles, at the colour depth of the terminal;
//! * [`key`]: keys as written in `keybindings.json`;
//! * [`image`]: images in a terminal;
//! * [`terminal`]: the terminal itself: input, and drawing rows without disturbing the scrollback;
//! * [`keymap`]: key bindings;
//! * [`editor`]: a text editor with completion;
//! * [`highlight`]: syntax highlighting;
//! * [`markdown`]: streaming Markdown;
//! * [`diff`]: word-level diffs of files;
//! * [`widget`]: selection lists and spinners;
//! * [`configure`]: enabling and disabling extensions, skills, prompts and themes;
//! * [`app`]: the interactive mode;
//! * [`chat`]: a chat with agents, wherever they run.
//!
//! Everything is drawn as rows: a [`Row`] is a line of styled text that is no wider than the width it was laid out for.

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

mod attention;

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

/// A row of the screen: a single line of styled text.
pub type Row = ratatui_core::text::Line<'static>;

/// Tests the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
