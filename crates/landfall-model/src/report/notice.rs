//! Notices about upstream, old images and wrong clocks, for people to act on. Notices do not change
//! the exit code, except those of `landfall lock --check` and `landfall update --check`.

use super::RunReport;
use crate::Digest;
use serde::Serialize;
use serde_json::json;

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoticeKind {
    /// Upstream no longer has the item.
    Gone,
    /// The tag points to another digest now, or the file has other content.
    Moved,
    /// Upstream has a newer version of the item.
    Newer,
    /// The image was created longer ago than `--older-than` allows.
    Old,
    /// The machine's clock or a recorded time is wrong.
    Clock,
}

/// A notice about one item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Notice {
    /// The kind of the change or problem.
    pub kind: NoticeKind,
    /// The name of the item in the lock.
    pub name: String,
    /// What happened, in a sentence for people.
    pub message: String,
    /// The locked digest, or the digest that the manifest demands, if the content changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The digest that upstream has now, if the content changed and upstream reports a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// Whether the change was accepted, as the manifest allows.
    pub taken: bool,
    /// The time from which the change can be accepted, if it waits for its minimum age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Notice {
    /// Creates a notice without digests.
    pub fn new(kind: NoticeKind, name: impl Into<String>, message: impl Into<String>) -> Notice {
        Notice {
            kind,
            name: name.into(),
            message: message.into(),
            from: None,
            to: None,
            taken: false,
            until: None,
        }
    }

    /// Creates the notice that upstream no longer has `name`.
    pub fn gone(name: impl Into<String>) -> Notice {
        Notice::new(NoticeKind::Gone, name, "upstream no longer has it")
    }

    /// Creates the notice that `name` has other content. `to` is `None` if the new digest is not
    /// known, as when upstream reports only the size of a file.
    pub fn moved(name: impl Into<String>, from: Option<Digest>, to: Option<Digest>) -> Notice {
        let message = match (&from, &to) {
            (Some(from), Some(to)) => {
                let from = from.short(12);
                let to = to.short(12);
                format!("its digest changed from {from} to {to}")
            }
            _ => "upstream has other content now".to_owned(),
        };
        Notice {
            from,
            to,
            ..Notice::new(NoticeKind::Moved, name, message)
        }
    }
}

impl RunReport {
    /// Adds `notices`, sorted, to the member `notices` of the JSON document.
    pub fn add_notices(&mut self, mut notices: Vec<Notice>) {
        notices.sort();
        let member = self.extra.entry("notices").or_insert_with(|| json!([]));
        if let Some(list) = member.as_array_mut() {
            list.extend(notices.into_iter().map(|notice| json!(notice)));
        }
    }
}
