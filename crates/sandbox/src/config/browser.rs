//! `browser`: the container that a browser runs in.

use super::members::{SectionMembers, SectionReader};

/// The browser's container.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SandboxBrowser {
    /// Whether there is one.
    pub enabled: bool,
    /// Image of the container.
    pub image: String,
    /// Prefix of container names.
    pub container_prefix: String,
    /// Port of the Chrome DevTools Protocol inside the container.
    pub cdp_port: u16,
    /// Port of the VNC server inside the container.
    pub vnc_port: u16,
    /// Port of the noVNC page inside the container.
    pub no_vnc_port: u16,
    /// Whether the browser runs headless.
    pub headless: bool,
    /// Whether to serve its screen with noVNC.
    pub enable_no_vnc: bool,
    /// Whether sandboxed sessions may control the host's browser.
    pub allow_host_control: bool,
    /// Whether to start it on demand.
    pub auto_start: bool,
    /// Maximum start time in milliseconds.
    pub auto_start_timeout_ms: u64,
}

impl SandboxBrowser {
    pub(super) fn read(reader: &mut SectionReader, levels: [&SectionMembers<'_>; 2]) -> Self {
        let text = |reader: &mut SectionReader, key: &str, default: &str| {
            reader.text(levels, key).unwrap_or(default.to_owned())
        };
        let port = |reader: &mut SectionReader, key: &str, default: u16| {
            let Some(number) = reader.number(levels, key) else { return default };
            u16::try_from(number as u64).ok().filter(|port| *port > 0).unwrap_or(default)
        };
        let flag = |reader: &mut SectionReader, key: &str, default: bool| reader.flag(levels, key).unwrap_or(default);
        Self {
            enabled: flag(reader, "enabled", false),
            image: text(reader, "image", "openclaw-sandbox-browser:bookworm-slim"),
            container_prefix: text(reader, "containerPrefix", "openclaw-sbx-browser-"),
            cdp_port: port(reader, "cdpPort", 9222),
            vnc_port: port(reader, "vncPort", 5900),
            no_vnc_port: port(reader, "noVncPort", 6080),
            headless: flag(reader, "headless", false),
            enable_no_vnc: flag(reader, "enableNoVnc", true),
            allow_host_control: flag(reader, "allowHostControl", false),
            auto_start: flag(reader, "autoStart", true),
            auto_start_timeout_ms: reader.number(levels, "autoStartTimeoutMs").map_or(12_000, |ms| ms as u64),
        }
    }
}
