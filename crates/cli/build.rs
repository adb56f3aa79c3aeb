//! Tells the linker how to lay out the program. Both parts need nothing but the linker, and apply only where it can be relied on.
//!
//! - **Order of functions** (`link-order.ld`): the functions that usual runs call stand together. The kernel maps a program in pieces of
//!   64 KB, so a run that calls functions everywhere keeps most of the program in memory: `pinch -p` calls 2 MB of code, and kept 12 of 20 MB
//!   (measured on x86-64). Only in release builds, and only with the linker that comes with rustc; `PINCH_LINK_ORDER=0` disables it.
//! - **Packed relocations**: they are a twentieth of the file, and all of it is read at every start; packed, a run needs 3 MB less memory.
//!   Such a program does not start with a C library older than glibc 2.36. With `PINCH_PACK_RELOCATIONS=0` they are not packed, for programs
//!   that are to run on older systems than the one that builds them.

use std::path::Path;
use std::process::Command;

/// The first version of glibc that loads packed relocations.
const FIRST: (u32, u32) = (2, 36);

/// The target whose toolchain has its own linker, and where that is.
const OWN_LINKER: (&str, &str) = ("x86_64-unknown-linux-gnu", "lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld/ld.lld");

fn main() {
    for file in ["build.rs", "link-order.ld"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for variable in ["PINCH_LINK_ORDER", "PINCH_PACK_RELOCATIONS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    if var("HOST") != var("TARGET") {
        return;
    }
    let script = Path::new(&var("CARGO_MANIFEST_DIR")).join("link-order.ld").display().to_string();
    // A comma would separate two arguments of the linker.
    if var("PINCH_LINK_ORDER") != "0" && var("PROFILE") == "release" && has_own_linker() && !script.contains(',') {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{script}");
    }
    let is_glibc = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    if var("PINCH_PACK_RELOCATIONS") != "0" && is_glibc && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns whether the program is linked by the linker of the toolchain. Others do not read every linker script, or take minutes for this one.
fn has_own_linker() -> bool {
    let flags = var("CARGO_ENCODED_RUSTFLAGS");
    let is_chosen = std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    let (target, linker) = OWN_LINKER;
    var("TARGET") == target && !is_chosen && sysroot().is_some_and(|root| Path::new(&root).join(linker).exists())
}

fn sysroot() -> Option<String> {
    let output = Command::new(var("RUSTC")).args(["--print", "sysroot"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
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
