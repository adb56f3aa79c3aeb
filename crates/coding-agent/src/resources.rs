//! What users and projects put beside the code for the agent to find.

pub mod context_files;
pub mod frontmatter;
pub mod templates;
