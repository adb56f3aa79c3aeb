//! The script of the demo.
