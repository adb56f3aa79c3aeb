//! The arguments of package commands. They are parsed by hand because scripts rely on the error messages.

use crate::exit::{Blame, CommandFailure};

use super::name::PackageCommandName;
use super::texts::usage;

/// A parsed package command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PackageCommand {
    pub(super) action: PackageAction,
    /// Whether to use the project's settings instead of the user's.
    pub(super) is_local: bool,
    /// Whether the project is trusted for this command.
    pub(super) approve: Option<bool>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PackageAction {
    Install(String),
    Remove(String),
    Update(Update),
    List,
    Config,
}

/// The targets of an update.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) program: bool,
    pub(super) force: bool,
    pub(super) models: bool,
    /// All packages, or one.
    pub(super) packages: Option<Option<String>>,
    /// Whether to print that packages were not updated, because none was named.
    pub(super) show_packages_hint: bool,
}

/// The raw arguments.
#[derive(Default)]
struct PackageArgs<'a> {
    help: bool,
    local: bool,
    approve: Option<bool>,
    program: bool,
    extensions: bool,
    models: bool,
    all: bool,
    force: bool,
    extension: Option<&'a str>,
    source: Option<&'a str>,
    unknown: Option<&'a str>,
    unexpected: Option<&'a str>,
    missing_value: bool,
    conflict: Option<&'static str>,
}

/// Parses a command; returns `None` if help is requested.
pub(super) fn parse(args: &[String]) -> Result<Option<PackageCommand>, CommandFailure> {
    let Some((name, rest)) = args.split_first().and_then(|(name, rest)| Some((PackageCommandName::parse(name)?, rest)))
    else {
        return Ok(None);
    };
    let mut given = read(name, rest);
    if given.help {
        return Ok(None);
    }
    let update = if name == PackageCommandName::Update { Some(update(&mut given)) } else { None };
    check(name, &given)?;
    let source = given.source.unwrap_or_default().to_owned();
    let action = match name {
        PackageCommandName::Install => PackageAction::Install(source),
        PackageCommandName::Remove => PackageAction::Remove(source),
        PackageCommandName::Update => PackageAction::Update(update.unwrap_or_default()),
        PackageCommandName::List => PackageAction::List,
        PackageCommandName::Config => PackageAction::Config,
    };
    Ok(Some(PackageCommand { action, is_local: given.local, approve: given.approve }))
}

fn read(name: PackageCommandName, args: &[String]) -> PackageArgs<'_> {
    let mut given = PackageArgs::default();
    let has_scope = !matches!(name, PackageCommandName::Update | PackageCommandName::List);
    let is_update = name == PackageCommandName::Update;
    let mut args = args.iter().map(String::as_str).peekable();
    while let Some(arg) = args.next() {
        match arg {
            "-h" | "--help" => given.help = true,
            "-a" | "--approve" | "--trust-project" => given.approve = Some(true),
            "-na" | "--no-approve" => given.approve = Some(false),
            "-l" | "--local" if has_scope => given.local = true,
            "--self" if is_update => given.program = true,
            "--extensions" if is_update => given.extensions = true,
            "--models" if is_update => given.models = true,
            "--all" if is_update => given.all = true,
            "--force" if is_update => given.force = true,
            "--extension" if is_update => match args.next_if(|value| !value.is_empty() && !value.starts_with('-')) {
                None => given.missing_value = true,
                Some(_) if given.extension.is_some() => given.conflict("--extension can only be provided once"),
                Some(value) => given.extension = Some(value),
            },
            _ if arg.starts_with('-') => drop(given.unknown.get_or_insert(arg)),
            _ if given.source.is_none() && !matches!(name, PackageCommandName::List | PackageCommandName::Config) => {
                given.source = Some(arg)
            }
            _ => drop(given.unexpected.get_or_insert(arg)),
        }
    }
    given
}

impl PackageArgs<'_> {
    /// Records a conflict, unless there is one already.
    fn conflict(&mut self, text: &'static str) {
        self.conflict.get_or_insert(text);
    }
}

fn update(given: &mut PackageArgs<'_>) -> Update {
    let has_source = given.source.is_some();
    let has_extension = given.extension.is_some();
    if given.all && (given.program || given.extensions || given.models || has_extension) {
        given.conflict("--all cannot be combined with --self, --extensions, --models, or --extension");
    }
    if given.all && has_source {
        given.conflict("--all cannot be combined with a positional source");
    }
    let base = Update { force: given.force, ..Update::default() };
    if given.models {
        if given.program || given.extensions || given.all || has_extension {
            given.conflict("--models cannot be combined with --self, --extensions, --all, or --extension");
        }
        if has_source {
            given.conflict("--models cannot be combined with a positional source");
        }
        return Update { models: true, ..base };
    }
    if let Some(source) = given.extension {
        if given.program || given.extensions || given.all {
            given.conflict("--extension cannot be combined with --self, --extensions, or --all");
        }
        if has_source {
            given.conflict("--extension cannot be combined with a positional source");
        }
        return Update { packages: Some(Some(source.to_owned())), ..base };
    }
    let all_packages = (given.all || given.extensions).then_some(None);
    match given.source {
        Some("self" | "pi" | "pinch") => Update { program: true, packages: all_packages, ..base },
        Some(source) => {
            if given.extensions || given.program || given.all {
                given.conflict("positional update targets cannot be combined with --self, --extensions, or --all");
            }
            Update { packages: Some(Some(source.to_owned())), ..base }
        }
        None => {
            let is_bare = !given.all && !given.program && !given.extensions;
            let program = given.all || given.program || is_bare;
            Update { program, packages: all_packages, show_packages_hint: is_bare, ..base }
        }
    }
}

fn check(name: PackageCommandName, given: &PackageArgs<'_>) -> Result<(), CommandFailure> {
    let refused = |text: String| CommandFailure::bare(Blame::User, text);
    let with_usage = |text: String| Err(refused(format!("{text}\nUsage: {}", usage(name))));
    if let Some(option) = given.unknown {
        let command = name.as_str();
        return Err(refused(format!(
            "Unknown option {option} for \"{command}\".\nUse \"pinch --help\" or \"{}\".",
            usage(name)
        )));
    }
    if given.missing_value {
        return with_usage("Missing value for --extension.".to_owned());
    }
    if let Some(argument) = given.unexpected {
        return with_usage(format!("Unexpected argument {argument}."));
    }
    if let Some(conflict) = given.conflict {
        return with_usage(conflict.to_owned());
    }
    let is_missing = given.source.is_none_or(str::is_empty)
        && matches!(name, PackageCommandName::Install | PackageCommandName::Remove);
    if is_missing {
        return with_usage(format!("Missing {} source.", name.as_str()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<PackageCommand>, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&args).map_err(|failure| failure.to_string().lines().next().unwrap_or_default().to_owned())
    }

    #[track_caller]
    fn updates(line: &str, expected: Update) {
        assert_eq!(parsed(line).unwrap().unwrap().action, PackageAction::Update(expected), "{line}");
    }

    #[test]
    fn update_targets_are_parsed() {
        let one = Update { packages: Some(Some("x".into())), ..Update::default() };
        let all = Update { packages: Some(None), ..Update::default() };
        updates("update", Update { program: true, show_packages_hint: true, ..Update::default() });
        updates("update pinch --force", Update { program: true, force: true, ..Update::default() });
        updates("update self --extensions", Update { program: true, packages: Some(None), ..Update::default() });
        updates("update --all", Update { program: true, packages: Some(None), ..Update::default() });
        updates("update --extensions", all);
        updates("update x", Update { packages: one.packages.clone(), ..Update::default() });
        updates("update --extension x", one);
        updates("update --models", Update { models: true, ..Update::default() });
    }

    #[test]
    fn the_first_error_is_reported() {
        for (line, text) in [
            ("install", "Missing install source."),
            ("uninstall", "Missing remove source."),
            ("install a b --self", "Unknown option --self for \"install\"."),
            ("list -l", "Unknown option -l for \"list\"."),
            ("list a", "Unexpected argument a."),
            ("config a", "Unexpected argument a."),
            ("update --extension --self", "Missing value for --extension."),
            ("update --extension a --extension b", "--extension can only be provided once"),
            ("update a --extension b", "--extension cannot be combined with a positional source"),
            ("update a --self", "positional update targets cannot be combined with --self, --extensions, or --all"),
            ("update --all a", "--all cannot be combined with a positional source"),
            ("update --models a", "--models cannot be combined with a positional source"),
        ] {
            assert_eq!(parsed(line), Err(text.to_owned()), "{line}");
        }
        assert_eq!(parsed("install --nope -h"), Ok(None));
        let config = parsed("config -l").unwrap().unwrap();
        assert_eq!(config, PackageCommand { action: PackageAction::Config, is_local: true, approve: None });
        let order = parsed("uninstall a --local -na").unwrap().unwrap();
        assert_eq!(
            order,
            PackageCommand { action: PackageAction::Remove("a".into()), is_local: true, approve: Some(false) }
        );
    }
}
