//! Selecting tools by name.

/// Applies a list of names: plain names replace `inherited`; a list of `+name` and `-name` modifies it. `*` stands for all of `known`. The
/// names keep their order.
///
/// # Errors
/// Returns the first name that is not in `known`.
pub fn choose(inherited: &[String], list: &[String], known: &[&str]) -> Result<Vec<String>, String> {
    let (chosen, unknown) = choose_known(inherited, list, known);
    unknown.into_iter().next().map_or(Ok(chosen), Err)
}

/// Like [`choose`], for lists that other programs write as well: unknown names are ignored and returned second. They are not replaced, so a
/// list without any known name selects nothing.
pub fn choose_known(inherited: &[String], list: &[String], known: &[&str]) -> (Vec<String>, Vec<String>) {
    let entries = list.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty());
    let mut chosen = if is_change(list) { inherited.to_vec() } else { Vec::new() };
    let mut unknown = Vec::new();
    for entry in entries {
        let (leaves_out, name) = match entry.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, entry.strip_prefix('+').unwrap_or(entry)),
        };
        let names = match name {
            "*" => known,
            _ => match known.iter().position(|known| *known == name) {
                Some(at) => &known[at..=at],
                None => {
                    unknown.push(name.to_owned());
                    continue;
                }
            },
        };
        for name in names {
            if leaves_out {
                chosen.retain(|chosen| chosen != name);
            } else if !chosen.iter().any(|chosen| chosen == name) {
                chosen.push((*name).to_owned());
            }
        }
    }
    (chosen, unknown)
}

/// Returns whether a list only modifies the inherited one.
pub fn is_change(list: &[String]) -> bool {
    let mut entries = list.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()).peekable();
    entries.peek().is_some() && entries.all(|entry| entry.starts_with(['+', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::CODING;

    /// The tools of a build with all features.
    const ALL: &[&str] = &["read", "bash", "edit", "write", "grep", "find", "ls"];

    #[track_caller]
    fn check(list: &str, expected: Result<&str, &str>) {
        let words = |text: &str| text.split_terminator(',').map(str::to_owned).collect::<Vec<_>>();
        let chosen = choose(&CODING.map(str::to_owned), &words(list), ALL);
        assert_eq!(chosen, expected.map(words).map_err(str::to_owned));
    }

    #[test]
    fn lists_replace_or_modify() {
        check("grep, read ,,", Ok("grep,read"));
        check("read,read", Ok("read"));
        check("+ls,-bash", Ok("read,edit,write,ls"));
        check("*,-bash", Ok("read,edit,write,grep,find,ls"));
        check("-*,+ls", Ok("ls"));
        check("read,+ls", Ok("read,ls"));
        check("", Ok(""));
        check("read,frob", Err("frob"));
        check("-frob", Err("frob"));
    }

    #[test]
    fn unknown_names_never_widen_a_selection() {
        let words = |text: &str| text.split_terminator(',').map(str::to_owned).collect::<Vec<_>>();
        let check = |list: &str, chosen: &str, unknown: &str| {
            let found = choose_known(&CODING.map(str::to_owned), &words(list), ALL);
            assert_eq!(found, (words(chosen), words(unknown)), "{list}");
        };
        check("read,codemode", "read", "codemode");
        check("-bash,+codemode", "read,edit,write", "codemode");
        check("codemode", "", "codemode");
        check("-frob,-bash", "read,edit,write", "frob");
    }
}
