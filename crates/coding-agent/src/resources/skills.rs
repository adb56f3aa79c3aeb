//! Skills: `SKILL.md` files that describe how to do a kind of task. The prompt lists them; the model reads one when needed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pinch_stdx::text::utf16_len;
use serde_json::Value;

use super::collect::{self, Enter, ListedFile, has_ending};
use super::info::{Diagnostic, ResourceKind, SourceInfo};
use super::{frontmatter, text_file};

/// Maximum length of a description and of a name, in UTF-16 units.
const MAX_DESCRIPTION: usize = 1024;
const MAX_NAME: usize = 64;
/// The file that makes a directory a skill.
const FILE: &str = "SKILL.md";

/// A skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// The name after `/skill:`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The file.
    pub path: PathBuf,
    /// Base directory of relative paths in it.
    pub base_dir: PathBuf,
    /// Whether the prompt omits it: it is for the user only.
    pub hidden: bool,
    /// Where it comes from.
    pub info: SourceInfo,
}

/// Which files in a directory are skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillFolder {
    /// `SKILL.md` in any subdirectory, and other Markdown files directly in the directory.
    WithLooseFiles,
    /// Only `SKILL.md` in any subdirectory.
    FoldersOnly,
}

/// Finds the skill files below a directory, in order. Does not search below a directory with a `SKILL.md`.
pub fn find(folder: &Path, kind: SkillFolder) -> Vec<ListedFile> {
    let mut found = Vec::new();
    collect::search(folder, &mut |_, depth, listing| {
        if let Some(skill) = listing.files.iter().find(|file| file.path.file_name() == Some(OsStr::new(FILE))) {
            found.push(skill.clone());
            return Enter::No;
        }
        if depth == 0 && kind == SkillFolder::WithLooseFiles {
            found.extend(listing.files.iter().filter(|file| has_ending(&file.path, "md")).cloned());
        }
        Enter::Yes
    });
    // Single files and directories are sorted together.
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Finds the skill files at a path in settings or on the command line: those of a directory, or itself.
///
/// # Errors
/// Fails if the path does not exist or is not a Markdown file.
pub fn find_at(path: &Path) -> Result<Vec<ListedFile>, Diagnostic> {
    match std::fs::metadata(path) {
        Err(_) => Err(Diagnostic::warning(path, "skill path does not exist")),
        Ok(meta) if meta.is_dir() => Ok(find(path, SkillFolder::WithLooseFiles)),
        Ok(meta) if meta.is_file() && has_ending(path, "md") => Ok(vec![ListedFile::named(path)]),
        Ok(_) => Err(Diagnostic::warning(path, "skill path is not a markdown file")),
    }
}

/// Subdirectories of a skill with task templates.
const TEMPLATES: [&str; 2] = ["templates", "prompts"];

/// Returns a skill's task templates: prompt templates for the task it describes.
pub(super) fn template_files(skill: &Skill) -> Vec<ListedFile> {
    let mut found = Vec::new();
    // A loose file has no directory of its own.
    if skill.path.file_name().is_some_and(|name| name == FILE) {
        for name in TEMPLATES {
            collect::search(&skill.base_dir.join(name), &mut |_, _, listing| {
                found.extend(listing.files.iter().filter(|file| has_ending(&file.path, "md")).cloned());
                Enter::No
            });
        }
    }
    found
}

/// Returns whether a discovered file is certainly a skill: a file with another name may just be a text about skills.
pub fn meant(path: &Path) -> Intent {
    if path.file_name().is_some_and(|name| name == FILE) { Intent::Certain } else { Intent::Perhaps }
}

/// Whether a discovered file is meant to be a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It was named explicitly, or is called `SKILL.md`.
    Certain,
    /// It is located among skills; a Markdown file without front matter is something else.
    Perhaps,
}

/// Reads a skill's front matter. Returns `None` if it is unusable. All problems are reported.
pub fn read(file: &ListedFile, meant: Intent, problems: &mut Vec<Diagnostic>) -> Option<Skill> {
    let path = file.path.as_path();
    let mut warn = |text: String| problems.push(Diagnostic::warning(path, text));
    let head = match frontmatter::read_head(file, text_file::MAX_BYTES) {
        Err(error) => {
            warn(format!("cannot be read: {error}"));
            return None;
        }
        Ok(text) => match frontmatter::parse(&text) {
            Ok(document) => document.head,
            Err(error) => {
                warn(error);
                return None;
            }
        },
    };
    if head.is_empty() && meant == Intent::Perhaps {
        return None;
    }
    let base_dir = path.parent().unwrap_or(Path::new("")).to_owned();
    let is_folder = path.file_name().is_some_and(|name| name == FILE);
    let usual = if is_folder { base_dir.file_name() } else { path.file_stem() };
    let given = match head.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(name @ (Value::Number(_) | Value::Bool(_))) => name.to_string(),
        _ => String::new(),
    };
    let name = if given.is_empty() { usual.unwrap_or_default().to_string_lossy().into_owned() } else { given };
    let description = head.get("description").and_then(Value::as_str).unwrap_or_default();
    let is_described = !description.trim().is_empty();
    let n_chars = utf16_len(description);
    if !is_described {
        warn("description is required".to_owned());
    } else if n_chars > MAX_DESCRIPTION {
        warn(format!("description exceeds {MAX_DESCRIPTION} characters ({n_chars})"));
    }
    check_name(&name, &mut warn);
    is_described.then(|| Skill {
        name,
        description: description.to_owned(),
        path: path.to_owned(),
        base_dir,
        hidden: head.get("disable-model-invocation") == Some(&Value::Bool(true)),
        info: SourceInfo::default(),
    })
}

/// Loads skills in order of precedence. The first of several with the same name wins, and the others are reported.
pub fn load(
    files: impl IntoIterator<Item = (ListedFile, Intent, SourceInfo)>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Skill> {
    let (mut skills, mut collisions) = (Vec::<Skill>::new(), Vec::new());
    let mut names = HashMap::<String, usize>::new();
    for (file, meant, info) in files {
        let Some(skill) = read(&file, meant, problems) else { continue };
        match names.get(&skill.name) {
            Some(first) => {
                let winner = &skills[*first].path;
                collisions.push(Diagnostic::collision(ResourceKind::Skill, &skill.name, winner, &file.path));
            }
            None => {
                names.insert(skill.name.clone(), skills.len());
                skills.push(Skill { info, ..skill });
            }
        }
    }
    problems.extend(collisions);
    skills
}

fn check_name(name: &str, warn: &mut impl FnMut(String)) {
    let n_chars = utf16_len(name);
    if n_chars > MAX_NAME {
        warn(format!("name exceeds {MAX_NAME} characters ({n_chars})"));
    }
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        warn("name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        warn("name must not start or end with a hyphen".to_owned());
    }
    if name.contains("--") {
        warn("name must not contain consecutive hyphens".to_owned());
    }
}

const INTRO: &str = "Skills are instructions for particular kinds of work.\n\
     When a task fits the description of one, read its file before you begin and follow it.\n\
     A relative path in a skill starts at the folder of the skill's file.";

/// Returns the list of skills for the system prompt; empty if there are none.
pub fn prompt_block<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> String {
    let mut list = String::new();
    for skill in skills.into_iter().filter(|skill| !skill.hidden) {
        let (name, description) = (escape_xml(&skill.name), escape_xml(&skill.description));
        let location = skill.path.to_string_lossy();
        let location = escape_xml(&location);
        // Writing to a string cannot fail.
        let _written = write!(
            list,
            "  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n    <location>{location}</location>\n  </skill>\n"
        );
    }
    if list.is_empty() { list } else { format!("{INTRO}\n\n<available_skills>\n{list}</available_skills>") }
}

/// Escapes a text for XML.
pub fn escape_xml(text: &str) -> Cow<'_, str> {
    let is_special = |c| matches!(c, '&' | '<' | '>' | '"' | '\'');
    if !text.contains(is_special) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

/// Expands a skill named in a prompt to its text.
///
/// # Errors
/// Fails if its file can no longer be read.
pub fn expand(skill: &Skill, arguments: &str) -> Result<String, Diagnostic> {
    let failed = |error: String| Diagnostic::warning(&skill.path, error);
    let text = text_file::read(&skill.path).map_err(failed)?;
    let body = frontmatter::parse(&text).map_err(failed)?.body;
    let (path, folder) = (skill.path.display(), skill.base_dir.display());
    let mut text = format!(
        "<skill name=\"{}\" location=\"{path}\">\nReferences are relative to {folder}.\n\n{}\n</skill>",
        skill.name,
        body.trim()
    );
    if !arguments.is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    #[track_caller]
    fn check(name: &str, text: &str, meant: Intent, loaded: Option<&str>, told: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let path = skill(dir.path(), name, text);
        let mut problems = Vec::new();
        let read = read(&ListedFile::named(path), meant, &mut problems);
        let told_now: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!((read.map(|skill| skill.name).as_deref(), told_now.as_slice()), (loaded, told));
    }

    #[test]
    fn front_matter_is_checked() {
        let invalid = "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)";
        check("a/SKILL.md", "---\ndescription: d\n---\n", Intent::Certain, Some("a"), &[]);
        check("loose.md", "---\ndescription: d\n---\n", Intent::Perhaps, Some("loose"), &[]);
        check("a/SKILL.md", "---\nname: other\ndescription: d\n---\n", Intent::Certain, Some("other"), &[]);
        check(
            "a/SKILL.md",
            "---\nname: -A--b\ndescription: d\n---\n",
            Intent::Certain,
            Some("-A--b"),
            &[invalid, "name must not start or end with a hyphen", "name must not contain consecutive hyphens"],
        );
        check(
            "a/SKILL.md",
            "---\nname: 7\ndescription: ' '\n---\n",
            Intent::Certain,
            None,
            &["description is required"],
        );
        check("README.md", "# Read me\n", Intent::Perhaps, None, &[]);
        check("README.md", "# Read me\n", Intent::Certain, None, &["description is required", invalid]);
    }

    #[test]
    fn a_skill_name_expands_to_its_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = skill(dir.path(), "a/SKILL.md", "---\ndescription: d\n---\n\nBody $1\n");
        let skill = read(&ListedFile::named(&path), Intent::Certain, &mut Vec::new()).unwrap();
        let folder = dir.path().join("a").display().to_string();
        let block = format!(
            "<skill name=\"a\" location=\"{folder}/SKILL.md\">\nReferences are relative to {folder}.\n\nBody $1\n</skill>"
        );
        assert_eq!(expand(&skill, "").unwrap(), block);
        assert_eq!(expand(&skill, "x y").unwrap(), format!("{block}\n\nx y"));
        std::fs::remove_file(path).unwrap();
        assert!(expand(&skill, "").is_err());
    }
}
