//! Display names of commands.

/// Maximum characters of a name.
const MAX_NAME: usize = 48;

/// Returns a command's program with its first non-flag argument, or else its first argument.
pub fn session_name(command: &str) -> Option<String> {
    let words = words(command);
    let program = words.first()?;
    let target = words.iter().skip(1).find(|word| !word.starts_with('-')).or_else(|| words.get(1));
    let name = match target {
        Some(target) => format!("{program} {target}"),
        None => program.clone(),
    };
    Some(shortened(&name))
}

/// Splits a command into words, respecting quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c.is_whitespace() => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            None => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Shortens a name by removing its middle.
fn shortened(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= MAX_NAME {
        return name.to_owned();
    }
    let kept = MAX_NAME - 3;
    let head = kept.div_ceil(2);
    let tail = chars.len() - (kept - head);
    chars[..head].iter().chain(['.', '.', '.'].iter()).chain(&chars[tail..]).collect()
}
