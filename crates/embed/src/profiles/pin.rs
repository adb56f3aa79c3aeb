//! Pins a session to a profile from run to run, because providers cache prompts per credential.

use pinch_ports::OverrideSource;

use super::choice::{ProfileChoice, ProfileSource};
use crate::key::ProfileId;

/// Stored state of a session's profile.
#[derive(Clone, Debug, Default)]
pub struct SessionPin {
    /// The profile.
    pub profile: Option<ProfileId>,
    /// Who chose it; missing in files of earlier versions.
    pub source: Option<OverrideSource>,
    /// Number of compactions when it was chosen.
    pub chosen_at_compaction: Option<u64>,
    /// Current number of compactions.
    pub compaction_count: u64,
    /// Whether the session has just begun.
    pub is_new_session: bool,
}

impl SessionPin {
    /// Returns the profile for the next run, out of `order`; `None` if there are none.
    ///
    /// A profile chosen by the user stays until a new session begins, even if it is not in the order. Otherwise a new session or a
    /// compaction, after which nothing is cached, moves on to the next usable profile, and a profile in cooldown is replaced by the first
    /// usable one.
    pub fn next(&self, order: &[ProfileId], is_usable: impl Fn(&ProfileId) -> bool) -> Option<ProfileChoice> {
        // It is never replaced silently: a run whose profile is gone reports it.
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
