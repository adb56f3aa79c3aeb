//! The environment of a program as a value: clock, ids, environment variables, home and temporary directory.
//!
//! pinch's libraries never ask the operating system for these; a binary builds one [`Host`] with [`Host::system`], a test with
//! [`Host::builder`], and everything else takes it as an argument.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub mod env;
pub mod ids;

pub use env::Env;
use ids::Ids;

/// Clock, ids, environment, home and temporary directory of one process or one tenant. Cloning is cheap and shares all of it.
#[derive(Clone, Debug)]
pub struct Host {
    parts: Arc<HostInner>,
    env: Env,
}

#[derive(Debug)]
struct HostInner {
    clock: Clock,
    ids: Ids,
    home: Option<PathBuf>,
    temp: PathBuf,
    machine: Option<MachineFacts>,
}

/// What a machine says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFacts {
    /// Its name in the network.
    pub name: String,
    /// The operating system with its release, such as `Linux 6.8.0`.
    pub os: String,
}

impl MachineFacts {
    #[cfg(unix)]
    fn of_system() -> Option<Self> {
        let uname = rustix::system::uname();
        let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
        Some(Self { name: text(uname.nodename()), os: format!("{} {}", text(uname.sysname()), text(uname.release())) })
    }

    #[cfg(not(unix))]
    fn of_system() -> Option<Self> {
        None
    }
}

#[derive(Debug)]
enum Clock {
    System,
    /// A fake clock: each reading advances it by `step` milliseconds.
    Fake {
        now: AtomicI64,
        step: i64,
    },
}

impl Host {
    /// Returns the real machine. For binaries only: this is the only place that reads the process environment.
    pub fn system() -> Self {
        let env = Env::of_process();
        let home = env.get("HOME").or_else(|| env.get("USERPROFILE")).filter(|h| !h.is_empty()).map(PathBuf::from);
        let (ids, temp, machine) = (Ids::random(), std::env::temp_dir(), MachineFacts::of_system());
        let parts = HostInner { clock: Clock::System, ids, home, temp, machine };
        Self { parts: Arc::new(parts), env }
    }

    /// Starts building a host, for tests and for tenants of a server. Defaults: system clock, random ids, empty environment, no home, a
    /// nameless machine.
    pub fn builder() -> HostBuilder {
        let (ids, temp) = (Ids::random(), std::env::temp_dir());
        let parts = HostInner { clock: Clock::System, ids, home: None, temp, machine: None };
        HostBuilder { parts, env: Env::default() }
    }

    /// Returns milliseconds since the Unix epoch, UTC.
    pub fn now_ms(&self) -> i64 {
        match &self.parts.clock {
            Clock::System => jiff::Timestamp::now().as_millisecond(),
            Clock::Fake { now, step } => now.fetch_add(*step, Ordering::Relaxed),
        }
    }

    /// Returns the current time in the format of JavaScript's `toISOString`, e.g. `2026-09-30T08:00:00.000Z`.
    pub fn now_iso(&self) -> String {
        iso_from_ms(self.now_ms())
    }

    /// Returns the last time, at or before `now_ms`, at which the local clock showed this full hour, in milliseconds since the Unix epoch.
    /// A fake clock runs in UTC.
    pub fn last_time_of_day(&self, hour: u8, now_ms: i64) -> i64 {
        let Ok(now) = jiff::Timestamp::from_millisecond(now_ms) else { return now_ms };
        let local = now.to_zoned(self.zone());
        let hour = i8::try_from(hour.min(23)).unwrap_or(0);
        let today = local.with().hour(hour).minute(0).second(0).subsec_nanosecond(0).build();
        let last = today.and_then(|today| if today <= local { Ok(today) } else { today.yesterday() });
        last.map_or(now_ms, |last| last.timestamp().as_millisecond())
    }

    /// Returns the date at a time, e.g. `2026-09-30`, in the wanted time zone if it exists, else in that of the clock. A fake clock runs in
    /// UTC.
    pub fn local_date(&self, now_ms: i64, wanted: Option<&str>) -> String {
        let now = jiff::Timestamp::from_millisecond(now_ms).unwrap_or_default();
        now.to_zoned(self.zone_or(wanted)).date().to_string()
    }

    /// Returns a time by the local clock, e.g. `2026-09-30 10:00:00 CEST`. A fake clock runs in UTC.
    pub fn local_time(&self, at_ms: i64) -> String {
        let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
        at.to_zoned(self.zone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// Returns the day of a time in Unix milliseconds, such as `Monday, 2026-01-12`, in the wanted time zone if it exists, else in that of the
    /// clock.
    pub fn local_day(&self, at_ms: i64, wanted: Option<&str>) -> String {
        let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
        at.to_zoned(self.zone_or(wanted)).strftime("%A, %Y-%m-%d").to_string()
    }

    /// Returns a time zone that exists: the wanted one, or else the system's; `None` if neither has a name. A fake clock runs in UTC.
    pub fn time_zone(&self, wanted: Option<&str>) -> Option<String> {
        self.zone_or(wanted).iana_name().map(str::to_owned)
    }

    /// Returns the wanted time zone if it exists, else that of the clock.
    fn zone_or(&self, wanted: Option<&str>) -> jiff::tz::TimeZone {
        wanted.and_then(|name| jiff::tz::TimeZone::get(name.trim()).ok()).unwrap_or_else(|| self.zone())
    }

    /// Returns the time zone of the clock.
    fn zone(&self) -> jiff::tz::TimeZone {
        match &self.parts.clock {
            Clock::System => jiff::tz::TimeZone::system(),
            Clock::Fake { .. } => jiff::tz::TimeZone::UTC,
        }
    }

    /// Returns what the machine says about itself, if known.
    pub fn machine(&self) -> Option<&MachineFacts> {
        self.parts.machine.as_ref()
    }

    /// Returns the source of ids.
    pub fn ids(&self) -> &Ids {
        &self.parts.ids
    }

    /// Returns the environment snapshot.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns a host with another environment that shares clock and ids.
    #[must_use]
    pub fn with_env(&self, env: Env) -> Self {
        Self { parts: Arc::clone(&self.parts), env }
    }

    /// Returns the home directory, if known.
    pub fn home(&self) -> Option<&Path> {
        self.parts.home.as_deref()
    }

    /// Returns the directory for temporary files.
    pub fn temp(&self) -> &Path {
        &self.parts.temp
    }
}

/// Builds a [`Host`] part by part.
#[derive(Debug)]
pub struct HostBuilder {
    parts: HostInner,
    env: Env,
}

impl HostBuilder {
    /// Uses a fake clock that starts at `start_ms` and advances by `step_ms` at each reading.
    #[must_use]
    pub fn clock(mut self, start_ms: i64, step_ms: i64) -> Self {
        self.parts.clock = Clock::Fake { now: AtomicI64::new(start_ms), step: step_ms };
        self
    }

    /// Derives ids from a seed, so that a run can be reproduced exactly.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.parts.ids = Ids::seeded(seed);
        self
    }

    /// Uses this environment.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Uses this home directory.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.parts.home = Some(home.into());
        self
    }

    /// Uses this directory for temporary files.
    #[must_use]
    pub fn temp(mut self, temp: impl Into<PathBuf>) -> Self {
        self.parts.temp = temp.into();
        self
    }

    /// Sets what the machine says about itself.
    #[must_use]
    pub fn machine(mut self, machine: MachineFacts) -> Self {
        self.parts.machine = Some(machine);
        self
    }

    /// Builds the host.
    pub fn build(self) -> Host {
        Host { parts: Arc::new(self.parts), env: self.env }
    }
}

/// Formats a Unix time in milliseconds like JavaScript's `toISOString`: UTC, three digits of milliseconds, `Z`.
///
/// Times outside the calendar's range are clamped.
pub fn iso_from_ms(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    format!("{at:.3}")
}

/// Parses an ISO 8601 time into Unix milliseconds; returns `None` if the text is not one.
pub fn ms_from_iso(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Parses a time in the format of HTTP headers, e.g. `Wed, 21 Oct 2015 07:28:00 GMT`, into Unix milliseconds.
pub fn ms_from_http_date(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_read() {
        assert_eq!(ms_from_http_date("Wed, 21 Oct 2015 07:28:00 GMT"), Some(1_445_412_480_000));
        assert_eq!(ms_from_http_date("soon"), None);
    }

    #[test]
    fn iso_times_look_like_javascripts() {
        assert_eq!(iso_from_ms(1_700_000_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!(iso_from_ms(5), "1970-01-01T00:00:00.005Z");
        assert_eq!(ms_from_iso("2023-11-14T22:13:20.000Z"), Some(1_700_000_000_000));
        assert_eq!(ms_from_iso("yesterday"), None);
    }

    #[test]
    fn an_unknown_time_zone_is_replaced_by_that_of_the_clock() {
        let host = Host::builder().clock(0, 0).build();
        let zones = [Some("europe/vienna "), Some("Mars/Olympus"), None].map(|wanted| host.time_zone(wanted));
        assert_eq!(zones.map(Option::unwrap), ["Europe/Vienna", "UTC", "UTC"]);
    }

    #[test]
    fn a_fake_clock_moves_by_steps() {
        let host = Host::builder().clock(1000, 5).build();
        assert_eq!((host.now_ms(), host.now_ms()), (1000, 1005));
    }
}
