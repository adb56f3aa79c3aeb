#![doc = include_str!("../README.md")]
//!
//! ## Modules
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
//! ## Drawing and keys
//!
//! A component takes a width and a [`theme::Palette`], and returns [`Row`]s; one that reacts to keys takes [`key::KeyPress`]es. A select
//! list above an editor, without a terminal:
//!
//! ```
//! use std::time::Duration;
//!
//! use pinch_tui::editor::Editor;
//! use pinch_tui::key::{Key, KeyCode, KeyPress};
//! use pinch_tui::keymap::Keymap;
//! use pinch_tui::theme::{ColorDepth, ColorRole, Palette};
//! use pinch_tui::widget::{Loader, PickItem, Picker, PickerEvent};
//!
//! let (theme, keymap) = (Palette::builtin("dark", ColorDepth::None), Keymap::default());
//! let mut list = Picker::without_search(vec![PickItem::new("small"), PickItem::new("large")], 5);
//! list.key(&KeyPress::of(Key::plain(KeyCode::Down)), &keymap);
//! assert_eq!(list.rows(20, &theme)[1].to_string(), "→ large");
//! assert_eq!(list.key(&KeyPress::of(Key::plain(KeyCode::Enter)), &keymap), PickerEvent::Chosen(1));
//! assert_eq!(Loader::default().row(Duration::ZERO, "Loading", &theme).to_string(), "⠋ Loading");
//!
//! let mut editor = Editor::new();
//! editor.handle(&KeyPress::typed('x'), &keymap);
//! let (rows, cursor) = editor.rows(20, 5, &theme, theme.fg(ColorRole::Border));
//! assert_eq!((rows[1].to_string().trim_end(), cursor), ("x", Some((1, 1))));
//! ```
//!
//! [`terminal`] connects rows and keys to a terminal: a [`terminal::TerminalDevice`] reads keys, and a [`terminal::InlineScreen`] or
//! [`terminal::Fullscreen`] turns rows into the bytes to write.

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

mod sgr;

mod key_sequence;

mod figures;

mod external;

mod tmux;

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

mod component_pane;

mod dialog;

pub mod configure;

pub mod app;

pub mod chat;

pub use pinch_coding_agent as coding_agent;

/// A row of the screen: a single line of styled text.
pub type Row = ratatui_core::text::Line<'static>;
