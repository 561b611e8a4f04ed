//! What is in the way of a push.

use landfall_model::Digest;
use serde::Serialize;

/// Something that would stop a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What it is about.
    pub kind: ProblemKind,
    /// Where: a tag, repository or project of the registry.
    pub at: String,
    /// What it is, and what to do.
    pub message: String,
    /// The digest that a tag stands at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands: Option<Digest>,
    /// The digest that it should stand at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Digest>,
    /// The deliveries that it stops.
    #[serde(skip)]
    pub(super) stops: Vec<usize>,
}

/// What a [`Problem`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemKind {
    /// The registry cannot hold a repository of this name.
    Name,
    /// A Harbor project is missing.
    Project,
    /// A repository is missing at a registry that makes none by itself.
    Repository,
    /// This account may not push here.
    Rights,
    /// A project has no room for it.
    Quota,
    /// A tag stands at another digest.
    Tag,
    /// An index with missing children is refused, and the site says `index: exact`.
    Index,
    /// Blobs that a delta leaves out are not there.
    Content,
}

impl Problem {
    /// Whether nothing is sent because of it. A tag at another digest stops its own delivery,
    /// unless nothing less than all is wanted.
    pub fn stops_all(&self, all_or_nothing: bool) -> bool {
        self.kind != ProblemKind::Tag || all_or_nothing
    }

    /// How many deliveries it stops.
    pub fn stopped(&self) -> usize {
        self.stops.len()
    }

    pub(super) fn new(
        kind: ProblemKind,
        at: impl Into<String>,
        message: String,
        stops: Vec<usize>,
    ) -> Problem {
        Problem {
            kind,
            at: at.into(),
            message,
            stands: None,
            wanted: None,
            stops,
        }
    }
}
