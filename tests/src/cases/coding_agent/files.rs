//! The files of a case.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Writes the initial files of a case.
pub(super) fn write(folder: &Path, files: &Value) -> Result<(), String> {
    for (name, file) in files.as_object().into_iter().flatten() {
        let path = folder.join(name);
        let parent = path.parent().ok_or("a file without a folder")?;
        std::fs::create_dir_all(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
        let done = if file["dir"] == true {
            std::fs::create_dir_all(&path)
        } else if let Some(target) = file["symlink"].as_str() {
            link(target, &path)
        } else {
            std::fs::write(&path, content(file)?)
        };
        done.map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn link(target: &str, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_: &str, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn content(file: &Value) -> Result<Vec<u8>, String> {
    if let Some(text) = file.as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(text) = file["base64"].as_str() {
        return STANDARD.decode(text).map_err(|why| why.to_string());
    }
    let number = |name: &str| file[name].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    match file["gen"].as_str() {
        Some("lines") => Ok(lines(file, number("count"), number("pad"))),
        Some("repeat") => Ok(file["text"].as_str().unwrap_or_default().repeat(number("times")).into_bytes()),
        Some("png") => Ok(png(number("width"), number("height"))),
        _ => Err(format!("no such file: {file}")),
    }
}

fn lines(file: &Value, count: usize, pad: usize) -> Vec<u8> {
    let prefix = file["prefix"].as_str().unwrap_or_default();
    let padding = if pad > 0 { format!(" {}", "x".repeat(pad)) } else { String::new() };
    let mut text = (1..=count).map(|i| format!("{prefix}{i}{padding}")).collect::<Vec<_>>().join("\n");
    if file["trailingNewline"] == true {
        text.push('\n');
    }
    text.into_bytes()
}

/// A grey image: eight bits, RGB, no filter.
fn png(width: usize, height: usize) -> Vec<u8> {
    use std::io::Write as _;
    let mut row = vec![0];
    row.extend(std::iter::repeat_n(0x40, width * 3));
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    for _ in 0..height {
        // Writing to memory cannot fail.
        packed.write_all(&row).unwrap_or_default();
    }
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    let head = [&side(width)[..], &side(height)[..], &[8, 2, 0, 0, 0]].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", head), (b"IDAT", packed.finish().unwrap_or_default()), (b"IEND", Vec::new())] {
        file.extend(side(data.len()));
        let mut sum = flate2::Crc::new();
        sum.update(kind);
        sum.update(&data);
        file.extend(kind);
        file.extend(data);
        file.extend(sum.sum().to_be_bytes());
    }
    file
}
