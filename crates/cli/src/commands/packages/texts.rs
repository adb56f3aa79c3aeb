//! What package commands say of themselves.

use super::name::Name;

/// How a command is written.
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
        Name::Install => &[("-l, --local", None, "For this project only")],
        Name::Remove => &[("-l, --local", None, "From the project's settings")],
        Name::Update => &[
            ("--self", None, "pinch only; this is what happens when nothing is named"),
            ("--extensions", None, "All packages"),
            ("--all", None, "Both"),
            ("--extension", Some("SRC"), "One package"),
            ("--models", None, "Model catalogs; they come with pinch in this version"),
            ("--force", None, "How pinch is installed again in the same version"),
        ],
        Name::List | Name::Config => &[],
    };
    const OF_ALL: [Opt; 2] = [
        ("-a, --approve", None, "The project's settings count for this command"),
        ("-na, --no-approve", None, "They do not"),
    ];
    [own, &OF_ALL].concat()
}

/// What a command is told besides options.
pub(super) fn argument(name: Name) -> Option<&'static str> {
    match name {
        Name::Install | Name::Remove | Name::Update => Some("source"),
        Name::List | Name::Config => None,
    }
}

/// A command, explained.
pub(super) fn help(name: Name) -> String {
    let about = match name {
        Name::Install => {
            "Fetches a package and adds it to the settings. A source is npm:NAME[@VERSION], git:HOST/PATH[@REF],\n\
             git:git@HOST:PATH, https://HOST/PATH, ssh://HOST/PATH, or a folder."
        }
        Name::Remove => {
            "Takes a package out of the settings and removes what was fetched of it. Also: pinch uninstall."
        }
        Name::Update => {
            "Says how pinch is updated, and brings packages up to date. Packages of which a version is named stay."
        }
        Name::List => "Lists the packages of the user and of a trusted project.",
        Name::Config => "Switches resources of packages on and off.",
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
        "This is pinch {}. It does not replace itself: run `{command}`, or take a release from \
         https://github.com/pinch-agent/pinch/releases",
        env!("CARGO_PKG_VERSION")
    )
}

/// Said when nothing was named.
pub(super) const PACKAGES_STAY: &str =
    "Packages are as they were. Update them with `pinch update --extensions`, or one with `pinch update <source>`";

/// Catalogs cannot be fetched.
pub(super) const NO_MODELS: &str =
    "Model catalogs come with pinch and cannot be refreshed by themselves. Put other models into models.json";

/// Nobody can answer.
pub(super) const NO_TERMINAL: &str = "pinch config needs a terminal. Without one, change \"packages\" in settings.json: an object with a source and lists of patterns";

/// There is no such screen yet.
pub(super) const NO_CONFIG: &str = "pinch config has no screen in this version. Change \"packages\" in settings.json: an object with a source and lists \
     of patterns";
