//! The graphics protocol of kitty.

use ratatui_core::style::{Color, Style};
use ratatui_core::text::Span;

use super::{ImageCells, MAX_CELLS};
use crate::Row;

/// Maximum number of base64 characters per command.
const CHUNK: usize = 4096;

/// The character whose cells show a part of an image.
const PLACEHOLDER: char = '\u{10eeee}';

/// Diacritics that encode rows and columns, as ranges: the nth one encodes n. The protocol has more.
const MARKS: [(u32, u32); 43] = [
    (0x0305, 0x0305),
    (0x030d, 0x030e),
    (0x0310, 0x0310),
    (0x0312, 0x0312),
    (0x033d, 0x033f),
    (0x0346, 0x0346),
    (0x034a, 0x034c),
    (0x0350, 0x0352),
    (0x0357, 0x0357),
    (0x035b, 0x035b),
    (0x0363, 0x036f),
    (0x0483, 0x0487),
    (0x0592, 0x0595),
    (0x0597, 0x0599),
    (0x059c, 0x05a1),
    (0x05a8, 0x05a9),
    (0x05ab, 0x05ac),
    (0x05af, 0x05af),
    (0x05c4, 0x05c4),
    (0x0610, 0x0617),
    (0x0657, 0x065b),
    (0x065d, 0x065e),
    (0x06d6, 0x06dc),
    (0x06df, 0x06e2),
    (0x06e4, 0x06e4),
    (0x06e7, 0x06e8),
    (0x06eb, 0x06ec),
    (0x0730, 0x0730),
    (0x0732, 0x0733),
    (0x0735, 0x0736),
    (0x073a, 0x073a),
    (0x073d, 0x073d),
    (0x073f, 0x0741),
    (0x0743, 0x0743),
    (0x0745, 0x0745),
    (0x0747, 0x0747),
    (0x0749, 0x074a),
    (0x07eb, 0x07f1),
    (0x07f3, 0x07f3),
    (0x0816, 0x0819),
    (0x081b, 0x0823),
    (0x0825, 0x0827),
    (0x0829, 0x082d),
];

/// Returns the diacritic for a number below [`MAX_CELLS`].
fn mark(number: u16) -> Option<char> {
    let mut left = u32::from(number);
    for (first, last) in MARKS {
        let n_marks = last - first + 1;
        if left < n_marks {
            return char::from_u32(first + left);
        }
        left -= n_marks;
    }
    None
}

/// Returns the commands that send a base64-encoded PNG and show it wherever there are placeholders with its id and this placement. The id
/// has 24 bits and must not be 0; terminals never answer.
pub fn kitty_transmission(id: u32, placement: u8, cells: ImageCells, png: &str) -> Vec<u8> {
    let ImageCells { columns, rows } = cells;
    commands(&format!("a=T,U=1,f=100,i={id},p={placement},c={columns},r={rows}"), png)
}

/// Returns the command that shows a sent image in another size, under another placement.
pub fn kitty_placement(id: u32, placement: u8, cells: ImageCells) -> Vec<u8> {
    let ImageCells { columns, rows } = cells;
    format!("\x1b_Ga=p,U=1,q=2,i={id},p={placement},c={columns},r={rows}\x1b\\").into_bytes()
}

/// Returns the commands that send a base64-encoded PNG and draw it at the cursor, which does not move.
pub fn kitty_image(cells: ImageCells, png: &str) -> Vec<u8> {
    let ImageCells { columns, rows } = cells;
    commands(&format!("a=T,f=100,C=1,c={columns},r={rows}"), png)
}

/// Splits a command and its data as required by the protocol.
fn commands(command: &str, data: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + data.len() / CHUNK * 16 + 80);
    let mut pieces = data.as_bytes().chunks(CHUNK).peekable();
    let mut head = format!("{command},");
    while let Some(piece) = pieces.next() {
        let more = u8::from(pieces.peek().is_some());
        out.extend(format!("\x1b_G{head}q=2,m={more};").bytes());
        out.extend(piece);
        out.extend(b"\x1b\\");
        head.clear();
    }
    out
}

/// Returns the rows that the terminal replaces with an image. Their foreground and underline colours must not be changed.
pub fn kitty_placeholders(id: u32, placement: u8, cells: ImageCells) -> Vec<Row> {
    let [_, red, green, blue] = id.to_be_bytes();
    let style = Style::new().fg(Color::Rgb(red, green, blue)).underline_color(Color::Indexed(placement));
    let columns: Vec<char> = (0..cells.columns.min(MAX_CELLS)).filter_map(mark).collect();
    let row = |row: char| columns.iter().flat_map(|column| [PLACEHOLDER, row, *column]).collect::<String>();
    let marks = (0..cells.rows.min(MAX_CELLS)).filter_map(mark);
    marks.map(|mark| Row::from(Span::styled(row(mark), style))).collect()
}

/// Returns whether a grapheme is a placeholder rather than text.
pub(crate) fn is_placeholder(grapheme: &str) -> bool {
    grapheme.starts_with(PLACEHOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::row_width;

    const CELLS: ImageCells = ImageCells { columns: 3, rows: 2 };

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_small_image_is_one_command() {
        assert_eq!(
            text(kitty_transmission(0x1_0203, 1, CELLS, "QUJD")),
            "\x1b_Ga=T,U=1,f=100,i=66051,p=1,c=3,r=2,q=2,m=0;QUJD\x1b\\"
        );
        assert_eq!(text(kitty_image(CELLS, "QUJD")), "\x1b_Ga=T,f=100,C=1,c=3,r=2,q=2,m=0;QUJD\x1b\\");
        assert_eq!(text(kitty_placement(7, 2, CELLS)), "\x1b_Ga=p,U=1,q=2,i=7,p=2,c=3,r=2\x1b\\");
    }

    /// Reassembles an image as a terminal does: the keys of the first command, and the data of all.
    fn reassembled(bytes: &str) -> (String, String) {
        let commands: Vec<&str> = bytes.split("\x1b_G").skip(1).map(|c| c.strip_suffix("\x1b\\").unwrap()).collect();
        let mut data = String::new();
        for (at, command) in commands.iter().enumerate() {
            let (keys, piece) = command.split_once(';').unwrap();
            let is_last = at + 1 == commands.len();
            assert!(keys.ends_with(if is_last { "q=2,m=0" } else { "q=2,m=1" }), "{keys}");
            assert!(at == 0 || keys.len() == 7, "later pieces have only these keys: {keys}");
            assert!(piece.len() == 4096 || is_last && piece.len() <= 4096);
            data.push_str(piece);
        }
        (commands[0].split_once(';').unwrap().0.to_owned(), data)
    }

    #[test]
    fn the_pieces_of_a_large_image_can_be_reassembled() {
        for n in [4, 4092, 4096, 4100, 8192, 100_000] {
            let data: String = (0..n).map(|at| char::from(b'A' + (at % 26) as u8)).collect();
            let (keys, got) = reassembled(&text(kitty_transmission(9, 1, CELLS, &data)));
            assert!(keys.starts_with("a=T,U=1,f=100,i=9,p=1,c=3,r=2,"), "{keys}");
            assert!(got == data, "{n}");
        }
    }

    #[test]
    fn placeholders_encode_the_image_and_the_part_of_it() {
        let rows = kitty_placeholders(0x1_0203, 4, CELLS);
        let style = Style::new().fg(Color::Rgb(1, 2, 3)).underline_color(Color::Indexed(4));
        let expected = [
            "\u{10eeee}\u{305}\u{305}\u{10eeee}\u{305}\u{30d}\u{10eeee}\u{305}\u{30e}",
            "\u{10eeee}\u{30d}\u{305}\u{10eeee}\u{30d}\u{30d}\u{10eeee}\u{30d}\u{30e}",
        ];
        assert_eq!(rows, expected.map(|text| Row::from(Span::styled(text, style))));
    }

    #[test]
    fn every_placeholder_is_one_column_wide_and_diacritics_are_unique() {
        let cells = ImageCells { columns: MAX_CELLS, rows: MAX_CELLS };
        let rows = kitty_placeholders(1, 1, cells);
        assert_eq!(rows.len(), usize::from(MAX_CELLS));
        assert!(rows.iter().all(|row| row_width(row) == usize::from(MAX_CELLS)));
        let mut marks: Vec<char> = (0..MAX_CELLS).filter_map(mark).collect();
        marks.dedup();
        assert_eq!(marks.len(), usize::from(MAX_CELLS));
        assert!(marks.is_sorted());
        // Samples from the protocol's list.
        assert_eq!([mark(5), mark(17), mark(30), mark(53)], ['\u{33d}', '\u{363}', '\u{483}', '\u{5c4}'].map(Some));
    }
}
