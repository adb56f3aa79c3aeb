//! Completions for fish.

use std::fmt::Write as _;

use super::surface::{OptionSurface, Surface, Values};

/// Generates the script.
pub(super) fn script(surface: &Surface) -> String {
    let mut out = String::from(
        "# Completions of pinch for fish. Put them into ~/.config/fish/completions/pinch.fish\n\
         function __pinch_command\n    set -l command pinch\n    set -l words (commandline -opc)\n    \
         for word in $words[2..-1]\n        switch \"$command $word\"\n            case",
    );
    for command in surface.commands() {
        let _written = write!(out, " '{command}'");
    }
    out.push_str(
        "\n                set command \"$command $word\"\n            case '*'\n                break\n        end\n    \
         end\n    echo $command\nend\n\
         # Files are named behind an @.\n\
         function __pinch_files\n    set -l word (commandline -ct)\n    string match -q '@*' -- $word; or return\n    \
         for path in (__fish_complete_path (string sub -s 2 -- $word))\n        echo \"@$path\"\n    end\nend\n\
         complete -c pinch -f\ncomplete -c pinch -n 'test (__pinch_command) = pinch' -a '(__pinch_files)'\n",
    );
    for entry in &surface.entries {
        let begin = format!("complete -c pinch -n 'test (__pinch_command) = \"{}\"'", entry.line());
        // Only the first word after a command can be a subcommand.
        let first =
            format!("{}; and test (count (commandline -opc)) -eq {}'", begin.trim_end_matches('\''), entry.words.len());
        for (name, about) in &entry.commands {
            let _written = writeln!(out, "{first} -a '{name}' -d '{}'", quoted(about));
        }
        for argument in &entry.arguments {
            let _written = writeln!(out, "{begin}{} -d '{}'", values(&argument.values, ""), quoted(&argument.about));
        }
        for option in &entry.options {
            let _written = writeln!(out, "{begin}{}", named(option));
        }
    }
    out
}

fn named(option: &OptionSurface) -> String {
    let name = |name: &String| match (name.strip_prefix("--"), name.trim_start_matches('-')) {
        (Some(long), _) => format!(" -l {long}"),
        (None, short) if short.len() == 1 => format!(" -s {short}"),
        // Several letters after one dash.
        (None, old) => format!(" -o {old}"),
    };
    let names: String = option.names.iter().map(name).collect();
    let value = match &option.value {
        Some((_, of)) if !option.is_optional => values(of, " -x"),
        _ => String::new(),
    };
    format!("{names}{value} -d '{}'", quoted(&option.about))
}

fn values(values: &Values, text: &str) -> String {
    match values {
        Values::Text => text.to_owned(),
        Values::Files => " -r -F".to_owned(),
        Values::Folders => " -x -a '(__fish_complete_directories)'".to_owned(),
        Values::Words(all) => format!("{text} -a '{}'", all.join(" ")),
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}
