//! Hooks for sessions and the gateway, which only observe.

use std::sync::Arc;

use super::gateway_payloads::{BeforeReset, GatewayStart, GatewayStop, SessionContext, SessionEnd, SessionStart};
use super::registry::PluginSet;

impl PluginSet {
    /// Notifies plugins that a session is about to be replaced, and that it has ended.
    pub(crate) fn session_ended(&self, reset: BeforeReset, end: SessionEnd, cx: SessionContext) {
        let cx = Arc::new(cx);
        self.notify("before_reset", reset, &cx, |plugin, event, cx| plugin.on_before_reset(event, cx));
        self.notify("session_end", end, &cx, |plugin, event, cx| plugin.on_session_end(event, cx));
    }

    /// Notifies plugins that a session begins.
    pub(crate) fn session_started(&self, start: SessionStart, cx: SessionContext) {
        self.notify("session_start", start, &Arc::new(cx), |plugin, event, cx| plugin.on_session_start(event, cx));
    }

    /// Notifies plugins that the gateway accepts messages.
    pub(crate) fn gateway_started(&self, start: GatewayStart) {
        self.notify("gateway_start", start, &Arc::new(()), |plugin, event, ()| plugin.on_gateway_start(event));
    }

    /// Notifies plugins that the gateway no longer accepts messages.
    pub(crate) fn gateway_stopped(&self, stop: GatewayStop) {
        self.notify("gateway_stop", stop, &Arc::new(()), |plugin, event, ()| plugin.on_gateway_stop(event));
    }
}
