//! Shows the components of a process: it draws lines, and gets keys.

use serde_json::{Value, json};

use super::link::{Link, line};
use super::open_components::OpenComponents;
use crate::extension::ExtensionError;
use crate::extension::component::ComponentEvent;
use crate::extension::ui::Dialogs;

/// Removes a component when its request ends or is dropped.
struct Registration<'a> {
    components: &'a OpenComponents,
    id: String,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.components.close(&self.id);
    }
}

/// Shows a component until the process or the user closes it. Returns `{closed}`: whether the user did.
pub(super) async fn show(link: &Link, ui: &Dialogs, id: String) -> Result<Value, ExtensionError> {
    let Some(mut component) = ui.component() else {
        return Err(ExtensionError::refused("There is no terminal that can show a component"));
    };
    let Some(mut ended) = link.components.open(&id, component.pen()) else {
        return Err(ExtensionError::refused("Too many components at once, or an id that is in use"));
    };
    let registration = Registration { components: &link.components, id };
    loop {
        let event = tokio::select! {
            biased;
            _ = &mut ended => return Ok(json!({"closed": false})),
            event = component.next() => event,
        };
        let id = &registration.id;
        let message = match event {
            None => return Ok(json!({"closed": true})),
            Some(ComponentEvent::Layout(layout)) => json!({"jsonrpc": "2.0", "method": "ui/layout", "params": {
                "component": id, "columns": layout.columns, "rows": layout.rows,
                "foreground": layout.foreground, "background": layout.background,
            }}),
            Some(ComponentEvent::Input { data, actions }) => json!({"jsonrpc": "2.0", "method": "ui/key", "params": {
                "component": id, "data": data, "actions": actions,
            }}),
        };
        link.send(line(&message)).await?;
    }
}
