//! Ids of auth profiles.

use pinch_stdx::string_id;

string_id! {
    /// Id of an auth profile: `<provider>:default`, `<provider>:<email>`, or any label chosen by a user.
    ProfileId
}
