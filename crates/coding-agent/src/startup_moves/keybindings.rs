//! Names of keys in keybindings.json: the flat ones of older versions and the current ones.

use serde_json::{Map, Value};

/// Flat names and their ids, in the order in which ids are written.
const OLD_NAMES: [(&str, &str); 59] = [
    ("cursorUp", "tui.editor.cursorUp"),
    ("cursorDown", "tui.editor.cursorDown"),
    ("cursorLeft", "tui.editor.cursorLeft"),
    ("cursorRight", "tui.editor.cursorRight"),
    ("cursorWordLeft", "tui.editor.cursorWordLeft"),
    ("cursorWordRight", "tui.editor.cursorWordRight"),
    ("cursorLineStart", "tui.editor.cursorLineStart"),
    ("cursorLineEnd", "tui.editor.cursorLineEnd"),
    ("jumpForward", "tui.editor.jumpForward"),
    ("jumpBackward", "tui.editor.jumpBackward"),
    ("pageUp", "tui.editor.pageUp"),
    ("pageDown", "tui.editor.pageDown"),
    ("deleteCharBackward", "tui.editor.deleteCharBackward"),
    ("deleteCharForward", "tui.editor.deleteCharForward"),
    ("deleteWordBackward", "tui.editor.deleteWordBackward"),
    ("deleteWordForward", "tui.editor.deleteWordForward"),
    ("deleteToLineStart", "tui.editor.deleteToLineStart"),
    ("deleteToLineEnd", "tui.editor.deleteToLineEnd"),
    ("yank", "tui.editor.yank"),
    ("yankPop", "tui.editor.yankPop"),
    ("undo", "tui.editor.undo"),
    ("newLine", "tui.input.newLine"),
    ("submit", "tui.input.submit"),
    ("tab", "tui.input.tab"),
    ("copy", "tui.input.copy"),
    ("selectUp", "tui.select.up"),
    ("selectDown", "tui.select.down"),
    ("selectPageUp", "tui.select.pageUp"),
    ("selectPageDown", "tui.select.pageDown"),
    ("selectConfirm", "tui.select.confirm"),
    ("selectCancel", "tui.select.cancel"),
    ("interrupt", "app.interrupt"),
    ("clear", "app.clear"),
    ("exit", "app.exit"),
    ("suspend", "app.suspend"),
    ("cycleThinkingLevel", "app.thinking.cycle"),
    ("cycleModelForward", "app.model.cycleForward"),
    ("cycleModelBackward", "app.model.cycleBackward"),
    ("selectModel", "app.model.select"),
    ("expandTools", "app.tools.expand"),
    ("toggleThinking", "app.thinking.toggle"),
    ("toggleSessionNamedFilter", "app.session.toggleNamedFilter"),
    ("externalEditor", "app.editor.external"),
    ("followUp", "app.message.followUp"),
    ("dequeue", "app.message.dequeue"),
    ("pasteImage", "app.clipboard.pasteImage"),
    ("newSession", "app.session.new"),
    ("tree", "app.session.tree"),
    ("fork", "app.session.fork"),
    ("resume", "app.session.resume"),
    ("treeFoldOrUp", "app.tree.foldOrUp"),
    ("treeUnfoldOrDown", "app.tree.unfoldOrDown"),
    ("treeEditLabel", "app.tree.editLabel"),
    ("treeToggleLabelTimestamp", "app.tree.toggleLabelTimestamp"),
    ("toggleSessionPath", "app.session.togglePath"),
    ("toggleSessionSort", "app.session.toggleSort"),
    ("renameSession", "app.session.rename"),
    ("deleteSession", "app.session.delete"),
    ("deleteSessionNoninvasive", "app.session.deleteNoninvasive"),
];

/// Ids without a flat name; they come after the others.
const LATER_IDS: [&str; 13] = [
    "app.models.save",
    "app.models.enableAll",
    "app.models.clearAll",
    "app.models.toggleProvider",
    "app.models.reorderUp",
    "app.models.reorderDown",
    "app.tree.filter.default",
    "app.tree.filter.noTools",
    "app.tree.filter.userOnly",
    "app.tree.filter.labeledOnly",
    "app.tree.filter.all",
    "app.tree.filter.cycleForward",
    "app.tree.filter.cycleBackward",
];

/// Migrates keys to their current names in the order of the table; unknown ids come last, by name. If a key has both names, the current one
/// wins. Also returns whether there was an old name.
pub fn migrate(config: &Map<String, Value>) -> (Map<String, Value>, bool) {
    let new_name = |name: &str| OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, new)| *new);
    let mut has_changed = false;
    let mut renamed = Map::new();
    for (name, keys) in config {
        match new_name(name) {
            None => drop(renamed.insert(name.clone(), keys.clone())),
            Some(new) => {
                has_changed = true;
                if !config.contains_key(new) {
                    renamed.insert(new.to_owned(), keys.clone());
                }
            }
        }
    }
    let known = OLD_NAMES.iter().map(|(_, new)| *new).chain(LATER_IDS);
    let mut ordered: Map<String, Value> =
        known.filter_map(|id| Some((id.to_owned(), renamed.shift_remove(id)?))).collect();
    let mut others: Vec<(String, Value)> = renamed.into_iter().collect();
    others.sort_by(|(a, _), (b, _)| a.cmp(b));
    ordered.extend(others);
    (ordered, has_changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn old_names_become_ids_in_table_order() {
        let config = json!({
            "zeta": "x", "submit": "ctrl+s", "alpha": [], "tui.input.submit": "enter", "cursorUp": ["up"], "app.models.save": "s",
        });
        let (migrated, has_changed) = migrate(config.as_object().unwrap());
        let wanted = json!({
            "tui.editor.cursorUp": ["up"], "tui.input.submit": "enter", "app.models.save": "s", "alpha": [], "zeta": "x",
        });
        assert_eq!(Value::Object(migrated.clone()).to_string(), wanted.to_string());
        assert!(has_changed);
        assert_eq!(migrate(&migrated), (migrated, false));
    }
}
