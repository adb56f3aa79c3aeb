//! A login in plain lines: questions on stderr, answers from stdin.

use std::fmt;
use std::io::{self, Write as _};

use pinch_embed::coding_agent::login::dialog::{self, BrowserLocation};
use pinch_embed::coding_agent::login::{
    LoggedIn, LoginDialog, LoginError, LoginEvent, LoginQuestion, LoginRequest, log_in,
};
use pinch_embed::coding_agent::models::RegistryAuth;
use pinch_embed::llm::oauth::{LoginPrompt, SignInPage};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;

use crate::browser;
use crate::line_input::{HiddenTyping, LineInput};
use crate::output;

/// The user at the command line.
pub(super) struct LoginConversation<'a> {
    input: LineInput,
    host: &'a Host,
    opens_browser: bool,
    /// Whether the cursor is after a question.
    is_behind_question: bool,
}

/// How an answer is handled.
enum LineReply {
    /// Pass it on; `None` declines.
    Answer(Option<String>),
    /// Not an answer: ask again.
    Repeat,
    /// Not an answer: wait for more input.
    Wait,
}

impl<'a> LoginConversation<'a> {
    pub(super) fn new(input: LineInput, host: &'a Host, opens_browser: bool) -> Self {
        Self { input, host, opens_browser, is_behind_question: false }
    }

    /// Returns whether answers are typed at a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.input.is_terminal()
    }

    /// Reads the rest of stdin.
    pub(super) async fn into_rest(self) -> io::Result<String> {
        let _hidden = self.input.is_terminal().then(HiddenTyping::begin).and_then(Result::ok);
        self.input.rest().await
    }

    /// Logs in.
    pub(super) async fn log_in(
        &mut self,
        request: LoginRequest,
        auth: &RegistryAuth,
        cancel: &Cancel,
    ) -> Result<LoggedIn, LoginError> {
        let is_elsewhere = !self.opens_browser || browser::is_remote(self.host.env());
        let (ui, mut dialog) =
            dialog::open(if is_elsewhere { BrowserLocation::Elsewhere } else { BrowserLocation::Here });
        let mut login = std::pin::pin!(log_in(request, auth, &ui, cancel));
        // Typing is shown again when this is dropped.
        let mut hidden = None;
        loop {
            let is_asked = dialog.question().is_some();
            tokio::select! {
                biased;
                done = &mut login => {
                    drop(hidden);
                    self.end_question();
                    return done;
                }
                event = dialog.next() => match event {
                    LoginEvent::Page => dialog.page().into_iter().for_each(|page| self.show(page)),
                    LoginEvent::Progress => dialog.progress().next_back().into_iter().for_each(|line| self.tell(&line)),
                    LoginEvent::Question => hidden = self.ask(&mut dialog),
                },
                line = self.input.next(), if is_asked && !self.input.has_ended() => {
                    // The line feed was echoed with the line.
                    self.is_behind_question &= line.is_none() || !self.input.is_terminal();
                    hidden = None;
                    if self.answer(&mut dialog, line) {
                        hidden = self.ask(&mut dialog);
                    }
                }
            }
        }
    }

    /// Asks to choose an option; returns its index. `None` declines.
    pub(super) async fn choose(&mut self, question: &str, options: &[&str], usual: Option<usize>) -> Option<usize> {
        loop {
            self.write(&format_args!("{question}: "));
            let line = self.input.next().await?;
            self.is_behind_question = false;
            match pick(line.trim(), options, usual) {
                Some(at) => return Some(at),
                None => self.tell(&format_args!("Enter a number from 1 to {}", options.len())),
            }
        }
    }

    /// Shows the page to sign in on, and opens it.
    fn show(&mut self, page: &SignInPage) {
        self.tell(&format_args!("Open this URL to sign in:\n\n  {}\n", page.url));
        if let Some(instructions) = &page.instructions {
            self.tell(instructions);
        }
        if self.opens_browser && browser::open(&page.url, self.host.env()) {
            self.tell(&"Opening it in your browser…");
        }
    }

    /// Prints the dialog's question. Typing is hidden while the result is alive.
    fn ask(&mut self, dialog: &mut LoginDialog) -> Option<HiddenTyping> {
        let question = dialog.question()?;
        let hides = matches!(question, LoginQuestion::Text(LoginPrompt { is_secret: true, .. }));
        let text = match question {
            LoginQuestion::Text(prompt) => match &prompt.placeholder {
                Some(placeholder) => format!("{} [e.g. {placeholder}]: ", prompt.message),
                None => format!("{}: ", prompt.message),
            },
            LoginQuestion::Choice(choice) => {
                let options = choice.options.iter().enumerate();
                let options: String = options.map(|(at, option)| format!("  {}  {}\n", at + 1, option.label)).collect();
                format!("{}:\n{options}Number [1]: ", choice.message)
            }
            LoginQuestion::Paste => "Paste the code or URL here, or wait for the browser: ".to_owned(),
        };
        if self.input.has_ended() {
            self.answer(dialog, None);
            return None;
        }
        let hidden = (hides && self.input.is_terminal()).then(HiddenTyping::begin);
        if let Some(Err(_)) = &hidden {
            self.tell(&"What you type is visible.");
        }
        self.write(&text);
        hidden.and_then(Result::ok)
    }

    /// Answers the dialog's question with a line, or with the end of the input; returns whether to ask again.
    fn answer(&mut self, dialog: &mut LoginDialog, line: Option<String>) -> bool {
        let Some(question) = dialog.question() else { return false };
        match reply(question, line) {
            LineReply::Answer(answer) => dialog.answer(answer),
            LineReply::Repeat => return true,
            LineReply::Wait => {}
        }
        false
    }

    /// Prints a line.
    fn tell(&mut self, line: &dyn fmt::Display) {
        self.end_question();
        crate::exit::tell(line);
    }

    /// Prints the start of a line.
    fn write(&mut self, text: &dyn fmt::Display) {
        self.end_question();
        let mut to = output::stderr();
        // If nobody reads the questions, nobody answers them either.
        let _unread = write!(to, "{text}").and_then(|()| to.flush());
        self.is_behind_question = true;
    }

    fn end_question(&mut self) {
        if std::mem::take(&mut self.is_behind_question) {
            crate::exit::tell(&"");
        }
    }
}

/// Interprets a line, or the end of the input, as an answer.
fn reply(question: &LoginQuestion, line: Option<String>) -> LineReply {
    match (question, line) {
        (LoginQuestion::Text(prompt), None) => LineReply::Answer(prompt.allow_empty.then(String::new)),
        (LoginQuestion::Text(prompt), Some(line)) if line.trim().is_empty() && !prompt.allow_empty => LineReply::Repeat,
        (LoginQuestion::Paste, Some(line)) if line.trim().is_empty() => LineReply::Wait,
        (LoginQuestion::Choice(choice), Some(line)) => {
            let ids: Vec<&str> = choice.options.iter().map(|option| option.id.as_str()).collect();
            match pick(line.trim(), &ids, Some(0)) {
                Some(at) => LineReply::Answer(Some(ids[at].to_owned())),
                None => LineReply::Repeat,
            }
        }
        (LoginQuestion::Text(_) | LoginQuestion::Paste, Some(line)) => LineReply::Answer(Some(line)),
        (LoginQuestion::Choice(_) | LoginQuestion::Paste, None) => LineReply::Answer(None),
    }
}

/// Returns the index of the option selected by number or id; an empty answer selects the default.
fn pick(answer: &str, options: &[&str], usual: Option<usize>) -> Option<usize> {
    if answer.is_empty() {
        return usual;
    }
    let by_id = options.iter().position(|option| option.eq_ignore_ascii_case(answer));
    let by_number = || answer.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < options.len());
    by_id.or_else(by_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_picked_by_number_or_id() {
        let pick = |answer| pick(answer, &["anthropic", "groq"], Some(0));
        assert_eq!(["1", "2", "groq", "GROQ", ""].map(pick), [Some(0), Some(1), Some(1), Some(1), Some(0)]);
        assert_eq!(["0", "3", "-1", "gro", "1.5"].map(pick), [None; 5]);
    }
}
