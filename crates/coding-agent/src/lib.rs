//! coding-agent
