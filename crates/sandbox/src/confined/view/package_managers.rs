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

/// Largest file that is copied, in bytes.
const MAX_SIZE: u64 = 256 * 1024;

/// Copies the files that exist, without settings that have credentials.
pub(super) fn copy_configuration(real_home: &Path, home: &Path) -> io::Result<()> {
    for (name, secret) in FILES {
        let from = real_home.join(name);
        if !from.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SIZE) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&from) else { continue };
        let to = home.join(name);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(to, without_credentials(&text, secret))?;
    }
    Ok(())
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
        copy_configuration(home.path(), inside.path()).unwrap();
        let copied = |name: &str| std::fs::read_to_string(inside.path().join(name)).unwrap();
        let expect = "registry=https://npm.example/\nstrict-ssl=false\n@scope:registry=https://b.example";
        assert_eq!(copied(".npmrc"), expect);
        let expect = "[global]\nindex-url = https://pip.example/simple\nextra-index-url =\n    https://ok.example/simple\ntimeout = 7\n";
        assert_eq!(copied(".config/pip/pip.conf"), expect);
        assert!(!inside.path().join(".yarnrc").exists());
    }
}
