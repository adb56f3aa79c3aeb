//! The choice of a user without a model: the providers to log in to, below the model servers that run on this machine.

use pinch_coding_agent::models::local_servers::LocalServer;

use super::{ChoiceDialog, DialogCx, DialogEvent, DialogNews, DialogView};
use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::widget::PickItem;

/// The dialog.
pub(crate) struct FirstLoginDialog {
    list: ChoiceDialog,
    providers: Vec<(PickItem, Vec<Effect>)>,
}

impl FirstLoginDialog {
    /// Creates the dialog for these providers and servers. News about servers change it.
    pub(crate) fn new(providers: Vec<(PickItem, Vec<Effect>)>, servers: &[LocalServer]) -> Self {
        let list = ChoiceDialog::new("Log in to a provider, or use a model on this machine", all(servers, &providers));
        Self { list, providers }
    }
}

/// Returns the items for servers, followed by those for providers.
fn all(servers: &[LocalServer], providers: &[(PickItem, Vec<Effect>)]) -> Vec<(PickItem, Vec<Effect>)> {
    let mut choices = Vec::new();
    for server in servers {
        let n_models = server.models.len();
        let noun = if n_models == 1 { "model" } else { "models" };
        let item = PickItem::new(format!("{} on this machine", server.title())).detail(format!("{n_models} {noun}"));
        choices.push((item, vec![Effect::UseLocalServer(server.base_url.clone())]));
    }
    choices.extend_from_slice(providers);
    choices
}

impl DialogView for FirstLoginDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        self.list.rows(cx)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        self.list.key(press, cx)
    }

    fn line(&mut self, line: &str, cx: DialogCx<'_>) -> Option<DialogEvent> {
        self.list.line(line, cx)
    }

    fn paste(&mut self, text: &str) {
        self.list.paste(text);
    }

    fn learn(&mut self, news: DialogNews) {
        if let DialogNews::LocalServers(servers) = news {
            self.list.set_choices(all(&servers, &self.providers));
        }
    }
}
