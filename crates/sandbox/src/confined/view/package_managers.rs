//! The configuration of npm and pip inside a sandbox: copies without credentials.

use std::io;
use std::path::Path;

/// Configuration files in a home directory, and the words in the names of settings with credentials.
const FILES: [(&str, &[&str]); 4] = [
    // `_authToken`, `_auth`, `_password`, `username`, `certfile`, `keyfile`, `key` and `cert`, of all registries or of one.
    (".npmrc", &["auth", "password", "username", "cert", "key", "otp"]),
    (".yarnrc", &["auth", "password", "username", "cert", "key"]),
    (".config/pip/pip.conf", &["client-cert", "client_cert", "password"]),
    (".pip/pip.conf", &["client-cert", "client_cert", "password"]),
];

/// Configuration files of the machine, which a sandbox does not see, and the files in a home directory that apply just after them.
const OF_MACHINE: [(&str, &str); 2] = [("/etc/npmrc", ".npmrc"), ("/etc/pip.conf", ".pip/pip.conf")];

/// Largest file that is copied, in bytes.
const MAX_SIZE: u64 = 256 * 1024;

/// Copies the files that exist, those of the machine first, without settings that have credentials. `root` is the machine's root directory.
pub(super) fn copy_configuration(root: &Path, real_home: &Path, home: &Path) -> io::Result<()> {
    for (name, secret) in FILES {
        let of_machine = OF_MACHINE.iter().find(|(_, of_home)| *of_home == name);
        let of_machine = of_machine.and_then(|(path, _)| readable(&root.join(path.trim_start_matches('/'))));
        let texts: Vec<String> = of_machine.into_iter().chain(readable(&real_home.join(name))).collect();
        if texts.is_empty() {
            continue;
        }
        let to = home.join(name);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // Of equal settings, the later one applies. A second header of a section would be an error for pip.
        let can_be_joined = !name.ends_with(".conf");
        let text = if can_be_joined { texts.join("\n") } else { texts.into_iter().next_back().unwrap_or_default() };
        std::fs::write(to, without_credentials(&text, secret))?;
    }
    Ok(())
}

/// Reads a small file; `None` if it is anything else.
fn readable(path: &Path) -> Option<String> {
    let is_small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SIZE);
    is_small.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Removes settings whose names contain one of the words, and those with a URL that names a user. Lines that continue a removed setting go
/// with it.
fn without_credentials(text: &str, secret: &[&str]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_removed = false;
    for line in text.split_inclusive('\n') {
        let continues = line.starts_with([' ', '\t']) && !line.trim().is_empty();
        if !continues || !is_removed {
            // The name may follow the address of a registry, which has no credentials before its last colon.
            let name = line.split_once('=').map_or(line, |(name, _)| name).to_lowercase();
            is_removed = names_user(line) || secret.iter().any(|word| name.contains(word));
        }
        if !is_removed {
            kept.push_str(line);
        }
    }
    kept
}

/// Returns whether a URL in a line has a user or a password.
fn names_user(line: &str) -> bool {
    line.match_indices("//").any(|(at, _)| {
        let authority = line[at + 2..].split(['/', '?', '#', ' ', '\t', '"']).next().unwrap_or_default();
        authority.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_credentials_are_not_copied() {
        let home = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        let npm = "registry=https://npm.example/\n//npm.example/:_authToken=hush\n_auth = hush\nstrict-ssl=false\n\
                   proxy=http://u:hush@proxy:1/\n//npm.example/:username=me\nkey=\"hush\"\n@scope:registry=https://b.example";
        std::fs::write(home.path().join(".npmrc"), npm).unwrap();
        std::fs::create_dir_all(home.path().join(".config/pip")).unwrap();
        let pip = "[global]\nindex-url = https://pip.example/simple\nextra-index-url =\n    https://ok.example/simple\n    \
                   https://me:hush@other.example/simple\n    https://after.example\ntimeout = 7\nclient-cert = hush.pem\n";
        std::fs::write(home.path().join(".config/pip/pip.conf"), pip).unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/npmrc"), "fund=false\n_auth=hush").unwrap();
        std::fs::write(root.path().join("etc/pip.conf"), "[global]\nretries = 2\n").unwrap();
        copy_configuration(root.path(), home.path(), inside.path()).unwrap();
        let copied = |name: &str| std::fs::read_to_string(inside.path().join(name)).unwrap();
        let expect = "fund=false\nregistry=https://npm.example/\nstrict-ssl=false\n@scope:registry=https://b.example";
        assert_eq!(copied(".npmrc"), expect);
        let expect = "[global]\nindex-url = https://pip.example/simple\nextra-index-url =\n    https://ok.example/simple\ntimeout = 7\n";
        assert_eq!(copied(".config/pip/pip.conf"), expect);
        assert_eq!(copied(".pip/pip.conf"), "[global]\nretries = 2\n");
        assert!(!inside.path().join(".yarnrc").exists());
    }
}
