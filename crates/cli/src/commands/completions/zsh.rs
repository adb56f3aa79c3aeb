//! Completions for zsh.

use std::fmt::Write as _;

use super::surface::{CommandEntry, OptionSurface, Surface, Values};

/// Generates the script.
pub(super) fn script(surface: &Surface) -> String {
    let mut out = String::from(
        r#"#compdef pinch
# Completions of pinch for zsh. Put them into a folder of $fpath as _pinch, or load them with: source <(pinch completions zsh)
_pinch_messages() {
    compset -P '@' && _files
}
_pinch() {
    local command=pinch
    local -i at=2
    local -a commands
    while (( at < CURRENT )); do
        case "$command ${words[at]}" in
"#,
    );
    for command in surface.commands() {
        let _written = writeln!(out, "            '{command}') command='{command}' ;;");
    }
    out.push_str(
        "            *) break ;;\n        esac\n        (( at++ ))\n    done\n    # What follows is completed as if the command were one word.\n    \
         words=(pinch \"${(@)words[at,-1]}\")\n    (( CURRENT -= at - 2 ))\n    case \"$command\" in\n",
    );
    for entry in &surface.entries {
        let _written = writeln!(out, "        '{}')", entry.line());
        if !entry.commands.is_empty() {
            let commands: Vec<String> = entry.commands.iter().map(|(name, about)| command(name, about)).collect();
            let _written = writeln!(
                out,
                "            commands=({})\n            (( CURRENT == 2 )) && [[ $PREFIX != [-@]* ]] && _describe command commands",
                commands.join(" ")
            );
        }
        out.push_str("            _arguments");
        for spec in entry.options.iter().map(option).chain(rest(entry)) {
            let _written = write!(out, " \\\n                {spec}");
        }
        out.push_str(" ;;\n");
    }
    out.push_str(
        "    esac\n}\nif [[ $funcstack[1] == _pinch ]]; then\n    _pinch \"$@\"\nelse\n    compdef _pinch pinch\nfi\n",
    );
    out
}

fn command(name: &str, about: &str) -> String {
    format!("'{name}:{}'", quoted(about))
}

/// Formats an option for `_arguments`: all its names exclude each other.
fn option(option: &OptionSurface) -> String {
    let about = quoted(&option.about).replace('[', "\\[").replace(']', "\\]");
    let value = match &option.value {
        Some((name, values)) => {
            let colon = if option.is_optional { "::" } else { ":" };
            format!("{colon}{}:{}", quoted(name).replace(':', "\\:"), action(values))
        }
        None => String::new(),
    };
    // The value of a long name follows as a separate word, or after an equals sign.
    let named = |name: &String| match (&option.value, name.starts_with("--")) {
        (Some(_), true) => format!("{name}="),
        _ => name.clone(),
    };
    let named: Vec<String> = option.names.iter().map(named).collect();
    match named.as_slice() {
        [name] => format!("'{name}[{about}]{value}'"),
        names => format!("'({})'{{{}}}'[{about}]{value}'", option.names.join(" "), names.join(",")),
    }
}

/// Formats the arguments after the options.
fn rest(entry: &CommandEntry) -> Vec<String> {
    let named = entry.arguments.iter().map(|argument| format!("':{}:{}'", argument.name, action(&argument.values)));
    let messages = (entry.words.len() == 1).then(|| "'*:message:_pinch_messages'".to_owned());
    named.chain(messages).collect()
}

fn action(values: &Values) -> String {
    match values {
        Values::Text => String::new(),
        Values::Files => "_files".to_owned(),
        Values::Folders => "_files -/".to_owned(),
        Values::Words(all) => format!("({})", all.join(" ")),
    }
}

fn quoted(text: &str) -> String {
    text.replace('\'', "'\\''")
}
