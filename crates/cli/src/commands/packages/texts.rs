//! Help and messages of the package commands.

use super::name::Name;

/// The usage line of a command.
pub(super) fn usage(name: Name) -> &'static str {
    match name {
        Name::Install => "pinch install <source> [-l] [--approve|--no-approve]",
        Name::Remove => "pinch remove <source> [-l] [--approve|--no-approve]",
        Name::Update => {
            "pinch update [source|self|pinch] [--self|--extensions|--models|--all] [--extension <source>] \
             [--approve|--no-approve] [--force]"
        }
        Name::List => "pinch list [--approve|--no-approve]",
        Name::Config => "pinch config [--approve|--no-approve]",
    }
}

/// Names of an option, what its value is called, and what it does.
pub(super) type Opt = (&'static str, Option<&'static str>, &'static str);

/// The options of a command; one for help is there besides.
pub(super) fn options(name: Name) -> Vec<Opt> {
    let own: &[Opt] = match name {
        Name::Install => &[("-l, --local", None, "Use the project's settings")],
        Name::Remove => &[("-l, --local", None, "Use the project's settings")],
        Name::Update => &[
            ("--self", None, "Update pinch itself (the default)"),
            ("--extensions", None, "Update all packages"),
            ("--all", None, "Update pinch and all packages"),
            ("--extension", Some("SRC"), "Update one package"),
            ("--models", None, "Update model catalogs; not supported, they are part of pinch"),
            ("--force", None, "Show how to reinstall the same version of pinch"),
        ],
        Name::List | Name::Config => &[],
    };
    const OF_ALL: [Opt; 2] = [
        ("-a, --approve", None, "Trust the project for this command"),
        ("-na, --no-approve", None, "Do not trust the project for this command"),
    ];
    [own, &OF_ALL].concat()
}

/// The positional argument of a command.
pub(super) fn argument(name: Name) -> Option<&'static str> {
    match name {
        Name::Install | Name::Remove | Name::Update => Some("source"),
        Name::List | Name::Config => None,
    }
}

/// The help of a command.
pub(super) fn help(name: Name) -> String {
    let about = match name {
        Name::Install => {
            "Install a package and add it to the settings. A source is npm:NAME[@VERSION], git:HOST/PATH[@REF],\n\
             git:git@HOST:PATH, https://HOST/PATH, ssh://HOST/PATH, or a directory."
        }
        Name::Remove => "Remove a package from the settings and delete its files. Alias: pinch uninstall.",
        Name::Update => "Show how to update pinch, and update packages. Packages pinned to a version are not updated.",
        Name::List => "List the packages of the user and of a trusted project.",
        Name::Config => "Enable or disable resources of packages.",
    };
    let options = options(name).into_iter().map(|(names, value, about)| {
        let value = value.map(|value| format!(" <{value}>")).unwrap_or_default();
        format!("\n  {:<19}{about}", format!("{names}{value}"))
    });
    format!("Usage: {}\n\n{about}\n\nOptions:{}", usage(name), options.collect::<String>())
}

/// How the program itself is updated.
pub(super) fn how_to_update(again: bool) -> String {
    let command = if again { "cargo install --force pinch-cli" } else { "cargo install pinch-cli" };
    format!(
        "pinch {} does not update itself. Run `{command}`, or download a release from \
         https://github.com/pinch-agent/pinch/releases",
        env!("CARGO_PKG_VERSION")
    )
}

/// Printed when no package was named.
pub(super) const PACKAGES_STAY: &str =
    "Packages were not updated. Use `pinch update --extensions` for all of them, or `pinch update <source>` for one";

/// The error of `pinch update --models`.
pub(super) const NO_MODELS: &str =
    "model catalogs are part of pinch and cannot be updated separately\nhint: add models to models.json";

/// The error of `pinch config` without a terminal.
pub(super) const NO_TERMINAL: &str = "pinch config needs a terminal\nhint: edit \"packages\" in settings.json: an object with a source and lists of patterns";

/// The error of `pinch config` in a terminal.
pub(super) const NO_CONFIG: &str = "pinch config is not supported yet\nhint: edit \"packages\" in settings.json: an object with a source and lists of patterns";
