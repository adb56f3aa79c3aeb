//! Names of languages: of their own, of files, and of interpreters.

/// Grammars used for languages with similar syntax, by lower-case names.
const ALIKE: &[(&str, &[&str])] = &[
    ("javascript", &["typescript", "ts", "tsx", "mts", "cts", "jsx", "mjs", "cjs", "node", "deno", "bun"]),
    ("bash", &["shell", "console", "shellsession", "ksh", "dash"]),
    ("python", &["python3", "python2", "bazel", "starlark"]),
    ("ruby", &["ruby3"]),
    ("properties", &["toml", "ini", "cfg", "conf", "editorconfig"]),
    ("json", &["jsonc", "json5", "jsonl", "geojson"]),
    ("c#", &["csharp"]),
    ("c", &["glsl", "wgsl", "cuda"]),
    ("css", &["scss", "less"]),
    ("go", &["golang"]),
    ("objective-c", &["objc"]),
    ("html", &["vue", "svelte", "astro"]),
    ("make", &["justfile"]),
    ("haskell", &["purescript", "elm"]),
    ("lisp", &["scheme", "elisp", "emacs-lisp", "racket"]),
    ("clojure", &["cljs", "cljc", "edn"]),
];

/// Returns the name of the grammar for a language's lower-case name.
pub(super) fn grammar_name(name: &str) -> &str {
    ALIKE.iter().find(|(_, others)| others.contains(&name)).map_or(name, |(grammar, _)| grammar)
}

/// Returns the language name implied by a file name: its extension, or the whole name if it has none.
pub(super) fn name_of_path(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next()?.to_lowercase();
    match &*name {
        "cmakelists.txt" => return Some("cmake".to_owned()),
        "cargo.lock" | "poetry.lock" | "uv.lock" => return Some("toml".to_owned()),
        ".bashrc" | ".bash_profile" | ".profile" | ".zshrc" => return Some("bash".to_owned()),
        _ => {}
    }
    match name.rsplit_once('.') {
        Some(("", _)) => None,
        Some((_, "txt")) => None,
        Some((_, extension)) => Some(extension.to_owned()),
        None => Some(name),
    }
}

/// Returns the interpreter in a first line such as `#!/usr/bin/env python3`.
pub(super) fn interpreter(first_line: &str) -> Option<&str> {
    let mut words = first_line.strip_prefix("#!")?.split_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    if program == "env" { words.find(|word| !word.starts_with('-') && !word.contains('=')) } else { Some(program) }
}
