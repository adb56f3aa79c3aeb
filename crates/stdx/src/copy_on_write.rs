//! A value that several owners share until one of them changes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value whose clones share it; changing one of them copies it first. It is used like the value itself.
///
/// ```
/// use pinch_stdx::copy_on_write::CopyOnWrite;
///
/// let first = CopyOnWrite::from(vec![1]);
/// let mut second = first.clone();
/// second.push(2);
/// assert_eq!((first.len(), second.len()), (1, 2));
/// ```
#[derive(Debug, Default)]
pub struct CopyOnWrite<T>(Arc<T>);

impl<T> Clone for CopyOnWrite<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for CopyOnWrite<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
