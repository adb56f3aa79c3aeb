//! Shows the components of a process: it draws lines, and gets keys.

use serde_json::{Value, json};

use super::link::{Link, line};
use super::open_components::OpenComponents;
use super::points::{member, needed};
use crate::extension::ExtensionError;
use crate::extension::component::{ComponentAction, ComponentEvent, ComponentPlace, WidgetPlace};
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

/// Reads the place of a component, which is a dialog by default.
pub(super) fn place(params: &Value) -> Result<ComponentPlace, ExtensionError> {
    let kind: Option<String> = member(params, "place")?;
    Ok(match kind.as_deref() {
        None | Some("dialog") => ComponentPlace::Dialog,
        Some("overlay") => ComponentPlace::Overlay(member(params, "options")?.unwrap_or_default()),
        Some("editor") => ComponentPlace::Editor,
        Some("footer") => ComponentPlace::Footer,
        Some("header") => ComponentPlace::Header,
        Some("widget") => {
            let placement: Option<String> = member(params, "placement")?;
            let place = placement.as_deref().and_then(WidgetPlace::parse).unwrap_or(WidgetPlace::AboveEditor);
            ComponentPlace::Widget { key: needed(params, "key")?, place }
        }
        Some(other) => return Err(ExtensionError::new(format!("Unknown place of a component: {other}"))),
    })
}

/// Reads what a component asks for.
pub(super) fn action(method: &str, params: &Value) -> Result<ComponentAction, ExtensionError> {
    Ok(match method {
        "key" => ComponentAction::Key(needed(params, "data")?),
        "submit" => ComponentAction::Submit(needed(params, "text")?),
        "move" => ComponentAction::Move(member(params, "options")?.unwrap_or_default()),
        "hide" => ComponentAction::Hide(needed(params, "hidden")?),
        _ => ComponentAction::Focus(needed(params, "focused")?),
    })
}

/// Shows a component until the process or the user closes it. Returns `{closed}`: whether the process did not. Without a terminal that can
/// show it, it ends at once, as in pi.
pub(super) async fn show(
    link: &Link,
    ui: &Dialogs,
    id: String,
    place: ComponentPlace,
) -> Result<Value, ExtensionError> {
    let Some(mut component) = ui.component(place) else {
        return Ok(json!({"closed": true}));
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
        link.tell_screen(ui);
        let message = match event {
            None => return Ok(json!({"closed": true})),
            Some(ComponentEvent::Layout(layout)) => json!({"jsonrpc": "2.0", "method": "ui/layout", "params": {
                "component": id, "columns": layout.columns, "rows": layout.rows, "screen": layout.screen,
                "foreground": layout.foreground, "background": layout.background,
            }}),
            Some(ComponentEvent::Input { data, actions }) => json!({"jsonrpc": "2.0", "method": "ui/key", "params": {
                "component": id, "data": data, "actions": actions,
            }}),
            Some(ComponentEvent::Editor { text, lines }) => json!({"jsonrpc": "2.0", "method": "ui/editor", "params": {
                "component": id, "text": text, "lines": lines,
            }}),
            Some(ComponentEvent::Footer(facts)) => json!({"jsonrpc": "2.0", "method": "ui/footer", "params": {
                "component": id, "branch": facts.branch, "statuses": facts.statuses, "providers": facts.n_providers,
            }}),
        };
        link.send(line(&message)).await?;
    }
}
