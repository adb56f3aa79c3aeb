//! Ids: UUIDs of versions 4 and 7, and short hexadecimal ids.

use std::sync::Mutex;

use uuid::Uuid;

/// A source of ids: random, or derived from a seed so that tests can reproduce a run.
#[derive(Debug)]
pub struct Ids(IdSource);

#[derive(Debug)]
enum IdSource {
    Random,
    Seeded(Mutex<u64>),
}

impl Ids {
    pub(super) fn random() -> Self {
        Self(IdSource::Random)
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self(IdSource::Seeded(Mutex::new(seed)))
    }

    /// Returns sixteen random bytes.
    fn bytes(&self) -> [u8; 16] {
        match &self.0 {
            IdSource::Random => *Uuid::new_v4().as_bytes(),
            IdSource::Seeded(state) => {
                let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&split_mix(&mut state).to_be_bytes());
                bytes[8..].copy_from_slice(&split_mix(&mut state).to_be_bytes());
                bytes
            }
        }
    }

    /// Returns a UUID of version 4, in lower case with hyphens.
    pub fn uuid_v4(&self) -> String {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid().to_string()
    }

    /// Returns a UUID of version 7 for the given Unix time in milliseconds: later ids sort later.
    pub fn uuid_v7(&self, now_ms: i64) -> String {
        let random = self.bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&random[6..]);
        let ms = u64::try_from(now_ms).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(ms, &tail).into_uuid().to_string()
    }

    /// Returns eight lower-case hexadecimal digits.
    pub fn hex8(&self) -> String {
        let b = self.bytes();
        format!("{:02x}{:02x}{:02x}{:02x}", b[0], b[1], b[2], b[3])
    }

    /// Returns a uniformly distributed number from 0 up to but excluding 1, for jitter.
    pub fn fraction(&self) -> f64 {
        let b = self.bytes();
        f64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])) / (f64::from(u32::MAX) + 1.0)
    }
}

/// SplitMix64, by Steele, Lea and Flood (2014): good enough for ids in tests.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_format_of_their_kind() {
        let ids = Ids::random();
        assert_eq!(ids.hex8().len(), 8);
        assert_eq!(Uuid::parse_str(&ids.uuid_v7(1_700_000_000_000)).map(|u| u.get_version_num()), Ok(7));
        assert_eq!(Uuid::parse_str(&ids.uuid_v4()).map(|u| u.get_version_num()), Ok(4));
        assert!((0.0..1.0).contains(&ids.fraction()));
    }

    #[test]
    fn a_seed_reproduces_the_same_ids() {
        assert_eq!(Ids::seeded(7).uuid_v4(), Ids::seeded(7).uuid_v4());
        assert_ne!(Ids::seeded(7).hex8(), Ids::seeded(8).hex8());
    }
}
