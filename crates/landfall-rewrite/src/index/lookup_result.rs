//! The results of look-ups in the index.

use landfall_model::Destination;
use landfall_model::Digest;

/// The result of looking up a written reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceLookup {
    /// The lock does not contain the reference.
    Unknown,
    /// The reference already names the destination. The value is the item that the reference refers
    /// to, if that is certain.
    Settled(Option<String>),
    /// The reference concerns a locked item, but must not be changed, for this reason.
    Left(String),
    /// The reference refers to a locked item and must be changed.
    Known(ReferenceReplacement),
}

/// The item that a reference refers to, and the new parts of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceReplacement {
    /// The name of the item, or its repository if the reference has no tag.
    pub item: String,
    /// The new repository; `None` if it is kept.
    pub to: Option<Destination>,
    /// The new digest; `None` if no digest is added or changed.
    pub digest: Option<Digest>,
}

impl ReferenceLookup {
    /// The result for a reference to `item`.
    pub fn resolved(
        item: String,
        to: Option<Destination>,
        digest: Option<Digest>,
    ) -> ReferenceLookup {
        if to.is_none() && digest.is_none() {
            return ReferenceLookup::Settled(Some(item));
        }
        ReferenceLookup::Known(ReferenceReplacement { item, to, digest })
    }

    /// The result for a reference that must not be changed, for the reason `why`.
    pub fn left(why: impl Into<String>) -> ReferenceLookup {
        ReferenceLookup::Left(why.into())
    }
}
