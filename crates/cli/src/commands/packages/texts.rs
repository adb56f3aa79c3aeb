//! What package commands say of themselves.

use super::parse::Name;

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

const OPTIONS: &str = "  -a, --approve      The project's settings count for this command\n  \
    -na, --no-approve  They do not";

/// A command, explained.
pub(super) fn help(name: Name) -> String {
    let (about, options) = match name {
        Name::Install => (
            "Fetches a package and adds it to the settings. A source is npm:NAME[@VERSION], git:HOST/PATH[@REF],\n\
             git:git@HOST:PATH, https://HOST/PATH, ssh://HOST/PATH, or a folder.",
            "  -l, --local        For this project only\n",
        ),
        Name::Remove => (
            "Takes a package out of the settings and removes what was fetched of it. Also: pinch uninstall.",
            "  -l, --local        From the project's settings\n",
        ),
        Name::Update => (
            "Says how pinch is updated, and brings packages up to date. Packages of which a version is named stay.",
            "  --self             pinch only; this is what happens when nothing is named\n  \
             --extensions       All packages\n  \
             --all              Both\n  \
             --extension <SRC>  One package\n  \
             --models           Model catalogs; they come with pinch in this version\n  \
             --force            How pinch is installed again in the same version\n",
        ),
        Name::List => ("Lists the packages of the user and of a trusted project.", ""),
        Name::Config => ("Switches resources of packages on and off.", ""),
    };
    format!("Usage: {}\n\n{about}\n\nOptions:\n{options}{OPTIONS}", usage(name))
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
