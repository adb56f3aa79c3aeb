//! Help texts and messages of the package commands.

use super::name::PackageCommandName;

/// Returns the usage line of a command.
pub(super) fn usage(name: PackageCommandName) -> &'static str {
    match name {
        PackageCommandName::Install => "pinch install <source> [-l] [--approve|--no-approve]",
        PackageCommandName::Remove => "pinch remove <source> [-l] [--approve|--no-approve]",
        PackageCommandName::Update => {
            "pinch update [source|self|pinch] [--self|--extensions|--models|--all] [--extension <source>] \
             [--approve|--no-approve] [--force]"
        }
        PackageCommandName::List => "pinch list [--approve|--no-approve]",
        PackageCommandName::Config => "pinch config [-l] [--approve|--no-approve]",
    }
}

/// Names of an option, its value's name, and its description.
pub(super) type OptionText = (&'static str, Option<&'static str>, &'static str);

/// Returns the options of a command, without the help option.
pub(super) fn options(name: PackageCommandName) -> Vec<OptionText> {
    let own: &[OptionText] = match name {
        PackageCommandName::Install => &[("-l, --local", None, "Use the project's settings")],
        PackageCommandName::Remove => &[("-l, --local", None, "Use the project's settings")],
        PackageCommandName::Update => &[
            ("--self", None, "Update pinch itself (the default)"),
            ("--extensions", None, "Update all packages"),
            ("--all", None, "Update pinch and all packages"),
            ("--extension", Some("SRC"), "Update one package"),
            ("--models", None, "Fetch newer model catalogs for the providers you have credentials for"),
            ("--force", None, "Show how to reinstall the same version of pinch"),
        ],
        PackageCommandName::Config => &[("-l, --local", None, "Start with the project's settings")],
        PackageCommandName::List => &[],
    };
    const OF_ALL: [OptionText; 2] = [
        ("-a, --approve", None, "Trust the project for this command"),
        ("-na, --no-approve", None, "Do not trust the project for this command"),
    ];
    [own, &OF_ALL].concat()
}

/// Returns the positional argument of a command.
pub(super) fn argument(name: PackageCommandName) -> Option<&'static str> {
    match name {
        PackageCommandName::Install | PackageCommandName::Remove | PackageCommandName::Update => Some("source"),
        PackageCommandName::List | PackageCommandName::Config => None,
    }
}

/// Returns the help of a command.
pub(super) fn help(name: PackageCommandName) -> String {
    let about = match name {
        PackageCommandName::Install => {
            "Install a package and add it to the settings. A source is npm:NAME[@VERSION], git:HOST/PATH[@REF],\n\
             git:git@HOST:PATH, https://HOST/PATH, ssh://HOST/PATH, or a directory."
        }
        PackageCommandName::Remove => {
            "Remove a package from the settings and delete its files. Alias: pinch uninstall."
        }
        PackageCommandName::Update => {
            "Show how to update pinch, update packages, or fetch newer catalogs of models. Packages pinned to a version are\n\
             not updated."
        }
        PackageCommandName::List => "List the packages of the user and of a trusted project.",
        PackageCommandName::Config => {
            "Enable or disable extensions, skills, prompts and themes, in the settings of the user or of the project."
        }
    };
    let options = options(name).into_iter().map(|(names, value, about)| {
        let value = value.map(|value| format!(" <{value}>")).unwrap_or_default();
        format!("\n  {:<19}{about}", format!("{names}{value}"))
    });
    format!("Usage: {}\n\n{about}\n\nOptions:{}", usage(name), options.collect::<String>())
}

/// Returns instructions for updating pinch itself.
pub(super) fn how_to_update(again: bool) -> String {
    let command = if again { "cargo install --force pinch-cli" } else { "cargo install pinch-cli" };
    format!(
        "pinch {} does not update itself. Run `{command}`, or download a release from \
         https://github.com/pinch-agent/pinch/releases",
        env!("CARGO_PKG_VERSION")
    )
}

/// Printed if no package was named.
pub(super) const PACKAGES_STAY: &str =
    "Packages were not updated. Use `pinch update --extensions` for all of them, or `pinch update <source>` for one";
