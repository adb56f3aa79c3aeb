//! Build time and size of pinch.
//!
//! Builds the package of the README's first command in a separate target directory: as that command does, and in release mode.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde_json::Value;

use super::Figure;
use crate::cargo;

mod elf;

const PACKAGE: &str = "pinch-cli";
/// Files without submodules, and their crates.
const LEAVES: [(&str, &str); 2] = [("replies", "crates/replies/src/fence.rs"), ("cli", "crates/cli/src/exit.rs")];

/// Builds from scratch, and again after small changes.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let target = cargo::target_dir()?.join("bench-build");
    if target.exists() {
        std::fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    let first = build(&target, BuildProfile::Dev)?;
    let clean = build(&target, BuildProfile::Release)?;
    let program = target.join("release").join(format!("pinch{}", std::env::consts::EXE_SUFFIX));
    let bytes = std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let text = elf::section_size(&bytes, ".text").with_context(|| format!("{} has no .text", program.display()))?;
    let mut figures = vec![
        // What people wait for who try pinch; `cargo install` is for those who stay.
        Figure::at_most("build of the README's first command, processor time", first.processor, 270.0, "s")
            .failing_at(360.0),
        Figure::shown("build of the README's first command", first.wall, "s"),
        Figure::shown("clean release build, processor time", clean.processor, "s"),
        Figure::shown("clean release build", clean.wall, "s"),
        Figure::shown("size of the program", bytes.len() as f64 / 1e6, "MB"),
        Figure::shown("its machine code (.text)", text as f64 / 1e6, "MB"),
    ];
    for (crate_name, leaf) in LEAVES {
        touch(&cargo::root().join(leaf))?;
        let again = build(&target, BuildProfile::Release)?;
        figures.push(Figure::shown(format!("rebuild after a change in {crate_name}"), again.wall, "s"));
    }
    print_packages()?;
    Ok(figures)
}

/// Duration of a build, in seconds.
struct Took {
    wall: f64,
    processor: f64,
}

#[derive(Clone, Copy)]
enum BuildProfile {
    Dev,
    Release,
}

impl BuildProfile {
    fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }
}

fn build(target: &Path, profile: BuildProfile) -> anyhow::Result<Took> {
    let target = target.to_str().context("the target directory is no text")?;
    let (before, began) = (children_seconds()?, Instant::now());
    let profile = profile.name();
    if !cargo::run(&["build", "--profile", profile, "--locked", "--package", PACKAGE, "--target-dir", target])? {
        bail!("the {profile} build failed");
    }
    Ok(Took { wall: began.elapsed().as_secs_f64(), processor: children_seconds()? - before })
}

/// Processor time of all finished child processes, including their own children.
fn children_seconds() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // The program name is in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')').context("an unusual /proc/self/stat")?;
    let ticks = |at: usize| -> anyhow::Result<f64> {
        let field = fields.split_ascii_whitespace().nth(at).context("a short /proc/self/stat")?;
        Ok(field.parse::<u64>()? as f64)
    };
    // cutime and cstime, the 16th and 17th of all fields.
    Ok((ticks(13)? + ticks(14)?) / rustix::param::clock_ticks_per_second() as f64)
}

/// Makes a file look changed without changing its content.
fn touch(path: &Path) -> anyhow::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let unchanged = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access: unchanged, last_modification: now };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())
        .with_context(|| format!("cannot touch {}", path.display()))
}

/// Prints the number of other packages that each crate of the workspace needs with its default features.
fn print_packages() -> anyhow::Result<()> {
    println!("\n{:<24} {:>9}", "crate", "packages");
    for name in members()? {
        println!("{name:<24} {:>9}", n_packages(&name)?);
    }
    Ok(())
}

fn members() -> anyhow::Result<Vec<String>> {
    let metadata: Value =
        serde_json::from_str(&output(&["metadata", "--format-version", "1", "--no-deps", "--locked"])?)?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    ensure!(!packages.is_empty(), "cargo metadata names no packages");
    Ok(packages.iter().filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
}

fn n_packages(name: &str) -> anyhow::Result<usize> {
    let tree =
        output(&["tree", "--locked", "--package", name, "--edges", "normal", "--prefix", "none", "--format", "{p}"])?;
    let packages: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    // The first one is the crate itself.
    Ok(packages.len().saturating_sub(1))
}

fn output(args: &[&str]) -> anyhow::Result<String> {
    let output = cargo::command().args(args).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_files_that_are_touched_are_there() {
        for (crate_name, leaf) in LEAVES {
            assert!(cargo::root().join(leaf).is_file(), "{crate_name}: {leaf}");
        }
    }

    #[test]
    fn time_of_children_grows_with_their_work() {
        let before = children_seconds().unwrap();
        assert!(
            Command::new("sh")
                .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
                .status()
                .unwrap()
                .success()
        );
        assert!(children_seconds().unwrap() > before);
    }
}
