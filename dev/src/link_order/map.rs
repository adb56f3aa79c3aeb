//! The functions of a program, read from the map that lld writes.

/// The code of one function.
pub(super) struct CodeSection<'a> {
    /// The crate that it was compiled in, as in the name of its library.
    pub(super) unit: &'a str,
    /// Name of its section without `.text.`: the function's symbol, perhaps after `unlikely.`.
    pub(super) name: &'a str,
    /// Bytes.
    pub(super) size: u64,
}

impl CodeSection<'_> {
    /// The function's symbol.
    pub(super) fn symbol(&self) -> &str {
        self.name.strip_prefix("unlikely.").unwrap_or(self.name)
    }
}

/// Returns the functions in a map; code that has no section of its own, such as assembly, is left out.
pub(super) fn code_sections(map: &str) -> Vec<CodeSection<'_>> {
    map.lines().filter_map(section).collect()
}

/// Reads a line like `8b9729 8b9729 9c 1 /path/libname-0123456789abcdef.rlib(member.o):(.text.symbol)`.
fn section(line: &str) -> Option<CodeSection<'_>> {
    let (rest, name) = line.strip_suffix(')')?.rsplit_once(":(.text.")?;
    let size = u64::from_str_radix(rest.split_ascii_whitespace().nth(2)?, 16).ok()?;
    Some(CodeSection { unit: unit(rest)?, name, size })
}

/// Returns the name of the library in whose file a line ends. The program's own files belong to `pinch`.
fn unit(file: &str) -> Option<&str> {
    if let Some((library, _)) = file.split_once(".rlib(") {
        let name = library.rsplit('/').next()?.strip_prefix("lib")?;
        return Some(name.rsplit_once('-')?.0);
    }
    let name = file.rsplit('/').next()?;
    (name.starts_with("pinch-") && name.ends_with(".rcgu.o")).then_some("pinch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sections_of_libraries_and_of_the_program() {
        let map = "             VMA              LMA     Size Align Out     In      Symbol\n\
            \x20         8b9729           8b9729       9c     1         /a b/deps/pinch-4e5cd61b3c1297f9.pinch.fa87-cgu.00.rcgu.o:(.text._ZN3one17h0123456789abcdefE)\n\
            \x20         8b9729           8b9729       9c     1                 _ZN3one17h0123456789abcdefE\n\
            \x20        10cb347          10cb347       5d     1         /a b/deps/libpinch_llm-d53ba9f9912dbea7.rlib(pinch_llm-d53b.rcgu.o):(.text.unlikely._ZN3two17h0123456789abcdefE)\n\
            \x20        10cb347          10cb347       5d     1         /usr/lib/crti.o:(.text)\n";
        let sections = code_sections(map);
        let seen: Vec<_> = sections.iter().map(|section| (section.unit, section.symbol(), section.size)).collect();
        let expect =
            [("pinch", "_ZN3one17h0123456789abcdefE", 0x9c), ("pinch_llm", "_ZN3two17h0123456789abcdefE", 0x5d)];
        assert_eq!(seen, expect);
    }
}
