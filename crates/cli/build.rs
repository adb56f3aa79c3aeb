//! Packs the program's relocations where the system can load that.
//!
//! They are a twentieth of the file, and all of it is read at every start: packed, a run needs 3 MB less memory (measured on x86-64). Such a
//! program does not start with a C library older than glibc 2.36. With `PINCH_PACK_RELOCATIONS=0` they are not packed, for programs that are
//! to run on older systems than the one that builds them.

use std::process::Command;

/// The first version of glibc that loads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PINCH_PACK_RELOCATIONS");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let is_for_this_system = var("HOST") == var("TARGET");
    let is_glibc = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    let is_wanted = var("PINCH_PACK_RELOCATIONS") != "0";
    if is_wanted && is_for_this_system && is_glibc && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this system's C library.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    // For example `glibc 2.41`.
    let version = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}
