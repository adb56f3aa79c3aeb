//! The Node program that runs JavaScript extensions. It is part of pinch, and installed in the agent's directory.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::{Access, create_private_dir, write_atomic};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../extension-host/", $name)))),*]
    };
}

/// The file to run.
const MAIN: &str = "pinch-extension-host.mjs";

/// All files with their texts.
const FILES: &[(&str, &str)] = files![
    "pinch-extension-host.mjs",
    "components.mjs",
    "context.mjs",
    "drawing.mjs",
    "events.mjs",
    "hooks.mjs",
    "imports.mjs",
    "link.mjs",
    "models.mjs",
    "providers.mjs",
    "registrations.mjs",
    "screen.mjs",
    "session.mjs",
    "ui.mjs",
];

/// Installs the program in the agent's directory, unless it is there, and returns the path of the file to run.
///
/// Each version of pinch has its own directory, so that one does not replace files which another is loading.
///
/// # Errors
/// Fails if a file cannot be written.
pub(super) fn install(agent_dir: &Path) -> std::io::Result<PathBuf> {
    let dir = agent_dir.join(concat!("bin/extension-host-", env!("CARGO_PKG_VERSION")));
    for (name, text) in FILES {
        let path = dir.join(name);
        if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            create_private_dir(&dir)?;
            write_atomic(&path, text.as_bytes(), Access::NewPrivate)?;
        }
    }
    Ok(dir.join(MAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_installed_and_replaced_when_they_differ() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("extension-host");
        let mut names: Vec<String> =
            std::fs::read_dir(source).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let mut installed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        installed.sort_unstable();
        assert_eq!(installed, names);

        let agent_dir = tempfile::tempdir().unwrap();
        let main = install(agent_dir.path()).unwrap();
        std::fs::write(&main, "changed").unwrap();
        std::fs::remove_file(main.with_file_name("ui.mjs")).unwrap();
        assert_eq!(install(agent_dir.path()).unwrap(), main);
        for (name, text) in FILES {
            assert_eq!(std::fs::read_to_string(main.with_file_name(name)).unwrap(), *text, "{name}");
        }
    }
}
