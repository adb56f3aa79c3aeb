//! Permission to run a command. The programs it starts are looked up before asking, and again right before they start.

use std::path::{Path, PathBuf};

use pinch_agent_core::tool::{ToolCx, ToolError};
use pinch_ports::{ApprovalDecision, ApprovalRequest, SessionKey};
use pinch_stdx::fs::is_executable;

use super::options::CommandOptions;
use crate::exec::approvals::{ApprovalDefaults, ApprovalsFile, EffectiveApprovals};
use crate::exec::contents::{first_changed, hashes_of};
use crate::exec::identity::CommandIdentity;
use crate::exec::judge::{CommandRules, Judgement, judge};
use crate::exec::modes::{ExecAsk, ExecSecurity, requires_approval};
use crate::exec::skill_programs::SkillPrograms;
use crate::waiting::time_to_wait;

/// A command about to run.
pub(super) struct CommandCall<'a> {
    /// The command line.
    pub(super) command: &'a str,
    /// Its working directory.
    pub(super) cwd: &'a Path,
    /// Its complete environment.
    pub(super) env: &'a [(String, String)],
    /// Whether the call sets variables.
    pub(super) sets_env: bool,
    /// Whether other programs are installed where it runs.
    pub(super) has_own_programs: bool,
    /// Which commands may run.
    pub(super) security: ExecSecurity,
    /// When to ask a person.
    pub(super) ask: ExecAsk,
    /// Why a person is asked, unless the command's programs are the reason.
    pub(super) reason: Option<&'static str>,
}

/// Permission to run a command, valid while the files it starts are unchanged.
#[must_use]
pub(super) struct CommandPermit {
    judged: Option<(EffectiveApprovals, Judgement, CommandIdentity)>,
}

impl CommandPermit {
    /// Checks again what the command starts. Call it right before starting the command.
    pub(super) fn check(&self, options: &CommandOptions, call: &CommandCall<'_>) -> Result<(), ToolError> {
        let Some((effective, judgement, identity)) = &self.judged else { return Ok(()) };
        let now = options.judge(call, effective);
        let moved = judgement.programs.iter().zip(&now.programs).find(|(before, now)| before.program != now.program);
        let shown = |program: &Option<PathBuf>, name: &str| {
            program.as_ref().map_or_else(|| name.to_owned(), |path| path.display().to_string())
        };
        let changed = match moved {
            Some((before, _)) => Some(shown(&before.program, before.argv.first().map_or("", String::as_str))),
            None => identity.changed().map(|path| path.display().to_string()),
        };
        match changed {
            Some(what) => Err(changed_since(&what)),
            None if judgement.is_allowed() && !now.is_allowed() => Err(ToolError::new(format!(
                "exec denied: {}. Run the command again to have it judged anew.",
                reason(&now)
            ))),
            None => Ok(()),
        }
    }
}

fn changed_since(what: &str) -> ToolError {
    ToolError::new(format!(
        "exec denied: {what} was changed or replaced after the command was judged, so nothing ran. Run the command again to have it judged \
         anew."
    ))
}

impl CommandOptions {
    /// Checks whether a command may run, asking for approval if necessary.
    pub(super) async fn permit(&self, call: &CommandCall<'_>, cx: &ToolCx<'_>) -> Result<CommandPermit, ToolError> {
        let given = ApprovalDefaults { security: Some(call.security), ask: Some(call.ask) };
        let file = match &self.approvals_file {
            Some(path) => Some(ApprovalsFile::load(path)?),
            None => None,
        };
        let effective = match &file {
            Some(file) => file.effective(&self.agent, given),
            None => EffectiveApprovals { security: call.security, ask: call.ask, ..EffectiveApprovals::default() },
        };
        let security = effective.security.stricter(call.security);
        let ask = effective.ask.more_demanding(call.ask);
        if security == ExecSecurity::Deny {
            return Err(ToolError::new("exec denied: host=gateway security=deny"));
        }
        let is_open = security == ExecSecurity::Full && ask != ExecAsk::Always;
        if is_open && !self.strict_inline_eval {
            return Ok(CommandPermit { judged: None });
        }
        let judgement = self.judge(call, &effective);
        let inline_code = judgement.inline_code.as_deref().filter(|_| self.strict_inline_eval);
        if is_open && inline_code.is_none() {
            return Ok(CommandPermit { judged: None });
        }
        let identity = CommandIdentity::of(&judgement, &self.shell, call.cwd);
        let is_understood = judgement.parse_error.is_none();
        if !is_open && !requires_approval(ask, security, is_understood, judgement.not_allowed.is_none()) {
            return match judgement.is_allowed() {
                true => {
                    self.note_use(&judgement, call, cx).await;
                    Ok(CommandPermit { judged: Some((effective, judgement, identity)) })
                }
                false => Err(ToolError::new("exec denied: allowlist miss")),
            };
        }
        // Such code never runs unless a person has seen it, and no command leaves the sandbox by itself.
        let needs_answer = inline_code.is_some() || call.reason.is_some();
        let fallback = if needs_answer { ExecSecurity::Deny } else { effective.ask_fallback };
        match self.ask(call, &judgement, fallback, cx).await? {
            ApprovalDecision::AllowOnce => {}
            ApprovalDecision::AllowAlways => self.remember(&judgement, &identity, call, cx).await?,
            ApprovalDecision::Deny => {
                let why = call.reason.unwrap_or_else(|| reason(&judgement));
                let text = match self.approvals.is_available() {
                    true => format!("exec denied: the user rejected it ({why})"),
                    false => format!("exec denied: {why}"),
                };
                return Err(ToolError::new(text));
            }
        }
        Ok(CommandPermit { judged: Some((effective, judgement, identity)) })
    }

    /// Asks a person. If nobody can be asked or answers in time, what is allowed without an answer decides.
    async fn ask(
        &self,
        call: &CommandCall<'_>,
        judgement: &Judgement,
        fallback: ExecSecurity,
        cx: &ToolCx<'_>,
    ) -> Result<ApprovalDecision, ToolError> {
        let reason = call.reason.unwrap_or_else(|| reason(judgement));
        let cwd = call.cwd.to_string_lossy();
        let limit = time_to_wait(cx.cancel, self.approval_timeout);
        let mut request = ApprovalRequest::new(call.command, cwd, reason, limit);
        request.session_key = Some(SessionKey::from(&self.scope));
        let programs = judgement.programs.iter().filter_map(|call| call.program.as_ref());
        request.programs = programs.map(|path| path.display().to_string()).collect();
        let can_ask = self.approvals.is_available();
        let answer = match can_ask {
            true => {
                let asked = tokio::time::timeout(limit, self.approvals.request(&request));
                cx.cancel.run(asked).await.map_err(|_| ToolError::aborted())?.ok()
            }
            false => None,
        };
        match (answer, fallback) {
            (Some(answer), _) => Ok(answer),
            (None, ExecSecurity::Full) => Ok(ApprovalDecision::AllowOnce),
            (None, ExecSecurity::Allowlist) if judgement.is_allowed() => Ok(ApprovalDecision::AllowOnce),
            (None, _) if !can_ask => Ok(ApprovalDecision::Deny),
            (None, _) if limit < self.approval_timeout => Err(ToolError::new(format!(
                "exec denied: nobody answered within the {} seconds that the time limit of this run allows ({reason})",
                limit.as_secs()
            ))),
            (None, _) => Err(ToolError::new(format!("exec denied: nobody answered in time ({reason})"))),
        }
    }

    fn judge(&self, call: &CommandCall<'_>, effective: &EffectiveApprovals) -> Judgement {
        let path = call.env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path);
        let path: Vec<PathBuf> = std::env::split_paths(path).collect();
        let skill_bins = if effective.auto_allow_skills { self.skill_bins.as_slice() } else { &[] };
        let writable: Vec<&Path> =
            [Some(self.cwd.as_path()), self.root.as_deref(), Some(call.cwd)].into_iter().flatten().collect();
        let rules = CommandRules {
            allowlist: &effective.allowlist,
            safe_bins: &self.safe_bins,
            skill_programs: &SkillPrograms::resolve(skill_bins, &path, &writable, &is_executable),
            cwd: call.cwd,
            home: self.home.as_deref(),
            path: &path,
            syntax: self.syntax,
            sets_env: call.sets_env,
            has_own_programs: call.has_own_programs,
            is_executable: &is_executable,
            exists: &|path| path.symlink_metadata().is_ok(),
            changed: &first_changed,
        };
        judge(call.command, &rules)
    }

    /// Stores a permanent approval. Commands that could not be analyzed, or whose arguments are incomplete, cannot be recognized again. If it
    /// cannot be stored, the command runs once.
    async fn remember(
        &self,
        judgement: &Judgement,
        identity: &CommandIdentity,
        call: &CommandCall<'_>,
        cx: &ToolCx<'_>,
    ) -> Result<(), ToolError> {
        let (Some(path), None) = (&self.approvals_file, &judgement.parse_error) else { return Ok(()) };
        let exact = judgement.programs.iter().filter(|program_call| program_call.is_exact);
        let found = exact.filter_map(|program_call| {
            let program = program_call.program.as_ref()?;
            // A file that cannot be read cannot be recognized again.
            let contents = hashes_of(&program_call.argv, program, call.cwd).ok()?;
            Some((program, &program_call.argv, contents))
        });
        let found: Vec<_> = found.collect();
        // The contents must be those that the person was asked about.
        if let Some(path) = identity.changed() {
            return Err(changed_since(&path.display().to_string()));
        }
        let stored = ApprovalsFile::update(path, cx.host, |file| {
            for (program, argv, contents) in &found {
                file.allow_always(&self.agent, program, argv, call.cwd, contents);
            }
        });
        if let Err(error) = stored.await {
            tracing::warn!(%error, "the permanent approval is not stored; the command runs once");
        }
        Ok(())
    }

    /// Records which entries allowed a command.
    async fn note_use(&self, judgement: &Judgement, call: &CommandCall<'_>, cx: &ToolCx<'_>) {
        let Some(path) = self.approvals_file.as_ref().filter(|_| !judgement.used.is_empty()) else { return };
        let noted = ApprovalsFile::update(path, cx.host, |file| {
            for (entry, program) in &judgement.used {
                file.note_use(&self.agent, entry, call.command, program, cx.host.now_ms());
            }
        });
        if let Err(error) = noted.await {
            tracing::debug!(%error, "the use of an approval is not recorded");
        }
    }
}

fn reason(judgement: &Judgement) -> &str {
    let found = [&judgement.inline_code, &judgement.parse_error, &judgement.not_allowed].into_iter().flatten().next();
    found.map_or("every command needs an approval", String::as_str)
}
