//! A test binary with a single test, with the arguments and the output of Rust's own test harness.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use serde_json::json;

/// The name of the test.
const NAME: &str = "every_case_holds";
/// Exit code of Rust's test harness when a test failed.
const FAILED: u8 = 101;

/// Run the recorded cases as one test, every_case_holds. `cargo xtask cases` can run a selection and prints more
#[derive(Debug, Parser)]
#[command(name = "cases")]
pub struct HarnessOptions {
    /// Run the test only if its name contains one of these texts
    #[arg(value_name = "FILTERS")]
    filters: Vec<String>,
    /// Filters and --skip match whole names
    #[arg(long)]
    exact: bool,
    /// Leave out tests whose names contain this text; may be given several times
    #[arg(long, value_name = "FILTER")]
    skip: Vec<String>,
    /// List the test instead of running it
    #[arg(long)]
    list: bool,
    /// Print the tables even if all cases pass
    #[arg(long, alias = "no-capture", alias = "show-output")]
    nocapture: bool,
    /// Print one character per test; the same as --format terse
    #[arg(short, long)]
    quiet: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value = "pretty")]
    format: OutputFormat,
    /// Run only ignored tests (there are none)
    #[arg(long)]
    ignored: bool,
    /// Also write the result to this file
    #[arg(long, value_name = "PATH")]
    logfile: Option<PathBuf>,
    #[command(flatten)]
    without_effect: WithoutEffect,
}

/// Options that only matter for several tests, benchmarks or colours.
#[derive(Debug, clap::Args)]
struct WithoutEffect {
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, hide = true)]
    test: bool,
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, hide = true)]
    force_run_in_process: bool,
    #[arg(long, hide = true)]
    exclude_should_panic: bool,
    #[arg(long, hide = true)]
    shuffle: bool,
    #[arg(long, hide = true)]
    shuffle_seed: Option<u64>,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
    #[arg(long, hide = true)]
    color: Option<String>,
    #[arg(long, hide = true)]
    report_time: bool,
    #[arg(long, hide = true)]
    ensure_time: bool,
    #[arg(short = 'Z', hide = true)]
    unstable: Vec<String>,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// One line per test.
    Pretty,
    /// One character per test.
    Terse,
    /// One JSON line per event.
    Json,
    /// An XML document.
    Junit,
}

impl HarnessOptions {
    /// Parses the arguments of this process. Exits for help and for invalid arguments.
    #[must_use]
    pub fn parse_or_exit() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            drop(error.print());
            std::process::exit(if error.use_stderr() { i32::from(FAILED) } else { 0 });
        })
    }

    /// Whether the options select the test.
    fn selects(&self) -> bool {
        let matches = |filter: &String| if self.exact { filter == NAME } else { NAME.contains(filter.as_str()) };
        let is_benchmark_run = self.without_effect.bench && !self.without_effect.test;
        (self.filters.is_empty() || self.filters.iter().any(matches))
            && !self.skip.iter().any(matches)
            && !self.ignored
            && !is_benchmark_run
    }

    fn format(&self) -> OutputFormat {
        if self.quiet && self.format == OutputFormat::Pretty { OutputFormat::Terse } else { self.format }
    }
}

/// Carries out the options. The test's output is shown if it fails, or if output is not captured.
pub fn run(options: &HarnessOptions, test: impl FnOnce() -> Result<String, String>, out: &mut impl Write) -> ExitCode {
    match run_and_write(options, test, out) {
        Ok(true) => ExitCode::SUCCESS,
        // Also if the output is no longer read.
        Ok(false) | Err(_) => ExitCode::from(FAILED),
    }
}

/// Returns true if no test failed.
fn run_and_write(
    options: &HarnessOptions,
    test: impl FnOnce() -> Result<String, String>,
    out: &mut impl Write,
) -> io::Result<bool> {
    if options.list {
        return list(options, out).map(|()| true);
    }
    let format = options.format();
    begin(format, options.selects(), out)?;
    let began = Instant::now();
    let result = options.selects().then(test);
    let seconds = began.elapsed().as_secs_f64();
    match format {
        OutputFormat::Pretty | OutputFormat::Terse => end_text(options, result.as_ref(), seconds, out)?,
        OutputFormat::Json => end_json(result.as_ref(), seconds, out)?,
        OutputFormat::Junit => end_junit(result.as_ref(), seconds, out)?,
    }
    if let (Some(path), Some(result)) = (&options.logfile, &result) {
        std::fs::write(path, format!("{} {NAME}\n", if result.is_ok() { "ok" } else { "failed" }))?;
    }
    Ok(!matches!(result, Some(Err(_))))
}

fn list(options: &HarnessOptions, out: &mut impl Write) -> io::Result<()> {
    if options.selects() {
        writeln!(out, "{NAME}: test")?;
    }
    if options.format() == OutputFormat::Pretty {
        writeln!(out, "\n{}, 0 benchmarks", n_tests(options.selects()))?;
    }
    Ok(())
}

fn n_tests(is_one: bool) -> &'static str {
    if is_one { "1 test" } else { "0 tests" }
}

fn begin(format: OutputFormat, is_one: bool, out: &mut impl Write) -> io::Result<()> {
    match format {
        OutputFormat::Pretty | OutputFormat::Terse => writeln!(out, "\nrunning {}", n_tests(is_one))?,
        OutputFormat::Json => {
            writeln!(out, "{}", json!({"type": "suite", "event": "started", "test_count": u8::from(is_one)}))?;
            if is_one {
                writeln!(out, "{}", json!({"type": "test", "event": "started", "name": NAME}))?;
            }
        }
        OutputFormat::Junit => {}
    }
    Ok(())
}

/// Number of tests that passed, failed and were filtered out.
fn counts(result: Option<&Result<String, String>>) -> [u8; 3] {
    match result {
        Some(Ok(_)) => [1, 0, 0],
        Some(Err(_)) => [0, 1, 0],
        None => [0, 0, 1],
    }
}

fn end_text(
    options: &HarnessOptions,
    result: Option<&Result<String, String>>,
    seconds: f64,
    out: &mut impl Write,
) -> io::Result<()> {
    let [passed, failed, filtered_out] = counts(result);
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    match (result, options.format()) {
        (None, _) => {}
        (Some(_), OutputFormat::Pretty) => writeln!(out, "test {NAME} ... {verdict}")?,
        (Some(_), _) => writeln!(out, "{}", if failed == 0 { "." } else { "F" })?,
    }
    match result {
        Some(Ok(output)) if options.nocapture => write!(out, "{output}")?,
        Some(Err(output)) => {
            writeln!(out, "\nfailures:\n\n---- {NAME} stdout ----\n{output}\n\nfailures:\n    {NAME}")?;
        }
        _ => {}
    }
    writeln!(
        out,
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {filtered_out} filtered out; \
         finished in {seconds:.2}s\n"
    )
}

fn end_json(result: Option<&Result<String, String>>, seconds: f64, out: &mut impl Write) -> io::Result<()> {
    let [passed, failed, filtered_out] = counts(result);
    let verdict = if failed == 0 { "ok" } else { "failed" };
    if let Some(result) = result {
        let mut event = json!({"type": "test", "name": NAME, "event": verdict});
        if let Err(output) = result {
            event["stdout"] = output.as_str().into();
        }
        writeln!(out, "{event}")?;
    }
    let suite = json!({
        "type": "suite", "event": verdict, "passed": passed, "failed": failed, "ignored": 0, "measured": 0,
        "filtered_out": filtered_out, "exec_time": seconds,
    });
    writeln!(out, "{suite}")
}

fn end_junit(result: Option<&Result<String, String>>, seconds: f64, out: &mut impl Write) -> io::Result<()> {
    let [passed, failed, _] = counts(result);
    let failure = match result {
        Some(Err(output)) => format!("<failure type=\"assert\" message=\"{}\"/>", escaped(output)),
        _ => String::new(),
    };
    let case = match result {
        Some(_) => format!("<testcase classname=\"cases\" name=\"{NAME}\" time=\"{seconds}\">{failure}</testcase>"),
        None => String::new(),
    };
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><testsuites><testsuite name=\"test\" package=\"test\" id=\"0\" \
         errors=\"0\" failures=\"{failed}\" tests=\"{}\" skipped=\"0\">{case}</testsuite></testsuites>",
        passed + failed
    )
}

/// Escapes a text for an XML attribute value.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            // XML allows no other control characters, not even escaped.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for these arguments without the time taken, and whether it was successful.
    fn written(args: &[&str], result: Result<&str, &str>) -> (String, bool) {
        let options = HarnessOptions::try_parse_from([&["cases"], args].concat()).unwrap();
        let mut out = Vec::new();
        let test = || result.map(str::to_owned).map_err(str::to_owned);
        let is_ok = run_and_write(&options, test, &mut out).unwrap();
        let time = regex::Regex::new(r#"finished in [\d.]+s|"exec_time":[^,}]+| time="[^"]+""#).unwrap();
        (time.replace_all(&String::from_utf8(out).unwrap(), "TIME").into_owned(), is_ok)
    }

    fn selects(args: &[&str]) -> bool {
        written(args, Ok("")).0.contains("1 passed")
    }

    #[test]
    fn filters_choose_as_in_other_test_binaries() {
        let yes: [&[&str]; 7] = [
            &[],
            &["every_case"],
            &["other", "case_holds"],
            &["--exact", NAME],
            &["--test-threads=2", "--nocapture", "--color", "never", "-Z", "unstable-options"],
            &["--skip", "other", "--include-ignored"],
            &["--exact", "--skip", "every_case"],
        ];
        let no: [&[&str]; 6] = [
            &["cases"],
            &["--exact", "every_case"],
            &["--skip", "case"],
            &["--ignored"],
            &["--bench"],
            &["other", "-q"],
        ];
        assert!(yes.iter().all(|args| selects(args)), "{:?}", yes.iter().find(|args| !selects(args)));
        assert!(!no.iter().any(|args| selects(args)), "{:?}", no.iter().find(|args| selects(args)));
    }

    #[test]
    fn the_list_names_the_test_that_would_run() {
        assert_eq!(written(&["--list"], Err("not run")).0, "every_case_holds: test\n\n1 test, 0 benchmarks\n");
        assert_eq!(
            written(&["--list", "--format", "terse"], Err("not run")),
            ("every_case_holds: test\n".into(), true)
        );
        assert_eq!(written(&["--list", "--format", "terse", "--ignored"], Err("not run")).0, "");
    }

    #[test]
    fn output_is_shown_on_failure_and_when_it_is_not_captured() {
        let passed = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; TIME\n\n";
        assert_eq!(
            written(&[], Ok("tables\n")),
            (format!("\nrunning 1 test\ntest every_case_holds ... ok\n\n{passed}"), true)
        );
        assert_eq!(written(&["-q"], Ok("tables\n")).0, format!("\nrunning 1 test\n.\n\n{passed}"));
        assert!(written(&["--nocapture"], Ok("tables\n")).0.contains("... ok\ntables\n"));
        let (failed, is_ok) = written(&[], Err("FAILED x\n"));
        assert!(failed.contains("---- every_case_holds stdout ----\nFAILED x\n") && !is_ok, "{failed}");
    }

    #[test]
    fn machines_can_read_the_result() {
        let (json, is_ok) = written(&["--format", "json"], Err("why\n"));
        let events: Vec<serde_json::Value> =
            json.replace("TIME", "\"exec_time\":0").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [started, test_started, test, suite] = &events[..] else { panic!("{json}") };
        assert_eq!(started, &json!({"type": "suite", "event": "started", "test_count": 1}));
        assert_eq!(test_started, &json!({"type": "test", "event": "started", "name": NAME}));
        assert_eq!(test, &json!({"type": "test", "name": NAME, "event": "failed", "stdout": "why\n"}));
        assert_eq!((&suite["event"], &suite["failed"], is_ok), (&json!("failed"), &json!(1), false));
        let (junit, _) = written(&["--format=junit"], Err("a < \"b\"\n"));
        assert!(
            junit.contains("failures=\"1\" tests=\"1\"") && junit.contains("message=\"a &lt; &quot;b&quot;&#10;\""),
            "{junit}"
        );
    }
}
