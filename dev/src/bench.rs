//! `cargo xtask bench`: measures speed and memory against the design's budgets.
//!
//! Everything is measured in a release build of `pinch` and of this program, which `cargo xtask` builds before it starts this command.

use std::path::PathBuf;

use anyhow::bail;
use pinch_embed::delivery::PartialScope;

use crate::cargo;

mod decoding;
mod process;

mod build;
mod decode;
mod embed;
mod json_mode;
mod llm;
pub(crate) mod session;
mod pi;
mod sandbox;
mod startup;
mod tui;
mod turns;

/// Arguments of `cargo xtask bench`.
///
/// Fails only if a figure exceeds its budget by more than a factor of two: machines differ, and the budgets assume two cores of 2024.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; default: everything.
    #[arg(value_enum, value_name = "NAME")]
    names: Vec<BenchName>,
    /// Open this session, measure this process, print the figures.
    #[arg(long, hide = true)]
    open_session: Option<PathBuf>,
    /// Stream deltas to every client.
    #[arg(long, hide = true)]
    serve_steady: bool,
    /// The address of such a server.
    #[arg(long, hide = true, default_value = "")]
    server: String,
    /// Run this many runs, measure this process, print the figures.
    #[arg(long, hide = true)]
    many: Option<usize>,
    /// Give the sinks of these runs the whole text with every partial reply.
    #[arg(long, hide = true)]
    whole_texts: bool,
    /// Read the streams of such a server, measure this process, print the figure.
    #[arg(long, hide = true)]
    bare: bool,
    /// Run each session once, measure what is kept of it, print the figure.
    #[arg(long, hide = true)]
    idle: bool,
    /// Let runs end at the same moment, measure how long that takes, print the figure.
    #[arg(long, hide = true)]
    together: bool,
    /// How often the session is opened; the first half is for warming up.
    #[arg(long, hide = true, default_value_t = 1)]
    rounds: usize,
    /// How many entries are then appended.
    #[arg(long, hide = true, default_value_t = 0)]
    appends: usize,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BenchName {
    /// `pinch --version`, one whole `pinch -p`, and the first answer of `pinch --mode rpc`, also for a user with many resources.
    Startup,
    /// Embedded runs: `pinch agent` with answers of every length, many runs in one process, idle sessions.
    Embed,
    /// The wire decoder, alone and through a whole session.
    Decode,
    /// Every wire decoder compared with merely reading the same JSON; if named explicitly, also compared with other crates (`genai`,
    /// `rig-core`).
    Llm,
    /// JSON mode with answers of many chunks.
    JsonMode,
    /// Fifty turns with one tool call each.
    Turns,
    /// A long session: opening and appending.
    Session,
    /// The interactive mode on a terminal: the first frame, answers, a long session, key echo.
    Tui,
    /// Starting a command in each sandbox that works here, compared with starting it without one.
    Sandbox,
    /// Session files, compared with pi, which is installed with npm. Only measured if named explicitly.
    Pi,
    /// A clean release build, the size of the program, and the dependencies of each crate. Only measured if named explicitly.
    Build,
}

/// A measured value.
struct Figure {
    what: String,
    measured: f64,
    budget: FigureBudget,
    /// The multiple of its budget at which the command fails.
    tolerance: f64,
    unit: &'static str,
}

/// The budget of a figure.
#[derive(Clone, Copy)]
enum FigureBudget {
    /// None; the figure is only shown.
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    fn new(what: impl Into<String>, measured: f64, budget: FigureBudget, unit: &'static str) -> Self {
        Self { what: what.into(), measured, budget, tolerance: 2.0, unit }
    }

    fn shown(what: impl Into<String>, measured: f64, unit: &'static str) -> Self {
        Self::new(what, measured, FigureBudget::None, unit)
    }

    fn at_most(what: impl Into<String>, measured: f64, budget: f64, unit: &'static str) -> Self {
        Self::new(what, measured, FigureBudget::AtMost(budget), unit)
    }

    fn at_least(what: impl Into<String>, measured: f64, budget: f64, unit: &'static str) -> Self {
        Self::new(what, measured, FigureBudget::AtLeast(budget), unit)
    }

    /// Makes the command fail above this limit, instead of at twice the budget.
    fn failing_at(self, limit: f64) -> Self {
        match self.budget {
            FigureBudget::AtMost(budget) => Self { tolerance: limit / budget, ..self },
            FigureBudget::AtLeast(budget) => Self { tolerance: budget / limit, ..self },
            FigureBudget::None => self,
        }
    }

    /// The figure as a multiple of its budget; more than 1 is a miss.
    fn excess(&self) -> f64 {
        match self.budget {
            FigureBudget::None => 0.0,
            FigureBudget::AtMost(budget) => self.measured / budget,
            FigureBudget::AtLeast(budget) => budget / self.measured,
        }
    }
}

/// Runs the command; returns true if no budget is exceeded by more than a factor of two.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    if let Some(path) = &args.open_session {
        session::open(path, args.rounds, args.appends)?;
        return Ok(true);
    }
    if args.serve_steady {
        embed::steady::serve()?;
        return Ok(true);
    }
    if let Some(n) = args.many {
        let scope = if args.whole_texts { PartialScope::Whole } else { PartialScope::Change };
        embed::many::run(n, &args.server, scope)?;
        return Ok(true);
    }
    if args.bare {
        embed::bare::run(&args.server)?;
        return Ok(true);
    }
    if args.idle {
        embed::idle::run(&args.server)?;
        return Ok(true);
    }
    if args.together {
        embed::together::run(&args.server)?;
        return Ok(true);
    }
    if cfg!(debug_assertions) && args.names != [BenchName::Build] {
        bail!("this is a debug build: run cargo xtask bench, which makes a release build");
    }
    let pinch = cargo::profile_dir()?.join(format!("pinch{}", std::env::consts::EXE_SUFFIX));
    let all = <BenchName as clap::ValueEnum>::value_variants();
    let usual: Vec<BenchName> =
        all.iter().copied().filter(|name| !matches!(name, BenchName::Pi | BenchName::Build)).collect();
    let names = if args.names.is_empty() { &usual } else { &args.names };
    let mut figures = Vec::new();
    for name in names {
        figures.extend(match name {
            BenchName::Startup => startup::measure(&pinch)?,
            BenchName::Embed => embed::measure(&pinch)?,
            BenchName::Decode => decode::measure()?,
            // The other crates' clients have many dependencies and need the registry, so they are built only on request.
            BenchName::Llm => llm::measure(args.names.contains(&BenchName::Llm))?,
            BenchName::JsonMode => json_mode::measure(&pinch)?,
            BenchName::Turns => turns::measure(&pinch)?,
            BenchName::Session => session::measure()?,
            BenchName::Tui => tui::measure(&pinch)?,
            BenchName::Sandbox => sandbox::measure()?,
            BenchName::Pi => pi::measure()?,
            BenchName::Build => build::measure()?,
        });
    }
    print_table(&figures);
    Ok(figures.iter().all(|figure| figure.excess() <= figure.tolerance))
}

fn print_table(figures: &[Figure]) {
    println!("\n{:<52} {:>12} {:>12}  {:<9} ok", "figure", "measured", "budget", "unit");
    for figure in figures {
        let budget = match figure.budget {
            FigureBudget::None => String::new(),
            FigureBudget::AtMost(budget) => format!("<= {}", short(budget)),
            FigureBudget::AtLeast(budget) => format!(">= {}", short(budget)),
        };
        let ok = match (figure.budget, figure.excess()) {
            (FigureBudget::None, _) => String::new(),
            (_, excess) if excess <= 1.0 => "yes".to_owned(),
            (_, excess) if excess <= figure.tolerance => "missed".to_owned(),
            _ => format!("MISSED by more than {}x", (figure.tolerance * 100.0).round() / 100.0),
        };
        println!("{:<52} {:>12} {budget:>12}  {:<9} {ok}", figure.what, short(figure.measured), figure.unit);
    }
}

fn short(number: f64) -> String {
    if number >= 100.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// The median of several measurements.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
