//! Hooks for incoming and outgoing messages.

use std::fmt;
use std::sync::Arc;

use pinch_ports::Caller;

use super::gateway_payloads::{MessageChanges, MessageContext, MessageReceived, MessageSending, MessageSent};
use super::hook_point::HookPoint;
use super::registry::PluginSet;

/// The plugins of an engine, for the messages of one conversation.
#[derive(Clone, Default)]
pub(crate) struct MessageHooks {
    plugins: PluginSet,
    cx: Arc<MessageContext>,
    /// Target of messages within the channel.
    to: Option<String>,
}

impl MessageHooks {
    pub(crate) fn new(plugins: &PluginSet, cx: impl FnOnce() -> MessageContext, to: Option<&String>) -> Self {
        if plugins.is_empty() {
            return Self::default();
        }
        Self { plugins: plugins.clone(), cx: Arc::new(cx()), to: to.cloned() }
    }

    /// Returns whether there are no plugins.
    pub(crate) fn is_empty(&self) -> bool {
        self.plugins.is_empty()
    }

    /// Notifies plugins of an incoming message.
    pub(crate) fn received(&self, caller: &Caller, content: &str, n_images: usize, timestamp_ms: i64) {
        if self.is_empty() {
            return;
        }
        let (from, caller) = (caller.sender.id.clone(), caller.clone());
        let event = MessageReceived { from, content: content.to_owned(), n_images, timestamp_ms, caller };
        self.plugins.notify(HookPoint::MessageReceived, event, &self.cx, |plugin, event, cx| {
            plugin.on_message_received(event, cx)
        });
    }

    /// Asks plugins for changes to an outgoing message.
    pub(crate) async fn sending(&self, content: &str, media: &[String]) -> MessageChanges {
        let event = MessageSending { to: self.to.clone(), content: content.to_owned(), media: media.to_vec() };
        self.plugins
            .ask(HookPoint::MessageSending, &event, &*self.cx, |plugin, event, cx| plugin.message_sending(event, cx))
            .await
    }

    /// Notifies plugins of the outcome of a message.
    pub(crate) fn sent(&self, content: &str, error: Option<String>) {
        if self.is_empty() {
            return;
        }
        let event = MessageSent { to: self.to.clone(), content: content.to_owned(), success: error.is_none(), error };
        self.plugins
            .notify(HookPoint::MessageSent, event, &self.cx, |plugin, event, cx| plugin.on_message_sent(event, cx));
    }
}

impl fmt::Debug for MessageHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageHooks").field("plugins", &self.plugins).field("cx", &self.cx).finish_non_exhaustive()
    }
}
