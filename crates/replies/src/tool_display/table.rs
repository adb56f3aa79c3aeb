//! Table of known tools: emoji, title, and the arguments that describe a call.

/// Actions of a tool: name, label (empty: the name), and the arguments that describe it.
pub type Actions = &'static [(&'static str, &'static str, &'static [&'static str])];

/// How one tool is displayed.
#[derive(Clone, Copy, Debug)]
pub struct Display {
    /// The tool's name.
    pub name: &'static str,
    /// Emoji before the title.
    pub emoji: &'static str,
    /// Title before the description.
    pub title: &'static str,
    /// Arguments that describe a call.
    pub keys: &'static [&'static str],
    /// Arguments by action.
    pub actions: Actions,
}

/// Returns the tool's row, if there is one.
pub fn display_of(name: &str) -> Option<&'static Display> {
    TABLE.iter().find(|display| display.name == name)
}

/// Arguments that best describe the calls of an unknown tool.
pub const FALLBACK: &[&str] = &[
    "command",
    "path",
    "url",
    "targetUrl",
    "targetId",
    "ref",
    "element",
    "node",
    "nodeId",
    "id",
    "requestId",
    "to",
    "channelId",
    "guildId",
    "userId",
    "name",
    "query",
    "pattern",
    "messageId",
];

const fn row(name: &'static str, emoji: &'static str, title: &'static str, keys: &'static [&'static str]) -> Display {
    Display { name, emoji, title, keys, actions: &[] }
}

/// All rows.
pub const TABLE: &[Display] = &[
    row("exec", "🛠️", "Exec", &["command"]),
    row("process", "🧰", "Process", &["sessionId"]),
    row("read", "📖", "Read", &["path"]),
    row("write", "✍️", "Write", &["path"]),
    row("edit", "📝", "Edit", &["path"]),
    row("apply_patch", "🩹", "Apply Patch", &[]),
    row("attach", "📎", "Attach", &["path", "url", "fileName"]),
    Display {
        name: "browser",
        emoji: "🌐",
        title: "Browser",
        keys: &[],
        actions: &[
            ("open", "", &["targetUrl"]),
            ("focus", "", &["targetId"]),
            ("close", "", &["targetId"]),
            ("pdf", "", &["targetId"]),
            ("snapshot", "", &["targetUrl", "targetId", "ref", "element", "format"]),
            ("screenshot", "", &["targetUrl", "targetId", "ref", "element"]),
            ("navigate", "", &["targetUrl", "targetId"]),
            ("console", "", &["level", "targetId"]),
            ("upload", "", &["paths", "ref", "inputRef", "element", "targetId"]),
            ("dialog", "", &["accept", "promptText", "targetId"]),
            ("act", "", &["request.kind", "request.ref", "request.selector", "request.text", "request.value"]),
            ("status", "", &[]),
            ("start", "", &[]),
            ("stop", "", &[]),
            ("tabs", "", &[]),
        ],
    },
    Display {
        name: "canvas",
        emoji: "🖼️",
        title: "Canvas",
        keys: &[],
        actions: &[
            ("present", "", &["target", "node", "nodeId"]),
            ("hide", "", &["node", "nodeId"]),
            ("navigate", "", &["url", "node", "nodeId"]),
            ("eval", "", &["javaScript", "node", "nodeId"]),
            ("snapshot", "", &["format", "node", "nodeId"]),
            ("a2ui_push", "A2UI push", &["jsonlPath", "node", "nodeId"]),
            ("a2ui_reset", "A2UI reset", &["node", "nodeId"]),
        ],
    },
    Display {
        name: "nodes",
        emoji: "📱",
        title: "Nodes",
        keys: &[],
        actions: &[
            ("describe", "", &["node", "nodeId"]),
            ("approve", "", &["requestId"]),
            ("reject", "", &["requestId"]),
            ("notify", "", &["node", "nodeId", "title", "body"]),
            ("camera_snap", "", &["node", "nodeId", "facing", "deviceId"]),
            ("camera_list", "", &["node", "nodeId"]),
            ("camera_clip", "", &["node", "nodeId", "facing", "duration", "durationMs"]),
            ("screen_record", "", &["node", "nodeId", "duration", "durationMs", "fps", "screenIndex"]),
        ],
    },
    Display {
        name: "cron",
        emoji: "⏰",
        title: "Cron",
        keys: &[],
        actions: &[
            ("add", "", &["job.name", "job.id", "job.schedule", "job.cron"]),
            ("update", "", &["id"]),
            ("remove", "", &["id"]),
            ("run", "", &["id"]),
            ("runs", "", &["id"]),
            ("wake", "", &["text", "mode"]),
        ],
    },
    Display {
        name: "gateway",
        emoji: "🔌",
        title: "Gateway",
        keys: &[],
        actions: &[("restart", "", &["reason", "delayMs"])],
    },
    Display {
        name: "message",
        emoji: "✉️",
        title: "Message",
        keys: &[],
        actions: &[
            ("send", "", &["provider", "to", "media", "replyTo", "threadId"]),
            ("poll", "", &["provider", "to", "pollQuestion"]),
            ("react", "", &["provider", "to", "messageId", "emoji", "remove"]),
            ("reactions", "", &["provider", "to", "messageId", "limit"]),
            ("read", "", &["provider", "to", "limit"]),
            ("edit", "", &["provider", "to", "messageId"]),
            ("delete", "", &["provider", "to", "messageId"]),
            ("pin", "", &["provider", "to", "messageId"]),
            ("unpin", "", &["provider", "to", "messageId"]),
            ("list-pins", "", &["provider", "to"]),
            ("permissions", "", &["provider", "channelId", "to"]),
            ("thread-create", "", &["provider", "channelId", "threadName"]),
            ("thread-list", "", &["provider", "guildId", "channelId"]),
            ("thread-reply", "", &["provider", "channelId", "messageId"]),
            ("search", "", &["provider", "guildId", "query"]),
            ("sticker", "", &["provider", "to", "stickerId"]),
            ("member-info", "member", &["provider", "guildId", "userId"]),
            ("role-info", "roles", &["provider", "guildId"]),
            ("emoji-list", "", &["provider", "guildId"]),
            ("event-list", "events", &["provider", "guildId"]),
            ("channel-list", "channels", &["provider", "guildId"]),
            ("emoji-upload", "", &["provider", "guildId", "emojiName"]),
            ("sticker-upload", "", &["provider", "guildId", "stickerName"]),
            ("role-add", "", &["provider", "guildId", "userId", "roleId"]),
            ("role-remove", "", &["provider", "guildId", "userId", "roleId"]),
            ("channel-info", "channel", &["provider", "channelId"]),
            ("voice-status", "voice", &["provider", "guildId", "userId"]),
            ("event-create", "", &["provider", "guildId", "eventName"]),
            ("timeout", "", &["provider", "guildId", "userId"]),
            ("kick", "", &["provider", "guildId", "userId"]),
            ("ban", "", &["provider", "guildId", "userId"]),
        ],
    },
    row("agents_list", "🧭", "Agents", &[]),
    row("sessions_list", "🗂️", "Sessions", &["kinds", "limit", "activeMinutes", "messageLimit"]),
    row("sessions_history", "🧾", "Session History", &["sessionKey", "limit", "includeTools"]),
    row("sessions_send", "📨", "Session Send", &["label", "sessionKey", "agentId", "timeoutSeconds"]),
    row(
        "sessions_spawn",
        "🧑‍🔧",
        "Sub-agent",
        &["label", "task", "agentId", "model", "thinking", "runTimeoutSeconds", "cleanup", "timeoutSeconds"],
    ),
    row("session_status", "📊", "Session Status", &["sessionKey", "model"]),
    row("memory_search", "🧠", "Memory Search", &["query"]),
    row("memory_get", "📓", "Memory Get", &["path", "from", "lines"]),
    row("web_search", "🔎", "Web Search", &["query", "count"]),
    row("web_fetch", "📄", "Web Fetch", &["url", "extractMode", "maxChars"]),
    Display {
        name: "whatsapp_login",
        emoji: "🟢",
        title: "WhatsApp Login",
        keys: &[],
        actions: &[("start", "", &[]), ("wait", "", &[])],
    },
];
