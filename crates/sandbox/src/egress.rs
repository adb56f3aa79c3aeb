//! Network access limited to a list of servers.
//!
//! Commands run in a network namespace of their own, from which nothing is reachable except a listening socket that belongs to a proxy
//! outside. The proxy connects to listed servers only. The socket is created inside the namespace and handed out, so that neither a
//! program inside nor a route is needed, and there is no other way out.

mod namespace;
mod proxy;
mod gate;

pub(crate) use gate::{EgressGate, EgressProxy};
