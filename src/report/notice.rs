//! What upstream says about itself, for people to act on: it fails nothing.

use super::Report;
use serde::Serialize;
use serde_json::json;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NoticeKind {
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
pub(crate) struct Notice {
    /// What it is about.
    pub(crate) kind: NoticeKind,
    /// The item's name in the lock.
    pub(crate) name: String,
    /// What it is, for people.
    pub(crate) message: String,
}

impl Report {
    /// Adds notices to the member `notices`.
    pub(crate) fn notice(&mut self, mut notices: Vec<Notice>) {
        notices.sort();
        let member = self.extra.entry("notices").or_insert_with(|| json!([]));
        if let Some(list) = member.as_array_mut() {
            list.extend(notices.into_iter().map(|notice| json!(notice)));
        }
    }
}
