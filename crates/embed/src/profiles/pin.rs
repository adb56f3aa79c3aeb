//! Which profile a session sticks to: the same one from run to run, because providers cache prompts by credential.

use pinch_ports::OverrideSource;

use super::choice::{ProfileChoice, ProfileSource};
use crate::key::ProfileId;

/// What a session remembers about its profile.
#[derive(Clone, Debug, Default)]
pub struct SessionPin {
    /// The profile.
    pub profile: Option<ProfileId>,
    /// Who chose it; missing in files of earlier versions.
    pub source: Option<OverrideSource>,
    /// The number of compactions when it was chosen.
    pub chosen_at_compaction: Option<u64>,
    /// The number of compactions now.
    pub compaction_count: u64,
    /// Whether the session has just begun.
    pub is_new_session: bool,
}

impl SessionPin {
    /// The profile for the next run, of those in `order`; `None` if there are none.
    ///
    /// A profile that the user chose stays until a new session begins, even if it is not in the order. Otherwise a new session and a compaction, which leave nothing cached,
    /// move on to the next usable profile; and a profile in cooldown is replaced by the first usable one.
    pub fn next(&self, order: &[ProfileId], is_usable: impl Fn(&ProfileId) -> bool) -> Option<ProfileChoice> {
        // It is never replaced silently: a run whose profile is gone says so.
        if let Some(chosen) = &self.profile
            && self.source() == OverrideSource::User
            && !self.is_new_session
        {
            return Some(ProfileChoice { id: chosen.clone(), source: ProfileSource::User });
        }
        let first = order.iter().find(|id| is_usable(id)).or(order.first())?;
        let auto = |id: &ProfileId| Some(ProfileChoice { id: id.clone(), source: ProfileSource::Auto });
        let Some(at) = self.profile.as_ref().and_then(|current| order.iter().position(|id| id == current)) else {
            return auto(first);
        };
        let current = &order[at];
        let was_compacted = self.chosen_at_compaction.is_some_and(|then| self.compaction_count > then);
        if self.is_new_session || was_compacted {
            let (before, from) = order.split_at(at);
            let after = from.iter().skip(1).chain(before);
            return auto(after.into_iter().find(|id| is_usable(id)).unwrap_or(current));
        }
        auto(if is_usable(current) { current } else { first })
    }

    fn source(&self) -> OverrideSource {
        self.source.unwrap_or(match self.chosen_at_compaction {
            Some(_) => OverrideSource::Auto,
            None => OverrideSource::User,
        })
    }
}
