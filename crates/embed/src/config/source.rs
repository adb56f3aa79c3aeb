//! Reads a configuration from its files, with inclusions and variables resolved.

use std::io;
use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;
use pinch_stdx::fs::read_regular;
use pinch_stdx::host::Env;
use serde_json::{Map, Value};

use super::text;

/// Size limit of a configuration file, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum depth of inclusions.
const MAX_DEPTH: usize = 10;
/// The key whose value is a file, or a list of files, whose contents take its place.
const INCLUDE: &str = "$include";

/// A document with everything it includes.
#[derive(Debug, Default)]
pub(super) struct ConfigSource {
    pub(super) document: Map<String, Value>,
    /// The files it was read from.
    pub(super) files: Vec<PathBuf>,
    pub(super) problems: Vec<Problem>,
}

impl ConfigSource {
    /// Reads a file; a missing one counts as empty.
    ///
    /// # Errors
    /// Why the file is unusable. This includes a file that it includes and that cannot be read, because the intended configuration is then
    /// unknown.
    pub(super) fn read(path: &Path, env: &Env) -> Result<Self, Problem> {
        let mut source = Self::default();
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(source),
            Err(error) => return Err(unreadable(path, &error)),
        };
        let mut document = Value::Object(source.parse(&text, path)?);
        let mut stack = vec![path.to_owned()];
        source.include(&mut document, "", &mut stack)?;
        let mut problems = Vec::new();
        substitute(&mut document, &mut Vec::new(), env, &mut |at, name| {
            let what = format!("the environment variable {name} is not set");
            problems.push(Problem::new(path, what).at(at).remedy("Set it; until then the value is ignored"));
        });
        source.problems.extend(problems);
        if let Value::Object(document) = document {
            source.document = document;
        }
        Ok(source)
    }

    fn parse(&mut self, text: &str, path: &Path) -> Result<Map<String, Value>, Problem> {
        let (document, problems) = text::parse(text, path)?;
        self.files.push(path.to_owned());
        self.problems.extend(problems);
        Ok(document)
    }

    /// Replaces inclusions in a value by the included content. `stack`: the files being read.
    fn include(&mut self, value: &mut Value, at: &str, stack: &mut Vec<PathBuf>) -> Result<(), Problem> {
        let join = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        match value {
            Value::Array(items) => {
                for (n, item) in items.iter_mut().enumerate() {
                    self.include(item, &format!("{at}[{n}]"), stack)?;
                }
            }
            Value::Object(members) => {
                let included = members.shift_remove(INCLUDE);
                for (name, member) in members.iter_mut() {
                    self.include(member, &join(name), stack)?;
                }
                if let Some(named) = included {
                    let mut below = Value::Object(Map::new());
                    for name in self.names(&named, &join(INCLUDE), stack)? {
                        let content = self.included(&name, &join(INCLUDE), stack)?;
                        merge(&mut below, content);
                    }
                    let own = std::mem::take(members);
                    merge(&mut below, Value::Object(own));
                    *value = below;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn names(&self, named: &Value, at: &str, stack: &[PathBuf]) -> Result<Vec<String>, Problem> {
        let names = match named {
            Value::String(name) => Some(vec![name.clone()]),
            Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        names.ok_or_else(|| problem(stack, at, "must be a file name or a list of file names".to_owned()))
    }

    /// Returns the content of an included file. Its name is relative to the including file.
    fn included(&mut self, name: &str, at: &str, stack: &mut Vec<PathBuf>) -> Result<Value, Problem> {
        let dir = stack.last().and_then(|file| file.parent()).unwrap_or(Path::new(""));
        let path = dir.join(name);
        let is_same = |other: &PathBuf| *other == path || same_file(other, &path);
        if stack.iter().any(is_same) {
            return Err(problem(stack, at, format!("{} includes itself", path.display())));
        }
        if stack.len() > MAX_DEPTH {
            return Err(problem(stack, at, format!("files include each other more than {MAX_DEPTH} levels deep")));
        }
        let text = read_text(&path)
            .map_err(|error| problem(stack, at, format!("{} cannot be read: {error}", path.display())))?;
        let mut content = Value::Object(self.parse(&text, &path)?);
        stack.push(path);
        self.include(&mut content, "", stack)?;
        stack.pop();
        Ok(content)
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    read_regular(path, MAX_BYTES).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(path, format!("cannot be read: {error}")).remedy("Check the file's permissions")
}

fn problem(stack: &[PathBuf], at: &str, what: String) -> Problem {
    let file = stack.last().map_or(Path::new(""), PathBuf::as_path);
    Problem::new(file, what).at(at).remedy("Correct it; until then the configuration is unusable")
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Merges a value into another one: objects are merged, lists concatenated, everything else replaced.
fn merge(below: &mut Value, over: Value) {
    match (below, over) {
        (Value::Object(below), Value::Object(over)) => {
            for (name, value) in over {
                match below.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => drop(below.insert(name, value)),
                }
            }
        }
        (Value::Array(below), Value::Array(over)) => below.extend(over),
        (below, over) => *below = over,
    }
}

/// Replaces `${NAME}` in texts by variables; `$${NAME}` stands for the text `${NAME}`. Values with an unset variable are removed and
/// reported. Credentials keep their references, which are resolved on use.
fn substitute(value: &mut Value, path: &mut Vec<String>, env: &Env, report: &mut impl FnMut(String, &str)) {
    if is_credential(path) {
        return;
    }
    match value {
        Value::String(text) if text.contains("${") => match substituted(text, env) {
            Ok(new) => *text = new,
            Err(name) => {
                report(path.join("."), &name);
                *value = Value::Null;
            }
        },
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                path.push(n.to_string());
                substitute(item, path, env, report);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                path.push(name.clone());
                substitute(member, path, env, report);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether a member is or contains a credential.
fn is_credential(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["auth", "profiles", _, name] => matches!(name, "apiKey" | "token" | "access" | "refresh"),
        ["models", "providers", _, name] | ["models", "providers", _, "models", _, name] => {
            matches!(name, "apiKey" | "headers")
        }
        _ => false,
    }
}

/// Returns the text with its variables replaced, or the name of the first unset variable.
fn substituted(text: &str, env: &Env) -> Result<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let name = from[2..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
        let Some(name) = name else {
            out.push_str(&rest[..at + 2]);
            rest = &from[2..];
            continue;
        };
        match before.strip_suffix('$') {
            Some(before) => {
                out.push_str(before);
                out.push_str(&from[..name.len() + 3]);
            }
            None => {
                out.push_str(before);
                out.push_str(env.non_empty(name).ok_or_else(|| name.to_owned())?);
            }
        }
        rest = &from[name.len() + 3..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(dir: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            pinch_stdx::fs::write_atomic(&path, text.as_bytes(), pinch_stdx::fs::Access::Private).unwrap();
        }
    }

    fn read(files: &[(&str, &str)]) -> Result<(Value, Vec<String>), String> {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), files);
        let place = format!("{}/", dir.path().display());
        let env = Env::from_iter([("DIR", "/d"), ("EMPTY", "")]);
        let without_dir = |problem: &Problem| problem.to_string().replace(&place, "");
        match ConfigSource::read(&dir.path().join(files[0].0), &env) {
            Ok(source) => Ok((Value::Object(source.document), source.problems.iter().map(without_dir).collect())),
            Err(problem) => Err(without_dir(&problem)),
        }
    }

    #[test]
    fn yaml_and_json5_are_equivalent() {
        let text =
            "# comment\nagents:\n  defaults:\n    workspace: ${DIR}/w\n    maxConcurrent: 4\n  list:\n  - {id: ops}\n";
        let expected =
            json!({"agents": {"defaults": {"workspace": "/d/w", "maxConcurrent": 4}, "list": [{"id": "ops"}]}});
        assert_eq!(read(&[("openclaw.yml", text)]), Ok((expected, vec![])));
        let (document, problems) = read(&[("a.yaml", "a: 1\nb: {c: 1, c: 2}\n")]).unwrap();
        assert_eq!(document, json!({"a": 1, "b": {"c": 2}}));
        assert_eq!(problems, ["a.yaml:b.c: the key appears twice; the last value is used. Remove one of them"]);
        assert!(read(&[("a.yml", "a: [1\nb: 2")]).unwrap_err().starts_with("a.yml:2:"));
        let words = "on: off\n4711: {yes: -1.5}\n-5: ~\nanchors: &a {x: 1}\nother: *a\nday: 2026-11-23\nid: 0049\n";
        let expected = json!({"on": "off", "4711": {"yes": -1.5}, "-5": null, "anchors": {"x": 1}, "other": {"x": 1}, "day": "2026-11-23", "id": "0049"});
        assert_eq!(read(&[("a.yml", words)]), Ok((expected, vec![])));
        assert_eq!(read(&[("a.yml", "- 1")]), Err("a.yml: must be a map of keys to values".to_owned()));
    }

    #[test]
    fn documents_that_are_nested_too_deeply_are_refused() {
        let nested = |n: usize| format!("{{a: {}1{}}}", "[".repeat(n), "]".repeat(n));
        for file in ["p.json", "p.yml"] {
            assert!(read(&[(file, &nested(50))]).is_ok(), "{file}");
            let error = read(&[(file, &nested(100_000))]).unwrap_err();
            assert!(error.starts_with(&format!("{file}:1:")), "{error}");
        }
    }

    #[test]
    fn siblings_of_an_inclusion_override_the_included_files() {
        let found = read(&[
            (
                "pinch.json",
                r#"{a: {$include: "sub/a.json5", own: 1, both: "outer"}, b: {$include: ["sub/b.yml", "sub/c.json"]}}"#,
            ),
            ("sub/a.json5", r#"{both: "inner", deep: {$include: "d.json"}, }"#),
            ("sub/d.json", r#"{"x": ["${DIR}"]}"#),
            ("sub/b.yml", "list: [1]\nname: b"),
            ("sub/c.json", r#"{"list": [2], "name": "c"}"#),
        ]);
        let expected =
            json!({"a": {"both": "outer", "deep": {"x": ["/d"]}, "own": 1}, "b": {"list": [1, 2], "name": "c"}});
        assert_eq!(found, Ok((expected, vec![])));
    }

    #[test]
    fn a_failed_inclusion_makes_the_whole_configuration_unusable() {
        let missing = read(&[("p.json", r#"{tools: {$include: "gone.json"}}"#)]).unwrap_err();
        assert!(missing.starts_with("p.json:tools.$include: gone.json cannot be read: "), "{missing}");
        let circle =
            read(&[("p.json", r#"{$include: "q.json"}"#), ("q.json", r#"{"$include": "./p.json"}"#)]).unwrap_err();
        assert!(circle.starts_with("q.json:$include: ./p.json includes itself"), "{circle}");
        let broken = read(&[("p.json", r#"{$include: "q.json"}"#), ("q.json", "{")]).unwrap_err();
        assert!(broken.starts_with("q.json:") && broken.contains("is not valid JSON5"), "{broken}");
        let kind = read(&[("p.json", "{$include: 5}")]).unwrap_err();
        assert!(kind.starts_with("p.json:$include: must be a file name or a list of file names"), "{kind}");
    }

    #[test]
    fn variables_are_replaced_except_in_credentials() {
        let text = r#"{a: "${DIR}/${DIR}", b: "$${DIR} ${lower} ${", c: "${EMPTY}", d: {e: ["${GONE}"]},
            auth: {profiles: [{id: "p", apiKey: "${GONE}"}]}, models: {providers: {p: {apiKey: "${GONE}", baseUrl: "${DIR}"}}}}"#;
        let (document, problems) = read(&[("p.json", text)]).unwrap();
        let expected = json!({"a": "/d//d", "b": "${DIR} ${lower} ${", "c": null, "d": {"e": [null]},
            "auth": {"profiles": [{"id": "p", "apiKey": "${GONE}"}]},
            "models": {"providers": {"p": {"apiKey": "${GONE}", "baseUrl": "/d"}}}});
        assert_eq!(document, expected);
        let unset = |at: &str, name: &str| {
            format!("p.json:{at}: the environment variable {name} is not set. Set it; until then the value is ignored")
        };
        assert_eq!(problems, [unset("c", "EMPTY"), unset("d.e.0", "GONE")]);
    }
}
