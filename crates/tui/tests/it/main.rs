//! Tests of the interactive mode on real terminal emulators.
