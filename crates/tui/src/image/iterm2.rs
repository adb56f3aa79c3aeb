//! The inline image protocol of iTerm2.

use super::ImageCells;

/// Returns the control sequence that draws a base64-encoded file at the cursor, which is left somewhere at the image. `n_bytes`: the size
/// of the file.
pub fn iterm2_image(cells: ImageCells, n_bytes: usize, file: &str) -> Vec<u8> {
    let ImageCells { columns, rows } = cells;
    let keys = format!("inline=1;size={n_bytes};width={columns};height={rows};preserveAspectRatio=1");
    format!("\x1b]1337;File={keys}:{file}\x07").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_command() {
        let bytes = iterm2_image(ImageCells { columns: 3, rows: 2 }, 3, "QUJD");
        let expected = "\x1b]1337;File=inline=1;size=3;width=3;height=2;preserveAspectRatio=1:QUJD\x07";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
