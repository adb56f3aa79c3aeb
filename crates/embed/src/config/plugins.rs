//! `plugins`: programs whose hooks are called around runs.

use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;

use super::node::Node;
use super::paths::expand_home;

/// `plugins`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginsConfig {
    /// Whether any are loaded (`enabled`); default: yes.
    pub enabled: Option<bool>,
    /// Files and directories of plugins (`load.paths`).
    pub paths: Vec<String>,
}

impl PluginsConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        Self {
            enabled: node.get("enabled").flag(problems),
            paths: node.get("load").get("paths").texts(problems).unwrap_or_default(),
        }
    }

    /// Returns the paths of the plugins to load. `base` is the directory of relative ones, `home` that of those with `~`.
    pub fn to_load(&self, base: &Path, home: Option<&Path>) -> Vec<PathBuf> {
        let paths = self.paths.iter().filter(|_| self.enabled != Some(false));
        paths.map(|path| base.join(expand_home(Path::new(path), home))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::config::Config;

    use super::*;

    fn to_load(plugins: Value) -> Vec<PathBuf> {
        let Value::Object(document) = json!({"plugins": plugins}) else { unreachable!() };
        let (config, problems) = Config::from_document(document, Path::new("/s/pinch.json"));
        assert!(problems.is_empty() && config.ignored.is_empty(), "{problems:?} {:?}", config.ignored);
        config.plugins.to_load(Path::new("/s"), Some(Path::new("/home/me")))
    }

    #[test]
    fn paths_are_relative_to_a_base_or_to_the_home_directory() {
        let load = json!({"paths": ["a.js", "~/b", "/c"]});
        assert_eq!(to_load(json!({"load": load})), ["/s/a.js", "/home/me/b", "/c"].map(PathBuf::from));
        assert!(to_load(json!({"enabled": false, "load": load})).is_empty());
    }
}
