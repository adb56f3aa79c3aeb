//! Ids of runs.

use pinch_stdx::string_id;

string_id! {
    /// Id of a run, unique among the runs of a host.
    RunId
}
