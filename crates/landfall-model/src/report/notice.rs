//! What upstream says about itself, for people to act on: it fails nothing.

use super::RunReport;
use crate::Digest;
use serde::Serialize;
use serde_json::json;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// Upstream does not have it any more.
    Gone,
    /// Its tag stands at another digest now.
    Moved,
    /// There is a newer version.
    Newer,
    /// It was made long ago.
    Old,
}

/// One thing to know about an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// The item's name in the lock.
    pub name: String,
    /// What it is, for people.
    pub message: String,
    /// Of what moved: what is locked, or what the manifest demands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// Of what moved: what upstream has now, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// Whether it is taken, as the manifest allows.
    pub taken: bool,
}

impl Notice {
    /// A notice without digests.
    pub fn new(kind: NoticeKind, name: impl Into<String>, message: impl Into<String>) -> Notice {
        Notice {
            kind,
            name: name.into(),
            message: message.into(),
            from: None,
            to: None,
            taken: false,
        }
    }

    /// Upstream does not have `name` any more.
    pub fn gone(name: impl Into<String>) -> Notice {
        Notice::new(NoticeKind::Gone, name, "upstream does not have it any more")
    }

    /// `name` stands at something else. Of a file upstream tells the size alone, and there is no
    /// `to`.
    pub fn moved(name: impl Into<String>, from: Option<Digest>, to: Option<Digest>) -> Notice {
        let short = |digest: &Option<Digest>| digest.as_ref().map(|digest| digest.short(12));
        let message = match (short(&from), short(&to)) {
            (Some(from), Some(to)) => format!("it stood at {from} and stands at {to} now"),
            _ => "upstream has something else there now".to_owned(),
        };
        Notice {
            from,
            to,
            ..Notice::new(NoticeKind::Moved, name, message)
        }
    }
}

impl RunReport {
    /// Adds notices to the member `notices`.
    pub fn notice(&mut self, mut notices: Vec<Notice>) {
        notices.sort();
        let member = self.extra.entry("notices").or_insert_with(|| json!([]));
        if let Some(list) = member.as_array_mut() {
            list.extend(notices.into_iter().map(|notice| json!(notice)));
        }
    }
}
