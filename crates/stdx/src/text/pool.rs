//! Texts that many owners keep, held once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Holds equal texts once, for texts that many owners keep for a long time, such as the sections of system prompts. Texts that nobody else
/// holds any more are dropped as others are added.
#[derive(Debug, Default)]
pub struct TextPool(Mutex<PooledTexts>);

#[derive(Debug, Default)]
struct PooledTexts {
    texts: HashSet<Arc<str>>,
    /// The number of texts at which unused ones are searched for.
    limit: usize,
}

/// The least number of texts at which unused ones are searched for.
const MIN_LIMIT: usize = 64;

impl TextPool {
    /// Returns a text equal to this one that is shared with everyone who asked for it before.
    pub fn shared(&self, text: &Arc<str>) -> Arc<str> {
        let mut pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pooled.texts.get(text) {
            return Arc::clone(known);
        }
        if pooled.texts.len() >= pooled.limit {
            pooled.texts.retain(|text| Arc::strong_count(text) > 1);
            // Doubled, so that the searches cost a constant time for each text.
            pooled.limit = (pooled.texts.len() * 2).max(MIN_LIMIT);
        }
        pooled.texts.insert(Arc::clone(text));
        Arc::clone(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_while_they_are_used() {
        let pool = TextPool::default();
        let first = pool.shared(&"a".into());
        assert!(Arc::ptr_eq(&first, &pool.shared(&"a".into())));
        assert!(!Arc::ptr_eq(&first, &pool.shared(&"b".into())));
        for n in 0..10 * MIN_LIMIT {
            pool.shared(&n.to_string().into());
        }
        let n_pooled = pool.0.lock().unwrap().texts.len();
        assert!(n_pooled <= MIN_LIMIT, "{n_pooled} texts are kept");
        assert!(Arc::ptr_eq(&first, &pool.shared(&"a".into())), "a text in use stays");
    }
}
