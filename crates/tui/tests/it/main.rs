//! What the interactive mode shows, on real terminal emulators.
