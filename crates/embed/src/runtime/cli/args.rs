//! The command line of a command-line agent.

use crate::config::cli::{CliBackend, CliSessionMode, SystemPromptWhen};

/// Placeholder for the session id in configured arguments.
const SESSION_ID: &str = "{sessionId}";

/// One prompt for a command-line agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct CliTurn<'a> {
    /// The model, as in its reference.
    pub model: &'a str,
    /// The system prompt.
    pub system_prompt: Option<&'a str>,
    /// The user's prompt.
    pub prompt: &'a str,
    /// Paths of images.
    pub images: &'a [String],
    /// The agent's id of an existing conversation.
    pub known_session: Option<&'a str>,
    /// The id for a new conversation.
    pub new_session: &'a str,
}

/// A command that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliInvocation {
    /// Its arguments.
    pub args: Vec<String>,
    /// Text written to its stdin.
    pub input: Option<String>,
    /// Whether it resumes a conversation.
    pub resumes: bool,
    /// Id of the conversation, as far as it is known in advance.
    pub session: Option<String>,
}

/// Builds the command that passes a prompt to a backend.
pub fn command_line(backend: &CliBackend, turn: &CliTurn<'_>) -> CliInvocation {
    let known = turn.known_session.filter(|id| backend.session_mode != CliSessionMode::None && !id.is_empty());
    let resumes = known.is_some() && !backend.resume_args.is_empty();
    let session = match backend.session_mode {
        CliSessionMode::Always => Some(known.unwrap_or(turn.new_session)),
        CliSessionMode::Existing => known,
        CliSessionMode::None => None,
    };
    let named = |args: &[String], id: &str| args.iter().map(|arg| arg.replace(SESSION_ID, id)).collect::<Vec<_>>();
    let mut args = match known.filter(|_| resumes) {
        Some(id) => named(&backend.resume_args, id),
        None => backend.args.clone(),
    };
    if !resumes {
        if let Some(option) = &backend.model_arg {
            args.extend([option.clone(), model_name(backend, turn.model)]);
        }
        let is_wanted = match backend.system_prompt_when {
            SystemPromptWhen::First => known.is_none(),
            SystemPromptWhen::Always => true,
            SystemPromptWhen::Never => false,
        };
        let system = turn.system_prompt.filter(|text| is_wanted && !text.trim().is_empty());
        if let (Some(option), Some(text)) = (&backend.system_prompt_arg, system) {
            args.extend([option.clone(), text.to_owned()]);
        }
        match (session, &backend.session_arg) {
            (Some(id), _) if !backend.session_args.is_empty() => args.extend(named(&backend.session_args, id)),
            (Some(id), Some(option)) => args.extend([option.clone(), id.to_owned()]),
            _ => {}
        }
    }
    let mut prompt = turn.prompt.to_owned();
    match &backend.image_arg {
        _ if turn.images.is_empty() => {}
        Some(option) if backend.images_as_list => args.extend([option.clone(), turn.images.join(",")]),
        Some(option) => args.extend(turn.images.iter().flat_map(|path| [option.clone(), path.clone()])),
        None => prompt = format!("{}\n\n{}", prompt.trim_end(), turn.images.join("\n")),
    }
    let is_long =
        prompt.len() > MAX_PROMPT || backend.max_prompt_arg_chars.is_some_and(|max| prompt.chars().count() > max);
    // As an argument it would be taken for an option.
    let is_option = prompt.starts_with('-');
    let input = match backend.prompt_on_stdin || is_long || is_option {
        true => Some(prompt),
        false => {
            args.push(prompt);
            None
        }
    };
    CliInvocation { args, input, resumes, session: session.map(str::to_owned) }
}

/// Longer prompts, in bytes, are never arguments.
const MAX_PROMPT: usize = 100_000;

/// Returns the backend's name for a model.
fn model_name(backend: &CliBackend, model: &str) -> String {
    let aliases = &backend.model_aliases;
    aliases.get(model).or_else(|| aliases.get(&model.to_lowercase())).map_or_else(|| model.to_owned(), Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::cli::CliBackends;

    fn backend(change: impl FnOnce(&mut CliBackend)) -> CliBackend {
        let mut backend = CliBackends::default().get("codex-cli").unwrap().clone();
        backend.args = vec!["run".into()];
        change(&mut backend);
        backend
    }

    #[test]
    fn a_conversation_is_resumed_or_named() {
        let turn =
            CliTurn { model: "m", prompt: "hi", known_session: Some("k"), new_session: "n", ..CliTurn::default() };
        let resumed = command_line(&backend(|_| {}), &turn);
        let end = resumed.args.len() - 3;
        assert!(resumed.resumes && resumed.args[0] == "exec" && resumed.args[end..] == ["resume", "k", "hi"]);
        let named = backend(|backend| {
            backend.resume_args = Vec::new();
            backend.session_args = vec!["--in={sessionId}".into()];
        });
        assert_eq!(command_line(&named, &turn).args, ["run", "--model", "m", "--in=k", "hi"]);
        let new = CliTurn { known_session: None, ..turn };
        assert_eq!(command_line(&named, &new).args, ["run", "--model", "m", "hi"]);
        let never = backend(|backend| backend.session_mode = CliSessionMode::None);
        assert_eq!(command_line(&never, &turn).args, ["run", "--model", "m", "hi"]);
    }

    #[test]
    fn a_prompt_that_looks_like_an_option_is_passed_on_stdin() {
        let turn = CliTurn { model: "m", prompt: "--help me", ..CliTurn::default() };
        let command = command_line(&backend(|_| {}), &turn);
        assert_eq!(
            (command.args, command.input.as_deref()),
            (["run", "--model", "m"].map(str::to_owned).to_vec(), Some("--help me"))
        );
    }

    #[test]
    fn long_prompts_are_passed_on_stdin_and_images_without_an_option_follow_the_prompt() {
        let images = ["/a.png".to_owned(), "/b.png".to_owned()];
        let turn = CliTurn { model: "m", prompt: "hello", images: &images, ..CliTurn::default() };
        let long = backend(|backend| (backend.max_prompt_arg_chars, backend.images_as_list) = (Some(4), true));
        let command = command_line(&long, &turn);
        assert_eq!(command.args, ["run", "--model", "m", "--image", "/a.png,/b.png"]);
        assert_eq!(command.input.as_deref(), Some("hello"));
        let plain = backend(|backend| backend.image_arg = None);
        assert_eq!(command_line(&plain, &turn).args.last().unwrap(), "hello\n\n/a.png\n/b.png");
    }
}
