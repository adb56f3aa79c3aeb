//! Loading all resources of a working directory.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::collect::ListedFile;
use super::commands::Commands;
use super::context_files::{self, ContextFile, Links};
use super::extensions::ExtensionEntry;
use super::gather::gather;
use super::info::{Diagnostic, ResourceKind, SourceInfo};
use super::inputs::{ExtraPaths, ResourceInputs};
use super::real_paths::RealPaths;
use super::skills::{self, Skill};
use super::templates::{Template, Templates};
use super::text_file;
use super::themes::Theme;
use crate::packages::source::absolute;

/// Modifies loaded resources before they are used.
pub type Adjust = Arc<dyn Fn(&mut Resources) + Send + Sync>;

/// The loaded resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// Instruction files, from the outermost to the innermost directory.
    pub context_files: Vec<ContextFile>,
    /// Skills and prompt templates.
    pub commands: Commands,
    /// Themes, built-in ones first.
    pub themes: Vec<Theme>,
    /// Replaces the default system prompt.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    pub append_system_prompt: Vec<String>,
    /// Extensions, which the caller starts.
    pub extensions: Vec<ExtensionEntry>,
    /// Problems found while loading.
    pub diagnostics: Vec<Diagnostic>,
}

impl Resources {
    /// Returns the skills.
    pub fn skills(&self) -> &[Skill] {
        &self.commands.skills
    }

    /// Appends other resources. Existing templates, themes and system prompts take precedence.
    fn extend(&mut self, other: Self) {
        self.context_files.extend(other.context_files);
        self.commands.skills.extend(other.commands.skills);
        self.diagnostics.extend(other.diagnostics);
        for template in other.commands.templates.iter() {
            if let Err(first) = self.commands.templates.add(template.clone()) {
                let winner = &first.path;
                let collision = Diagnostic::collision(ResourceKind::Prompt, &template.name, winner, &template.path);
                self.diagnostics.push(collision);
            }
        }
        for theme in other.themes {
            if !self.themes.iter().any(|known| known.name == theme.name) {
                self.themes.push(theme);
            }
        }
        self.system_prompt = self.system_prompt.take().or(other.system_prompt);
        self.append_system_prompt.extend(other.append_system_prompt);
        self.extensions.extend(other.extensions);
    }

    /// Returns the text to append to the system prompt.
    pub fn addendum(&self) -> Option<String> {
        (!self.append_system_prompt.is_empty()).then(|| self.append_system_prompt.join("\n\n"))
    }
}

/// Loads the resources of a working directory, and reloads them on request. Blocks while reading; the files are small and local.
#[derive(Clone)]
pub struct ResourceLoader {
    inputs: ResourceInputs,
    /// Resources supplied by the caller; those loaded from `inputs` are added.
    given: Option<Arc<Resources>>,
    adjust: Option<Adjust>,
    extra: Vec<ExtraPaths>,
    resources: Arc<Resources>,
}

impl fmt::Debug for ResourceLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceLoader").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl ResourceLoader {
    /// Loads everything.
    pub fn load(inputs: ResourceInputs) -> Self {
        Self::load_with(inputs, None)
    }

    /// Loads everything; `adjust` is applied after each load.
    pub fn load_with(inputs: ResourceInputs, adjust: Option<Adjust>) -> Self {
        let mut loader = Self { inputs, given: None, adjust, extra: Vec::new(), resources: Arc::default() };
        loader.load_now();
        loader
    }

    /// Uses the caller's resources. Reads no files, except those named by the session's extensions.
    pub fn in_memory(resources: Resources) -> Self {
        let (inputs, given) = (ResourceInputs::nothing("/"), Some(Arc::new(resources)));
        let mut loader = Self { inputs, given, adjust: None, extra: Vec::new(), resources: Arc::default() };
        loader.load_now();
        loader
    }

    fn load_now(&mut self) {
        let loaded = load(&self.inputs, &self.extra);
        let mut resources = match &self.given {
            None => loaded,
            Some(given) => {
                let mut resources = (**given).clone();
                resources.extend(loaded);
                resources
            }
        };
        if let Some(adjust) = &self.adjust {
            adjust(&mut resources);
        }
        self.resources = Arc::new(resources);
    }

    /// Returns the current resources.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Returns the inputs; a change takes effect with the next reload.
    pub fn inputs_mut(&mut self) -> &mut ResourceInputs {
        &mut self.inputs
    }

    /// Reloads everything except the resources of extensions, which are restarted as well.
    pub fn reload(&mut self) {
        self.extra.clear();
        self.inputs.refresh();
        self.load_now();
    }

    /// Sets the resources of extensions, replacing earlier ones. Nothing is reloaded if they are unchanged.
    pub fn extend_resources(&mut self, paths: Vec<ExtraPaths>) {
        if paths != self.extra {
            self.extra = paths;
            self.load_now();
        }
    }
}

fn load(inputs: &ResourceInputs, extra: &[ExtraPaths]) -> Resources {
    let mut resources = Resources::default();
    let problems = &mut resources.diagnostics;
    if inputs.leaves_out_project() {
        let text = "This project is not trusted: its settings, extensions, skills, prompts, themes and system prompt are ignored";
        problems.push(Diagnostic::warning(&inputs.cwd, text));
    }
    let project = inputs.project();
    let mut real_paths = RealPaths::knowing(&inputs.cwd, project.real_cwd());
    if !inputs.without.context_files {
        let links = Links { anywhere: inputs.links_lead_out, home: inputs.home.as_deref() };
        let (agent_dir, repositories) = (inputs.agent_dir.as_deref(), project.repositories());
        let (files, wrong) = context_files::collect(agent_dir, &inputs.cwd, repositories, links, &mut real_paths);
        resources.context_files = files;
        problems.extend(wrong.into_iter().map(Diagnostic::from));
    }
    let entries = gather(inputs, extra, ResourceKind::Extension, &mut real_paths, problems);
    resources.extensions = entries.into_iter().map(|found| ExtensionEntry::new(found.file.path, found.info)).collect();
    let files = gather(inputs, extra, ResourceKind::Skill, &mut real_paths, problems);
    let files = files.into_iter().map(|found| (found.file, found.meant, found.info));
    resources.commands.skills = skills::load(files, problems);
    let mut templates = load_templates(inputs, extra, &mut real_paths, problems);
    if !inputs.without.prompts {
        add_skill_templates(&resources.commands.skills, &mut templates, problems);
    }
    resources.commands.templates = templates;
    resources.themes = load_themes(inputs, extra, &mut real_paths, problems);
    let texts = inputs.system_prompt.as_ref().map(|given| vec![given.clone()]);
    let system = system_texts(inputs, texts.as_deref(), "SYSTEM.md", problems);
    resources.system_prompt = system.into_iter().next();
    let texts = Some(inputs.append_system_prompt.as_slice()).filter(|given| !given.is_empty());
    resources.append_system_prompt = system_texts(inputs, texts, "APPEND_SYSTEM.md", problems);
    resources
}

fn load_templates(
    inputs: &ResourceInputs,
    extra: &[ExtraPaths],
    real_paths: &mut RealPaths,
    problems: &mut Vec<Diagnostic>,
) -> Templates {
    let mut templates = Templates::default();
    for found in gather(inputs, extra, ResourceKind::Prompt, real_paths, problems) {
        add_template(&mut templates, &found.file, found.info, None, problems);
    }
    templates
}

/// Returns the task templates of skills, each named `<skill>:<file name>`, and the problems found. The first one of a name wins.
pub fn skill_templates(skills: &[Skill]) -> (Templates, Vec<Diagnostic>) {
    let (mut templates, mut problems) = (Templates::default(), Vec::new());
    add_skill_templates(skills, &mut templates, &mut problems);
    (templates, problems)
}

/// Adds the task templates of skills, prefixed with the name of their skill.
fn add_skill_templates(skills: &[Skill], templates: &mut Templates, problems: &mut Vec<Diagnostic>) {
    for skill in skills {
        for file in skills::template_files(skill) {
            let info = SourceInfo { path: file.path.clone(), ..skill.info.clone() };
            add_template(templates, &file, info, Some(&skill.name), problems);
        }
    }
}

/// Reads a template and adds it, with a prefix if it belongs to a skill.
fn add_template(
    templates: &mut Templates,
    file: &ListedFile,
    info: SourceInfo,
    skill: Option<&str>,
    problems: &mut Vec<Diagnostic>,
) {
    match Template::read(file) {
        Ok(Some(template)) => {
            let name = skill.map_or_else(|| template.name.clone(), |skill| format!("{skill}:{}", template.name));
            if let Err(first) = templates.add(Template { name: name.clone(), info, ..template }) {
                problems.push(Diagnostic::collision(ResourceKind::Prompt, &name, &first.path, &file.path));
            }
        }
        Ok(None) => {}
        Err(why) => problems.push(Diagnostic::warning(&file.path, why)),
    }
}

fn load_themes(
    inputs: &ResourceInputs,
    extra: &[ExtraPaths],
    real_paths: &mut RealPaths,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Theme> {
    let mut kept = Theme::builtin();
    for found in gather(inputs, extra, ResourceKind::Theme, real_paths, problems) {
        match Theme::read(&found.file.path) {
            Ok(theme) => match kept.iter().find(|first| first.name == theme.name) {
                Some(first) => {
                    let winner = &first.info.path;
                    problems.push(Diagnostic::collision(ResourceKind::Theme, &theme.name, winner, &found.file.path));
                }
                None => kept.push(Theme { info: SourceInfo { path: found.file.path, ..found.info }, ..theme }),
            },
            Err(problem) => problems.push(problem),
        }
    }
    kept
}

/// Returns texts for the system prompt: those given, each possibly the path of a file, or else the project's file, or else the user's.
fn system_texts(
    inputs: &ResourceInputs,
    given: Option<&[String]>,
    name: &str,
    problems: &mut Vec<Diagnostic>,
) -> Vec<String> {
    let mut read = |path: &Path| match text_file::read(path).map(text_file::without_bom) {
        Ok(text) => Some(text),
        Err(why) => {
            problems.push(Diagnostic::warning(path, why));
            None
        }
    };
    let Some(given) = given else {
        let dirs = inputs.trusted_project_dir().into_iter().chain(inputs.agent_dir.as_deref());
        return dirs
            .map(|dir| dir.join(name))
            .find(|path| path.is_file())
            .and_then(|path| read(&path))
            .into_iter()
            .collect();
    };
    let of = |text: &String| {
        let path = absolute(text, &inputs.cwd, inputs.home.as_deref());
        // A text may be too long to be a path.
        if text.len() < 4096 && path.is_file() { read(&path) } else { Some(text.clone()) }
    };
    given.iter().filter_map(of).collect()
}
