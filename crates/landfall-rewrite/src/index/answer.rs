//! What the index answers to a written reference.

use landfall_model::Destination;
use landfall_model::Digest;

/// What the index says about a written reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The lock has nothing like it.
    Unknown,
    /// It is right as it is; the item that it means, where that is certain.
    Settled(Option<String>),
    /// It concerns something locked, but must not be changed; why.
    Left(String),
    /// It means a locked item and is to be written differently.
    Known(Replacement),
}

/// What a reference means, and what replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The item's name, or its repository where the reference has no tag.
    pub item: String,
    /// The repository to write; `None` where it stays.
    pub to: Option<Destination>,
    /// The digest to write; `None` where what was written stays.
    pub digest: Option<Digest>,
}

impl Lookup {
    /// The answer for a reference that means `item`.
    pub fn of(item: String, to: Option<Destination>, digest: Option<Digest>) -> Lookup {
        match (&to, &digest) {
            (None, None) => Lookup::Settled(Some(item)),
            _ => Lookup::Known(Replacement { item, to, digest }),
        }
    }

    /// The answer for a reference that must not be changed, because of `why`.
    pub fn left(why: impl Into<String>) -> Lookup {
        Lookup::Left(why.into())
    }
}
