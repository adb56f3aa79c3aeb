//! Chat commands for skills.

/// Maximum length of a command, in characters.
const MAX: usize = 32;

/// Commands of chats, which no skill can have.
pub(crate) const RESERVED: [&str; 36] = [
    "abort",
    "activation",
    "agent",
    "agents",
    "auth",
    "commands",
    "compact",
    "config",
    "context",
    "deliver",
    "elev",
    "elevated",
    "exit",
    "help",
    "login",
    "model",
    "models",
    "new",
    "permissions",
    "queue",
    "quit",
    "reasoning",
    "reset",
    "restart",
    "session",
    "sessions",
    "settings",
    "skill",
    "skills",
    "status",
    "stop",
    "think",
    "thinking",
    "usage",
    "verbose",
    "whoami",
];

/// Returns the command for a skill: its name in lower case, with `_` in place of invalid characters, and a number if the command is taken.
pub fn command_name(skill: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = String::new();
    for c in skill.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_matches('_');
    let name = if name.is_empty() { "skill" } else { &name[..name.len().min(MAX)] };
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = (2..=999).map(|n| {
        let end = format!("_{n}");
        format!("{}{end}", &name[..name.len().min(MAX - end.len())])
    });
    let mut last = String::new();
    for candidate in numbered {
        if !is_taken(&candidate) {
            return candidate;
        }
        last = candidate;
    }
    last
}
