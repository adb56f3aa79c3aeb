//! The result of a command as data, for programs that call tools. They get far more of the output than a model.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use pinch_llm::schema::Schema;
use pinch_stdx::process::tail::OutputTail;
use serde_json::{Value, json};

/// Maximum bytes of output; of longer output, the first half and the last.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the schema of [`content`].
pub(super) fn schema() -> Schema {
    Schema::new(json!({
        "type": "object",
        "required": ["output", "truncated", "exit_code", "wall_time_seconds"],
        "properties": {
            "output": {"type": "string", "description": "Standard output and error together, possibly cut"},
            "truncated": {"type": "boolean"},
            "full_output_path": {"type": "string", "description": "File with the whole output, when it was cut"},
            "exit_code": {"type": "number"},
            "wall_time_seconds": {"type": "number"},
        },
    }))
}

/// Returns the value of `structuredContent`.
pub(super) fn content(tail: &OutputTail, exit_code: i32, took: Duration) -> Value {
    let (output, truncated) = match tail.spill_path().map(ends) {
        Some(Ok(ends)) => ends,
        // Without a file, all output is in memory.
        _ => (tail.text().to_owned(), !tail.is_whole()),
    };
    let mut content = json!({"output": output, "truncated": truncated});
    if let Some(path) = tail.spill_path().filter(|_| truncated) {
        content["full_output_path"] = path.to_string_lossy().into();
    }
    content["exit_code"] = exit_code.into();
    content["wall_time_seconds"] = ((took.as_secs_f64() * 10.0).round() / 10.0).into();
    content
}

/// Returns the whole file, or its first and last half of [`MAX_BYTES`], and whether something was omitted.
fn ends(path: &Path) -> io::Result<(String, bool)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut read = |n_bytes: u64| {
        let mut bytes = Vec::new();
        (&mut file).take(n_bytes).read_to_end(&mut bytes).map(|_| bytes)
    };
    if size <= MAX_BYTES {
        return Ok((String::from_utf8_lossy(&read(MAX_BYTES)?).into_owned(), false));
    }
    let half = MAX_BYTES / 2;
    let head = read(half)?;
    file.seek(SeekFrom::Start(size - half))?;
    let mut tail = Vec::new();
    file.take(half).read_to_end(&mut tail)?;
    // Omit characters cut in two.
    let cut = std::str::from_utf8(&head).err().filter(|error| error.error_len().is_none());
    let head = &head[..cut.map_or(head.len(), |error| error.valid_up_to())];
    let begin = tail.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(tail.len());
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(&tail[begin..]));
    let omitted = size - MAX_BYTES;
    Ok((format!("{head}\n\n[... {omitted} bytes omitted ...]\n\n{tail}"), true))
}

#[cfg(test)]
mod tests {
    use pinch_stdx::process::tail::{Cleaning, TailLimits};

    use super::*;

    fn tail(dir: &Path, text: &str) -> OutputTail {
        let limits = TailLimits {
            max_bytes: 1000,
            max_lines: 100,
            max_spill: u64::MAX,
            spill_dir: dir.to_owned(),
            spill_prefix: "x".into(),
        };
        let mut tail = OutputTail::new(limits, Cleaning::None);
        tail.push(text.as_bytes());
        tail.finish();
        tail
    }

    #[test]
    fn programs_get_the_complete_output_or_both_ends_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str| content(&tail(dir.path(), text), 3, Duration::from_millis(1_270));
        let small = json!({"output": "a\n", "truncated": false, "exit_code": 3, "wall_time_seconds": 1.3});
        assert_eq!(of("a\n"), small);
        let long = "x".repeat(100_000);
        assert_eq!((&of(&long)["output"], &of(&long)["truncated"]), (&json!(long), &json!(false)));
        let longest = format!("a{}z", "ä".repeat(1024 * 1024));
        let shown = of(&longest);
        let text = shown["output"].as_str().unwrap();
        assert!(text.starts_with("aä") && text.ends_with("äz") && !text.contains('\u{fffd}'));
        assert!(text.contains("\n\n[... 1048578 bytes omitted ...]\n\n"));
        assert!(shown["truncated"] == true && shown["full_output_path"].is_string());
    }
}
