//! Which programs a command line starts, and whether a list of allowed programs covers all of them.
//!
//! ```sh
//! cargo run -p pinch-tools --example judge_command -- 'ls | xargs rm' /usr/bin/ls
//! ```

use std::io::Write as _;
use std::path::{Path, PathBuf};

use pinch_tools::exec::analysis::CommandSyntax;
use pinch_tools::exec::approvals::AllowedProgram;
use pinch_tools::exec::judge::{CommandRules, judge};
use pinch_tools::exec::safe_bins::SafeBins;
use pinch_tools::exec::skill_programs::SkillPrograms;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let command = args.next().ok_or("usage: judge_command COMMAND [ALLOWED...]")?;
    let allowlist: Vec<AllowedProgram> = args.map(|pattern| AllowedProgram { pattern, ..Default::default() }).collect();
    let path: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let judgement = judge(
        &command,
        &CommandRules {
            allowlist: &allowlist,
            safe_bins: &SafeBins::default(),
            skill_programs: &SkillPrograms::default(),
            cwd: Path::new("/"),
            home: None,
            path: &path,
            syntax: CommandSyntax::Scripts,
            sets_env: false,
            has_own_programs: false,
            is_executable: &|path| path.is_file(),
            exists: &|path| path.exists(),
            changed: &|_| None,
        },
    );

    let mut out = std::io::stdout();
    for call in &judgement.programs {
        writeln!(out, "starts {:?} ({:?})", call.argv, call.program)?;
    }
    match judgement.not_allowed.or(judgement.parse_error) {
        None => writeln!(out, "allowed")?,
        Some(reason) => writeln!(out, "not allowed: {reason}")?,
    }
    Ok(())
}
