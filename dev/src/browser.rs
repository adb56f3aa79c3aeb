//! `cargo xtask browser`: opens a session's page in a real browser, to check what its script renders and that it contacts no server, and to
//! take screenshots.
//!
//! The browser is named by `CHROME`; `cargo xtask` sets it to one on the search path. Screenshots go to `target/browser`.

mod sample;

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use pinch_coding_agent::export::{html, page_theme};
use pinch_coding_agent::resources::themes::Theme;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_stdx::host::Host;

use crate::bench::session::{Shape, long_session};
use crate::cargo;

/// Time limit for one run of the browser.
const LIMIT: Duration = Duration::from_secs(60);
const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";

/// Arguments of `cargo xtask browser`: none.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; returns true when everything passes. Fails without a browser, because nothing would be checked.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    let Some(program) = std::env::var_os("CHROME").map(PathBuf::from) else {
        println!(
            "There is no browser: put chromium on the search path (Debian: apt-get install chromium), or name one with CHROME"
        );
        return Ok(false);
    };
    let folder = cargo::target_dir()?.join("browser");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let server = BrowserListener::start()?;
    let page = make_page(&folder, "sample", &sample::session(&server.address))?;
    let browser = Browser { program, profile: tempfile::tempdir()? };
    let whole = format!("file://{}", page.display());
    let bare = format!("file://{}", without_script(&page)?.display());
    notices(&browser, &folder, &server)?;
    let mut problems = Vec::new();
    for (name, page, scheme, size) in [
        ("light", &whole, LIGHT, "1280,2400"),
        ("dark", &whole, DARK, "1280,2400"),
        ("narrow", &whole, LIGHT, "520,2400"),
        ("without-script", &bare, LIGHT, "1280,5600"),
        ("without-script-dark", &bare, DARK, "1280,5600"),
    ] {
        let picture = folder.join(format!("{name}.png"));
        let flags = [format!("--window-size={size}"), format!("--screenshot={}", picture.display())];
        browser.run(page, &[scheme, &flags[0], &flags[1]])?;
        ensure!(picture.is_file(), "the browser made no picture of {name}");
        println!("{}", picture.display());
    }
    let dom = browser.run(&whole, &["--dump-dom"])?;
    problems.extend(check_page(&dom, sample::N_SHOWN));
    // The other branch: up to its end, and without what follows on the first one after the fork.
    let other = browser.run(&format!("{whole}#e11"), &["--dump-dom"])?;
    problems.extend(check_branch(&other));
    check_long(&browser, &folder)?;
    let n_requests = server.n_connections.load(Ordering::Relaxed);
    if n_requests > 0 {
        problems.push(format!("the page asked a server {n_requests} times"));
    }
    problems.iter().for_each(|problem| println!("  {problem}"));
    println!("page: {} checks failed", problems.len());
    Ok(problems.is_empty())
}

/// Opens a session of 20 000 entries and 46 MB, which must be displayed within the time limit: anything quadratic in the length would not
/// be.
fn check_long(browser: &Browser, folder: &Path) -> anyhow::Result<()> {
    let page = make_page(folder, "long", &long_session(Shape::Whole))?;
    let picture = folder.join("long.png");
    let began = Instant::now();
    let address = format!("file://{}", page.display());
    browser.run(&address, &[LIGHT, "--window-size=1280,2400", &format!("--screenshot={}", picture.display())])?;
    let took = began.elapsed();
    println!("{}", picture.display());
    println!("a long session: {:.1} MB, open in {:.1} s", page.metadata()?.len() as f64 / 1e6, took.as_secs_f64());
    Ok(())
}

/// Exports a session.
fn make_page(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let session = folder.join(format!("{name}.jsonl"));
    std::fs::write(&session, text)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let store = Arc::new(JsonlStore::flat(folder));
    let log = runtime.block_on(SessionLog::open(&Host::system(), store, &SessionRef::Path(session), "/"))?;
    let themes = Theme::builtin();
    let theme = themes.first().context("there is no theme")?;
    Ok(html::export(&log, &page_theme(theme), None, folder)?)
}

/// Verifies that a page that does contact a server is noticed; otherwise the check below would be meaningless.
fn notices(browser: &Browser, folder: &Path, server: &BrowserListener) -> anyhow::Result<()> {
    let control = folder.join("control.html");
    std::fs::write(&control, format!("<!DOCTYPE html><img src=\"{}/control\">", server.address))?;
    browser.run(&format!("file://{}", control.display()), &["--dump-dom"])?;
    std::fs::remove_file(&control)?;
    ensure!(server.n_connections.swap(0, Ordering::Relaxed) > 0, "a page that asks a server was not noticed");
    Ok(())
}

/// Creates the page as it looks without its script, with everything expanded, for a screenshot.
fn without_script(page: &Path) -> anyhow::Result<PathBuf> {
    let text = std::fs::read_to_string(page)?;
    let (before, rest) = text.split_once("<script>").context("the page has no script")?;
    let (_, after) = rest.split_once("</script>").context("the page's script has no end")?;
    let bare = page.with_file_name("without-script.html");
    std::fs::write(&bare, format!("{before}{after}").replace("<details", "<details open"))?;
    Ok(bare)
}

/// Problems of the page as the browser sees it.
fn check_page(dom: &str, n_shown: usize) -> Vec<String> {
    let mut problems = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            problems.push(format!("missing: {what}"));
        }
    };
    expect(dom.contains("class=\"js\""), "the script ran");
    expect(dom.contains(&format!("data-shown=\"{n_shown}\"")), &format!("{n_shown} entries are shown"));
    expect(dom.contains("<title>A lexer without panics</title>"), "the title stays what it was");
    expect(dom.matches("<script").count() == 1, "there is one script");
    expect(dom.matches("<img").count() == 1, "there is one picture");
    expect(!dom.contains("<iframe") && !dom.contains("<link"), "no element came from a text");
    problems
}

fn check_branch(dom: &str) -> Vec<String> {
    let is_shown = |at: usize| {
        let article = dom.split_once(&format!("<article id=\"e{at}\" class=\"")).map(|(_, rest)| rest);
        article
            .and_then(|rest| rest.split_once('"'))
            .is_some_and(|(class, _)| !class.split(' ').any(|word| word == "off"))
    };
    let expected = [(2, true), (10, true), (11, true), (12, true), (13, false), (19, false)];
    let wrong = expected.into_iter().filter(|(at, shown)| is_shown(*at) != *shown);
    wrong.map(|(at, shown)| format!("on the other branch: entry {at} should be shown: {shown}")).collect()
}

/// A server that should never be contacted.
struct BrowserListener {
    address: String,
    n_connections: Arc<AtomicUsize>,
}

impl BrowserListener {
    fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let n_connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_connections);
        // Ends with the program.
        std::thread::spawn(move || {
            for _connection in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { address, n_connections })
    }
}

struct Browser {
    program: PathBuf,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a page and returns what the browser prints.
    fn run(&self, page: &str, flags: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args([
            "--headless",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--virtual-time-budget=5000",
        ]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", self.profile.path().display()));
        if is_root() {
            // The browser's own sandbox refuses to run as root, as in most containers.
            command.arg("--no-sandbox");
        }
        command.args(flags).arg(page);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut stdout = child.stdout.take().context("no output")?;
        let reader = std::thread::spawn(move || {
            let mut printed = Vec::new();
            stdout.read_to_end(&mut printed).map(|_| printed)
        });
        let began = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if began.elapsed() > LIMIT => {
                    child.kill()?;
                    child.wait()?;
                    bail!("the browser did not end within {} s", LIMIT.as_secs());
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        ensure!(status.success(), "the browser ended with {status}");
        let printed = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
