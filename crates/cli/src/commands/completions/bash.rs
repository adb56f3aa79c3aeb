//! Completions for bash.

use std::fmt::Write as _;

use super::surface::{Surface, Values};

/// Generates the script.
pub(super) fn script(surface: &Surface) -> String {
    let mut out = String::from(
        r#"# Completions of pinch for bash. Load them with: source <(pinch completions bash)
_pinch() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev='' command=pinch i IFS=$'\n'
    (( COMP_CWORD > 0 )) && prev=${COMP_WORDS[COMP_CWORD-1]}
    # --flag=value comes in three words.
    [[ $cur == = ]] && cur=''
    [[ $prev == = ]] && (( COMP_CWORD > 1 )) && prev=${COMP_WORDS[COMP_CWORD-2]}
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$command ${COMP_WORDS[i]}" in
"#,
    );
    for command in surface.commands() {
        let _written = writeln!(out, "            '{command}') command='{command}' ;;");
    }
    out.push_str("            *) break ;;\n        esac\n    done\n    case \"$command $prev\" in\n");
    for entry in &surface.entries {
        let line = entry.line();
        for option in &entry.options {
            let Some((_, values)) = option.value.as_ref().filter(|_| !option.is_optional) else { continue };
            let names: Vec<String> = option.names.iter().map(|name| format!("'{line} {name}'")).collect();
            let _written = writeln!(out, "        {}) {}return ;;", names.join("|"), reply(values));
        }
    }
    out.push_str("    esac\n    case \"$command,$cur\" in\n");
    for entry in &surface.entries {
        let names = entry.options.iter().flat_map(|option| &option.names).map(String::as_str);
        let _written = writeln!(out, "        '{}',-*) {}return ;;", entry.line(), words(names));
    }
    out.push_str(
        "        pinch,@*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -P @ -f -- \"${cur#@}\")); return ;;\n    \
         esac\n    # What is no option stands behind nothing but commands.\n    (( i == COMP_CWORD )) || return\n    \
         case \"$command\" in\n",
    );
    for entry in &surface.entries {
        let reply = match entry.arguments.first() {
            Some(argument) => reply(&argument.values),
            None => words(entry.commands.iter().map(|(name, _)| name.as_str())),
        };
        let _written = writeln!(out, "        '{}') {reply}return ;;", entry.line());
    }
    out.push_str("    esac\n}\ncomplete -F _pinch pinch\n");
    out
}

/// Completes values.
fn reply(values: &Values) -> String {
    match values {
        Values::Text => String::new(),
        Values::Files => "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); ".to_owned(),
        Values::Folders => "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); ".to_owned(),
        Values::Words(all) => words(all.iter().map(String::as_str)),
    }
}

/// Completes words; none of them contains a blank or a quote.
fn words<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    format!("COMPREPLY=($(compgen -W $'{}' -- \"$cur\")); ", all.join("\\n"))
}
