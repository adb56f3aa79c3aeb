//! `cargo xtask fuzz`: runs the targets of `fuzz/` under libFuzzer.
//!
//! The programs are built with the flags of `cargo fuzz --sanitizer none`, which need no nightly compiler. What libFuzzer finds on its way
//! is kept below `target/fuzz/corpus`, and inputs that break a law below `target/fuzz/found`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo;

const MANIFEST: &str = "fuzz/Cargo.toml";

/// Instrumentation that libFuzzer uses to see which code an input reaches.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "--cfg fuzzing",
];

/// The longest input that is added to the committed corpus, in bytes. Longer ones reach little that short ones do not.
const MAX_COMMITTED: usize = 256;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
#[command(after_help = targets_help())]
pub(crate) struct Args {
    /// The target, or `all` to run each of them in turn.
    target: String,
    /// How long to run each target.
    #[arg(required_unless_present_any = ["replay", "keep"])]
    seconds: Option<u64>,
    /// Run this input once instead, to see why it fails.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "keep"])]
    replay: Option<PathBuf>,
    /// Add found inputs that reach new code to the committed corpus instead.
    #[arg(long, conflicts_with = "seconds")]
    keep: bool,
}

/// Runs the command; returns true when no law was broken.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let known = targets()?;
    let chosen: Vec<&str> = match args.target.as_str() {
        "all" => known.iter().map(|target| target.name.as_str()).collect(),
        name if known.iter().any(|target| target.name == name) => vec![name],
        name => bail!("there is no fuzz target {name:?}\nhint: `cargo xtask fuzz --help` lists them"),
    };
    if args.replay.is_some() && args.target == "all" {
        bail!("--replay runs one input of one target, and not of all\nhint: name the target that the input is for");
    }
    let programs = build()?;
    let mut failed = Vec::new();
    for name in &chosen {
        let fuzzer = Fuzzer { name, program: programs.join(name) };
        let is_good = match (&args.replay, args.keep) {
            (Some(file), _) => fuzzer.replay(file)?,
            (None, true) => fuzzer.keep()?,
            (None, false) => fuzzer.search(args.seconds.unwrap_or(0))?,
        };
        if !is_good {
            failed.push(*name);
        }
    }
    match failed.is_empty() {
        true => println!("==> {}: no law was broken", chosen.join(", ")),
        false => println!("==> a law was broken: {}", failed.join(", ")),
    }
    Ok(failed.is_empty())
}

/// A target, as its program describes it.
struct ListedTarget {
    name: String,
    about: String,
}

/// Reads the targets from the directory of their programs.
fn targets() -> anyhow::Result<Vec<ListedTarget>> {
    let folder = cargo::root().join("fuzz/src/bin");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let about = text.lines().next().and_then(|line| line.strip_prefix("//! ")).unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        targets.push(ListedTarget { name, about: about.trim_end_matches('.').to_owned() });
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

fn targets_help() -> String {
    let lines = targets().unwrap_or_default();
    let lines = lines.iter().map(|target| format!("  {:<15}{}\n", target.name, target.about));
    format!("Targets:\n{}", lines.collect::<String>())
}

/// Builds the programs and returns their directory.
fn build() -> anyhow::Result<PathBuf> {
    check_compiler()?;
    let host = host()?;
    let target = target_folder()?;
    let target_text = target.to_str().context("the target directory is no text")?;
    // With `--target`, build scripts and macros are not instrumented.
    let args = ["build", "--release", "--locked", "--features", "libfuzzer", "--bins", "--manifest-path", MANIFEST];
    let args = [&args[..], &["--target-dir", target_text, "--target", &host]].concat();
    // Incremental builds would only take space: instrumented code has one unit for each crate.
    if !cargo::run(&args, &[("RUSTFLAGS", &FLAGS.join(" ")), ("CARGO_INCREMENTAL", "0")])? {
        bail!("cannot build the fuzz targets; see above");
    }
    Ok(target.join(host).join("release"))
}

/// libFuzzer is C++, and compiled with the rest.
fn check_compiler() -> anyhow::Result<()> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let status = Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "cannot run {compiler}: libFuzzer needs a C++ compiler\n\
             hint: install one (Debian: `apt install g++`; Fedora: `dnf install gcc-c++`; macOS: `xcode-select --install`), or name it in CXX"
        ),
    }
}

fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

fn target_folder() -> anyhow::Result<PathBuf> {
    let metadata = cargo::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target).join("fuzz"))
}

/// The program of one target.
struct Fuzzer<'a> {
    name: &'a str,
    program: PathBuf,
}

impl Fuzzer<'_> {
    /// Searches for an input that breaks a law.
    fn search(&self, seconds: u64) -> anyhow::Result<bool> {
        // Zero would mean for ever.
        let time = format!("-max_total_time={}", seconds.max(1));
        let found = folder(&target_folder()?.join("found").join(self.name))?;
        let prefix = format!("-artifact_prefix={}/", found.display());
        let is_good = self.start(
            &[&time, &prefix, "-timeout=10", "-rss_limit_mb=4096", "-print_final_stats=1"],
            &[self.found_corpus()?, self.committed()],
        )?;
        if !is_good {
            println!(
                "==> {name}: the input is in {found}\nhint: `cargo xtask fuzz {name} --replay FILE` runs it again; \
                 copy it to fuzz/corpus/{name} with the fix",
                name = self.name,
                found = found.display(),
            );
        }
        Ok(is_good)
    }

    fn replay(&self, file: &Path) -> anyhow::Result<bool> {
        let file = std::path::absolute(file).with_context(|| format!("cannot find {}", file.display()))?;
        if !file.is_file() {
            bail!("{} is not a file", file.display());
        }
        self.start(&[], &[file])
    }

    /// Copies the fewest inputs that reach all new code to the committed corpus, however often they reach it.
    fn keep(&self) -> anyhow::Result<bool> {
        let max = format!("-max_len={MAX_COMMITTED}");
        let args = ["-set_cover_merge=1", "-use_counters=0", &max];
        self.start(&args, &[folder(&self.committed())?, self.found_corpus()?])
    }

    fn start(&self, args: &[&str], paths: &[PathBuf]) -> anyhow::Result<bool> {
        println!("\n==> {} {}", self.name, args.join(" "));
        let mut command = Command::new(&self.program);
        command.args(args).args(paths).current_dir(cargo::root());
        Ok(command.status().with_context(|| format!("cannot start {}", self.program.display()))?.success())
    }

    fn committed(&self) -> PathBuf {
        cargo::root().join("fuzz/corpus").join(self.name)
    }

    fn found_corpus(&self) -> anyhow::Result<PathBuf> {
        folder(&target_folder()?.join("corpus").join(self.name))
    }
}

fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct FuzzCommand {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn every_target_is_listed_with_a_description() {
        let targets = targets().unwrap();
        assert!(targets.len() >= 10 && targets.iter().all(|target| !target.about.is_empty()));
        assert!(targets_help().contains("  chunker        Blocks of a long reply\n"));
    }

    #[test]
    fn a_target_needs_a_time_unless_an_input_is_replayed_or_kept() {
        let is_valid = |args: &[&str]| FuzzCommand::try_parse_from([&["fuzz"], args].concat()).is_ok();
        assert!(is_valid(&["sse", "5"]) && is_valid(&["sse", "--replay", "x"]) && is_valid(&["all", "--keep"]));
        assert!(!is_valid(&["sse"]) && !is_valid(&["sse", "-1"]) && !is_valid(&["sse", "5", "--keep"]));
    }

    #[test]
    fn an_unknown_target_is_an_error_before_anything_is_built() {
        let args = Args { target: "nope".into(), seconds: Some(1), replay: None, keep: false };
        assert!(run(&args).unwrap_err().to_string().contains("there is no fuzz target"));
    }
}
