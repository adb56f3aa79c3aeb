//! The line of the system prompt that says where the agent runs.

/// Where an agent runs. What is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeInfo {
    /// The agent.
    pub agent: Option<String>,
    /// The name of the machine.
    pub host: Option<String>,
    /// The repository that the workspace is in.
    pub repo: Option<String>,
    /// The system.
    pub os: Option<String>,
    /// The processor.
    pub arch: Option<String>,
    /// The version of Node.js, for hosts that are such programs.
    pub node: Option<String>,
    /// The version of this program.
    pub pinch: Option<String>,
    /// The model, with its provider.
    pub model: Option<String>,
    /// The model that is used unless another one is chosen.
    pub default_model: Option<String>,
    /// The user's shell.
    pub shell: Option<String>,
    /// The channel that the message came through.
    pub channel: Option<String>,
    /// What the channel can do.
    pub capabilities: Vec<String>,
}

/// The line.
pub fn runtime_line(info: &RuntimeInfo, thinking: &str) -> String {
    let said = |name: &str, value: &Option<String>| {
        value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(|value| format!("{name}={value}"))
    };
    let os = match (&info.os, &info.arch) {
        (Some(os), Some(arch)) => Some(format!("os={os} ({arch})")),
        (Some(os), None) => Some(format!("os={os}")),
        (None, arch) => said("arch", arch),
    };
    let channel = said("channel", &info.channel);
    let capabilities = channel.is_some().then(|| match info.capabilities.as_slice() {
        [] => "capabilities=none".to_owned(),
        some => format!("capabilities={}", some.join(",")),
    });
    let parts = [
        said("agent", &info.agent),
        said("host", &info.host),
        said("repo", &info.repo),
        os,
        said("node", &info.node),
        said("pinch", &info.pinch),
        said("model", &info.model),
        said("default_model", &info.default_model),
        said("shell", &info.shell),
        channel,
        capabilities,
        Some(format!("thinking={thinking}")),
    ];
    format!("Runtime: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" | "))
}
