//! Call ids that Mistral accepts: nine letters and digits.

use std::collections::HashMap;

use crate::normalise::ids::short_hash;

const LENGTH: usize = 9;

/// New ids by old one, for one request: calls and results agree, and different calls stay distinct.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    new_by_old: HashMap<String, String>,
    old_by_new: HashMap<String, String>,
}

impl CallIds {
    /// Returns the new id of a call.
    pub(super) fn rename(&mut self, old: &str) -> String {
        if let Some(new) = self.new_by_old.get(old) {
            return new.clone();
        }
        let mut n_tries = 0;
        let new = loop {
            let new = derive(old, n_tries);
            if !self.old_by_new.contains_key(&new) {
                break new;
            }
            n_tries += 1;
        };
        self.new_by_old.insert(old.to_owned(), new.clone());
        self.old_by_new.insert(new.clone(), old.to_owned());
        new
    }
}

/// Derives the id for an attempt: the old one if it fits, else a hash of it.
pub(super) fn derive(old: &str, n_tries: usize) -> String {
    let plain: String = old.chars().filter(char::is_ascii_alphanumeric).collect();
    if n_tries == 0 && plain.len() == LENGTH {
        return plain;
    }
    let seed = if plain.is_empty() { old } else { &plain };
    let hash = if n_tries == 0 { short_hash(seed) } else { short_hash(&format!("{seed}:{n_tries}")) };
    hash.chars().take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_stay_distinct() {
        let mut ids = CallIds::default();
        assert_eq!(ids.rename("D681PevKs"), "D681PevKs");
        assert_eq!(ids.rename("D681-PevKs"), derive("D681-PevKs", 1), "the plain name is taken");
        let new = ids.rename("toolu_01ABCDEF");
        assert_eq!(new, short_hash("toolu01ABCDEF")[..9]);
        assert_eq!(ids.rename("toolu_01ABCDEF"), new);
        assert_eq!(ids.rename("é|"), short_hash("é|")[..9]);
    }
}
