//! Showing runs to people.
