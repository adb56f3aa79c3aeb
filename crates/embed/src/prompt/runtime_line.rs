//! The line of the system prompt with runtime information.

/// Runtime information. Unknown parts are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeInfo {
    /// Id of the agent.
    pub agent: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Repository of the workspace.
    pub repo: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Processor architecture.
    pub arch: Option<String>,
    /// Node.js version, for hosts that run on it.
    pub node: Option<String>,
    /// Version of this program.
    pub pinch: Option<String>,
    /// Model, with its provider.
    pub model: Option<String>,
    /// Model that is used unless another one is chosen.
    pub default_model: Option<String>,
    /// The user's shell.
    pub shell: Option<String>,
    /// The channel that the message came through.
    pub channel: Option<String>,
    /// Capabilities of the channel.
    pub capabilities: Vec<String>,
}

/// Formats the line.
pub fn runtime_line(info: &RuntimeInfo, thinking: &str) -> String {
    let named = |name: &str, value: &Option<String>| {
        value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(|value| format!("{name}={value}"))
    };
    let os = match (&info.os, &info.arch) {
        (Some(os), Some(arch)) => Some(format!("os={os} ({arch})")),
        (Some(os), None) => Some(format!("os={os}")),
        (None, arch) => named("arch", arch),
    };
    let channel = named("channel", &info.channel);
    let capabilities = channel.is_some().then(|| match info.capabilities.as_slice() {
        [] => "capabilities=none".to_owned(),
        some => format!("capabilities={}", some.join(",")),
    });
    let parts = [
        named("agent", &info.agent),
        named("host", &info.host),
        named("repo", &info.repo),
        os,
        named("node", &info.node),
        named("pinch", &info.pinch),
        named("model", &info.model),
        named("default_model", &info.default_model),
        named("shell", &info.shell),
        channel,
        capabilities,
        Some(format!("thinking={thinking}")),
    ];
    format!("Runtime: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" | "))
}
