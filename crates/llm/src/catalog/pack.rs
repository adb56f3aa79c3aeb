//! The catalog's file format: a text index, then one compressed member per provider.
//!
//! `PINCHCAT`, the length of the index in four bytes (little-endian), the index, the members. A line of the index is `provider models
//! bytes`; the members follow in the same order. A member is deflated JSON: the list of the provider's model records.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::Value;

const MAGIC: &[u8] = b"PINCHCAT";

/// Index entry of a provider's member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackEntry {
    /// The provider.
    pub provider: String,
    /// The number of its models.
    pub n_models: usize,
    /// The byte range of the member inside the file.
    pub place: Range<usize>,
}

/// Parses the index.
///
/// # Errors
/// Returns an error if the bytes are not a catalog file.
pub fn index(file: &[u8]) -> io::Result<Vec<PackEntry>> {
    let read = || -> Option<Vec<PackEntry>> {
        let rest = file.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let n_index = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let text = std::str::from_utf8(rest.get(..n_index)?).ok()?;
        let mut at = MAGIC.len() + 4 + n_index;
        let entry = |line: &str| {
            let mut words = line.split(' ');
            let (provider, n_models, n_bytes) =
                (words.next()?, words.next()?.parse().ok()?, words.next()?.parse::<usize>().ok()?);
            let place = at..at.checked_add(n_bytes).filter(|end| *end <= file.len())?;
            at = place.end;
            Some(PackEntry { provider: provider.to_owned(), n_models, place })
        };
        text.lines().map(entry).collect()
    };
    read().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no model catalog"))
}

/// Unpacks a member: the records of one provider.
///
/// # Errors
/// Returns an error if the bytes are not a member.
pub fn unpack(member: &[u8]) -> io::Result<Vec<Value>> {
    let mut json = Vec::new();
    DeflateDecoder::new(member).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Packs providers and their records into a file.
///
/// # Errors
/// Never in practice: everything happens in memory.
pub fn pack(catalog: &[(String, Vec<Value>)]) -> io::Result<Vec<u8>> {
    let (mut index, mut members) = (String::new(), Vec::new());
    for (provider, records) in catalog {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&serde_json::to_vec(records)?)?;
        let member = encoder.finish()?;
        writeln!(index, "{provider} {} {}", records.len(), member.len()).map_err(io::Error::other)?;
        members.extend(member);
    }
    let n_index = u32::try_from(index.len()).map_err(io::Error::other)?;
    Ok([MAGIC, &n_index.to_le_bytes(), index.as_bytes(), &members].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packed_records_round_trip() {
        let catalog = [("a".to_owned(), vec![json!({"id": "x"}), json!({"id": "y"})]), ("b".to_owned(), Vec::new())];
        let file = pack(&catalog).unwrap();
        let entries = index(&file).unwrap();
        let read: Vec<(String, Vec<Value>)> =
            entries.iter().map(|e| (e.provider.clone(), unpack(&file[e.place.clone()]).unwrap())).collect();
        assert_eq!(read, catalog);
        assert!(index(&file[..file.len() - 1]).is_err());
        assert!(index(b"PINCHCAT").is_err());
    }
}
