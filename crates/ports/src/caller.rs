//! The sender of a message to an agent, and the channel it came through.

use crate::session_key::SessionKey;

/// Describes who sent a message to an agent, and through which channel. Every field is optional: a host fills in what it knows.
///
/// The engine completes `agent` and `session_key` before a run starts; everything else comes from the host. Field names in parentheses are
/// those of OpenClaw's run parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// The agent addressed (`agentId`).
    pub agent: Option<String>,
    /// The routing key of the session (`sessionKey`).
    pub session_key: Option<SessionKey>,
    /// The channel, such as `telegram` (`messageChannel`, else `messageProvider`).
    pub channel: Option<String>,
    /// The channel account that received the message (`agentAccountId`).
    pub account: Option<String>,
    /// The group the message was sent in (`groupId`).
    pub group: Option<String>,
    /// The group's label, such as `#general` (`groupChannel`).
    pub group_label: Option<String>,
    /// The server, guild or team that the group belongs to (`groupSpace`).
    pub space: Option<String>,
    /// The thread within the channel (`currentThreadTs`, else `messageThreadId`).
    pub thread: Option<String>,
    /// The message that started the run (`currentMessageId`).
    pub message_id: Option<String>,
    /// The person who sent it.
    pub sender: Sender,
    /// Whether that person owns the agent. Unlocks tools that only owners may use (`senderIsOwner`).
    pub is_owner: bool,
    /// The channel's capabilities, such as `buttons` or `reactions`.
    pub capabilities: Vec<String>,
    /// The session that spawned this one, whose group policy it inherits (`spawnedBy`).
    pub spawned_by: Option<SessionKey>,
}

/// The person who sent a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sender {
    /// The person's id on the channel (`senderId`).
    pub id: Option<String>,
    /// The name shown to others (`senderName`).
    pub name: Option<String>,
    /// The user name (`senderUsername`).
    pub user_name: Option<String>,
    /// The phone number in E.164 form (`senderE164`).
    pub phone: Option<String>,
}

impl Caller {
    /// Creates an unknown caller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the channel.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Sets the channel account that received the message.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// Sets the group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets the group's label.
    #[must_use]
    pub fn group_label(mut self, label: impl Into<String>) -> Self {
        self.group_label = Some(label.into());
        self
    }

    /// Sets the server, guild or team.
    #[must_use]
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.space = Some(space.into());
        self
    }

    /// Sets the thread.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Sets the message that started the run.
    #[must_use]
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Sets the person who sent the message.
    #[must_use]
    pub fn sender(mut self, sender: Sender) -> Self {
        self.sender = sender;
        self
    }

    /// Marks the sender as the agent's owner.
    #[must_use]
    pub fn owner(mut self) -> Self {
        self.is_owner = true;
        self
    }

    /// Adds a capability of the channel.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Sets the session that spawned this one.
    #[must_use]
    pub fn spawned_by(mut self, session_key: impl Into<SessionKey>) -> Self {
        self.spawned_by = Some(session_key.into());
        self
    }
}

impl Sender {
    /// Creates a sender from the channel's id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::default() }
    }

    /// Sets the name shown to others.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the user name.
    #[must_use]
    pub fn user_name(mut self, user_name: impl Into<String>) -> Self {
        self.user_name = Some(user_name.into());
        self
    }

    /// Sets the phone number in E.164 form.
    #[must_use]
    pub fn phone(mut self, phone: impl Into<String>) -> Self {
        self.phone = Some(phone.into());
        self
    }
}
