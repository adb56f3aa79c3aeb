//! Hooks for sessions and the gateway, which only observe.

use std::sync::Arc;

use super::gateway_payloads::{BeforeReset, GatewayStart, GatewayStop, SessionContext, SessionEnd, SessionStart};
use super::hook_point::HookPoint;
use super::registry::PluginSet;

impl PluginSet {
    /// Notifies plugins that a session is about to be replaced, and that it has ended.
    pub(crate) fn session_ended(&self, reset: BeforeReset, end: SessionEnd, cx: SessionContext) {
        let cx = Arc::new(cx);
        self.notify(HookPoint::BeforeReset, reset, &cx, |plugin, event, cx| plugin.on_before_reset(event, cx));
        self.notify(HookPoint::SessionEnd, end, &cx, |plugin, event, cx| plugin.on_session_end(event, cx));
    }

    /// Notifies plugins that a session begins.
    pub(crate) fn session_started(&self, start: SessionStart, cx: SessionContext) {
        self.notify(HookPoint::SessionStart, start, &Arc::new(cx), |plugin, event, cx| {
            plugin.on_session_start(event, cx)
        });
    }

    /// Notifies plugins that the gateway accepts messages.
    pub(crate) fn gateway_started(&self, start: GatewayStart) {
        self.notify(HookPoint::GatewayStart, start, &Arc::new(()), |plugin, event, ()| plugin.on_gateway_start(event));
    }

    /// Notifies plugins that the gateway no longer accepts messages.
    pub(crate) fn gateway_stopped(&self, stop: GatewayStop) {
        self.notify(HookPoint::GatewayStop, stop, &Arc::new(()), |plugin, event, ()| plugin.on_gateway_stop(event));
    }
}
