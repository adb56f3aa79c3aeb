//! Hashes of the files that a permanent approval covers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::interpreters::CodeFiles;

/// Maximum size of a file that an approval can cover.
const MAX_SIZE: u64 = 512 * 1024 * 1024;

/// SHA-256 hashes of files by path; `None` for files that must not exist.
pub type ContentHashes = BTreeMap<String, Option<String>>;

/// Returns the SHA-256 hash of a file, or `None` if there is no file at the path.
///
/// # Errors
/// Fails if the file cannot be read, or is larger than 512 MiB.
pub fn hash_of(path: &Path) -> io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Ok(None),
        Ok(meta) if meta.len() > MAX_SIZE => return Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let mut file = File::open(path)?.take(MAX_SIZE + 1);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hasher.update(buffer.get(..n).unwrap_or_default()),
        }
    }
    Ok(Some(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Returns the hashes of the files that decide what a call runs.
///
/// # Errors
/// Fails if one of them cannot be read.
pub fn hashes_of(argv: &[String], program: &Path, cwd: &Path) -> io::Result<ContentHashes> {
    let files = CodeFiles::of(argv, Some(program), cwd);
    let mut hashes = ContentHashes::new();
    for candidates in files.arguments {
        let found = hashed(candidates)?;
        // Arguments that name no file yet may be files that the script writes.
        if found.values().any(Option::is_some) {
            hashes.extend(found);
        }
    }
    hashes.extend(hashed(files.code)?);
    Ok(hashes)
}

fn hashed(paths: Vec<PathBuf>) -> io::Result<ContentHashes> {
    paths.into_iter().map(|path| Ok((path.to_string_lossy().into_owned(), hash_of(&path)?))).collect()
}

/// Returns the first file whose content differs from its hash, or cannot be read.
pub fn first_changed(hashes: &ContentHashes) -> Option<PathBuf> {
    let is_other = |(path, hash): &(&String, &Option<String>)| hash_of(Path::new(path)).ok().as_ref() != Some(hash);
    hashes.iter().find(is_other).map(|(path, _)| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_identifies_the_content_of_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(hash_of(&path).unwrap(), None);
        assert_eq!(hash_of(dir.path()).unwrap(), None);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(hash_of(&path.join("b")).unwrap(), None);
        let expect = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_of(&path).unwrap().as_deref(), Some(expect));
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(MAX_SIZE + 1).unwrap();
        assert!(hash_of(&dir.path().join("large")).is_err());
    }

    #[test]
    fn a_changed_or_new_file_is_found_wherever_a_call_names_code() {
        for (command, before, after) in [
            ("node -r ./ok.js ./lib", "lib.js", "lib.js"),
            ("node -r ./ok.js ./lib", "lib.js", "lib"),
            ("node -r ./ok.js .", "index.js", "index.js"),
            ("node --require=./lib ok.js", "lib.js", "lib.js"),
            ("ruby -r./lib.rb ok.rb", "lib.rb", "lib.rb"),
            ("ruby -r./lib ok.rb", "lib.rb", "lib.rb"),
            ("php -d auto_prepend_file=lib.php ok.php", "lib.php", "lib.php"),
            ("php -dauto_prepend_file=lib.php ok.php", "lib.php", "lib.php"),
            ("lua -l lib ok.lua", "lib.lua", "lib.lua"),
            ("julia -Llib.jl ok.jl", "lib.jl", "lib.jl"),
            ("bash -o pipefail ok.sh", "ok.sh", "ok.sh"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
            std::fs::write(dir.path().join(before), "one").unwrap();
            let hashes = hashes_of(&argv, Path::new("/bin/sh"), dir.path()).unwrap();
            assert_eq!(first_changed(&hashes), None, "{command}");
            std::fs::write(dir.path().join(after), "two").unwrap();
            assert_eq!(first_changed(&hashes), Some(dir.path().join(after)), "{command}");
        }
    }

    #[test]
    fn files_that_a_script_may_still_write_are_not_covered() {
        let dir = tempfile::tempdir().unwrap();
        let argv = ["python3", "ok.py", "--out=new.txt", "other.txt"].map(str::to_owned);
        std::fs::write(dir.path().join("ok.py"), "one").unwrap();
        let hashes = hashes_of(&argv, Path::new("/bin/sh"), dir.path()).unwrap();
        std::fs::write(dir.path().join("new.txt"), "two").unwrap();
        std::fs::write(dir.path().join("other.txt"), "two").unwrap();
        assert_eq!(first_changed(&hashes), None);
    }
}
