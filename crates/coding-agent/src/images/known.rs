//! A cache of checked images.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_llm::message::Image;

/// Maximum number of images to remember, at a few bytes each; the oldest are dropped.
const MAX_KNOWN: usize = 256;

/// Width and height of an image as displayed.
pub(super) type Sides = (u32, u32);

/// Valid images and their sides. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownImages(Arc<KnownImagesShared>);

#[derive(Debug, Default)]
struct KnownImagesShared {
    /// The random seed prevents others from constructing collisions.
    hashes: RandomState,
    sides: Mutex<VecDeque<(u64, Sides)>>,
    n_decoded: AtomicU64,
}

impl KnownImages {
    pub(super) fn add(&self, image: &Image, sides: Sides) {
        let hash = self.hash(image);
        let mut known = self.known();
        known.retain(|(other, _)| *other != hash);
        if known.len() == MAX_KNOWN {
            known.pop_front();
        }
        known.push_back((hash, sides));
    }

    /// Returns the sides of a known image.
    pub(super) fn sides(&self, image: &Image) -> Option<Sides> {
        if self.known().is_empty() {
            return None;
        }
        let hash = self.hash(image);
        self.known().iter().rev().find(|(other, _)| *other == hash).map(|(_, sides)| *sides)
    }

    fn hash(&self, image: &Image) -> u64 {
        self.0.hashes.hash_one((&image.data, &image.mime_type))
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<(u64, Sides)>> {
        self.0.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a decoded image.
    pub(super) fn count(&self) {
        self.0.n_decoded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn n_decoded(&self) -> u64 {
        self.0.n_decoded.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_images_are_remembered_by_their_whole_content() {
        let image = |n: usize| Image { data: n.to_string(), mime_type: "image/png".into() };
        let known = KnownImages::default();
        assert_eq!(known.sides(&image(0)), None);
        for n in 0..=MAX_KNOWN {
            known.clone().add(&image(n), (1, n as u32));
        }
        assert_eq!(known.sides(&image(0)), None);
        assert_eq!(known.sides(&image(1)), Some((1, 1)));
        assert_eq!(known.sides(&Image { mime_type: "image/gif".into(), ..image(1) }), None);
        known.add(&image(1), (2, 2));
        known.add(&image(MAX_KNOWN + 1), (3, 3));
        assert_eq!(known.sides(&image(1)), Some((2, 2)));
        assert_eq!(known.sides(&image(2)), None);
    }
}
