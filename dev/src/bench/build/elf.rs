//! Section sizes of 64-bit little-endian ELF files.

/// Size of a section table entry in bytes.
const ENTRY: usize = 64;

/// The size of the named section; `None` for other files and unknown names.
pub(super) fn section_size(file: &[u8], name: &str) -> Option<u64> {
    // Magic, 64 bits, little-endian.
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, n, names) = (number::<8>(file, 0x28)?, number::<2>(file, 0x3c)?, number::<2>(file, 0x3e)?);
    let entry = |at: u64| file.get(usize::try_from(table).ok()?..)?.chunks_exact(ENTRY).nth(usize::try_from(at).ok()?);
    let texts = file.get(usize::try_from(number::<8>(entry(names)?, 0x18)?).ok()?..)?;
    (0..n).filter_map(entry).find_map(|entry| {
        let text = texts.get(usize::try_from(number::<4>(entry, 0)?).ok()?..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        (text[..end] == *name.as_bytes()).then(|| number::<8>(entry, 0x20))?
    })
}

/// A number of N bytes at an offset.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a table of three sections after the header, followed by their names.
    fn file() -> Vec<u8> {
        let mut file = vec![0; 64 + 3 * ENTRY];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28] = 64;
        file[0x3c] = 3;
        file[0x3e] = 2;
        let (text, names) = (64 + ENTRY, 64 + 2 * ENTRY);
        file[text] = 1;
        file[text + 0x20..text + 0x28].copy_from_slice(&0x1_2345u64.to_le_bytes());
        file[names] = 7;
        let end = u64::try_from(file.len()).unwrap();
        file[names + 0x18..names + 0x20].copy_from_slice(&end.to_le_bytes());
        file.extend(b"\0.text\0.shstrtab\0");
        file
    }

    #[test]
    fn a_section_is_found_by_its_whole_name() {
        assert_eq!(section_size(&file(), ".text"), Some(0x1_2345));
        assert_eq!(section_size(&file(), ".tex"), None);
        assert_eq!(section_size(&file(), ".data"), None);
    }

    #[test]
    fn a_broken_file_has_no_sections() {
        let whole = file();
        for end in 0..64 + 3 * ENTRY {
            assert_eq!(section_size(&whole[..end], ".text"), None, "{end}");
        }
        assert_eq!(section_size(b"MZ", ".text"), None);
    }
}
