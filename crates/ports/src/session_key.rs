//! Routing keys of sessions.

use pinch_stdx::string_id;

string_id! {
    /// Routing key of a session, such as `agent:main:telegram:direct:42`. It names the conversation; the session id names its current
    /// transcript, which changes with every reset.
    SessionKey
}
