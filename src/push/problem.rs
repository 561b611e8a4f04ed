//! Problems that the preflight of a push finds.

use landfall_model::Digest;
use serde::Serialize;

/// A problem that stops deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The subject of the problem.
    pub kind: ProblemKind,
    /// The tag, repository or project at the registry, or the registry itself.
    pub at: String,
    /// The message, with the fix.
    pub message: String,
    /// The digest that a tag points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands: Option<Digest>,
    /// The digest in the lock, to which the tag should point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Digest>,
    /// The deliveries that the problem stops.
    #[serde(skip)]
    pub(super) stops: Vec<usize>,
}

/// The subject of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemKind {
    /// The registry cannot hold a repository of this name.
    Name,
    /// A Harbor project is missing.
    Project,
    /// A repository is missing at a registry that creates none by itself.
    Repository,
    /// The account may not push to a repository.
    Rights,
    /// The quota of a project is too small for the deliveries.
    Quota,
    /// A tag points to another digest.
    Tag,
    /// An index with missing children is refused, and the site says `index: exact`.
    Index,
    /// The registry lacks blobs that a delta omits.
    Content,
}

impl Problem {
    /// Whether the whole push is aborted: the site refuses other indexes (`index: exact`), or the
    /// bundle lacks blobs. Other problems stop only the deliveries that they affect, unless
    /// `all_or_nothing` is set.
    pub fn stops_all(&self, all_or_nothing: bool) -> bool {
        all_or_nothing || matches!(self.kind, ProblemKind::Index | ProblemKind::Content)
    }

    /// The number of deliveries that the problem stops.
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
