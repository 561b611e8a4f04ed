//! The result of resolving a request, and how the verification of signatures changes it.

use super::item_kind::{ItemKind, PinPolicy};
use super::resolver::ResolveError;
use landfall_model::Digest;

/// The result of resolving a request.
pub enum ResolveOutcome<T> {
    /// The pin is unchanged, whether upstream was queried or not.
    Kept(T),
    /// The item was resolved, for the first time or again.
    New(T),
    /// Upstream no longer has the item; the old pin stays.
    Gone(T),
    /// The item could not be resolved; the old pin, if there is one, stays.
    Failed(Option<T>, ResolveError),
}

impl<T> ResolveOutcome<T> {
    /// Returns the item whose signatures must be verified, and whether the item is kept. If nothing
    /// was resolved, returns the outcome as the error. That outcome contains an old item only if
    /// `is_accepted` is true for it, that is, if its recorded signatures meet the policy.
    pub(crate) fn item_to_verify(
        self,
        is_accepted: impl Fn(&T) -> bool,
    ) -> Result<(T, bool), ResolveOutcome<T>> {
        match self {
            ResolveOutcome::Kept(item) => Ok((item, true)),
            ResolveOutcome::New(item) => Ok((item, false)),
            ResolveOutcome::Gone(old) if !is_accepted(&old) => {
                Err(ResolveOutcome::Failed(None, ResolveError::gone()))
            }
            ResolveOutcome::Gone(old) => Err(ResolveOutcome::Gone(old)),
            ResolveOutcome::Failed(old, cause) => {
                Err(ResolveOutcome::Failed(old.filter(is_accepted), cause))
            }
        }
    }
}

impl<T: Clone + PartialEq> ResolveOutcome<T> {
    /// The outcome for an item that was resolved again. `old` is the item in the old lock, which
    /// stays after an error. An item next to the manifest is a part of it: changed content is a
    /// changed entry.
    pub(crate) fn of(found: Result<T, ResolveError>, old: Option<&T>) -> ResolveOutcome<T> {
        match found {
            Ok(item) if old == Some(&item) => ResolveOutcome::Kept(item),
            Ok(item) => ResolveOutcome::New(item),
            Err(cause) => ResolveOutcome::Failed(old.cloned(), cause),
        }
    }

    /// The outcome after an error. `old` is the item in the old lock, if it still meets the
    /// request.
    pub(crate) fn lost(old: Option<&T>, pins: PinPolicy, cause: ResolveError) -> ResolveOutcome<T> {
        match old {
            Some(old) if cause.is_gone && pins != PinPolicy::Recall => {
                ResolveOutcome::Gone(old.clone())
            }
            old => ResolveOutcome::Failed(old.cloned(), cause),
        }
    }
}

impl<T: ItemKind> ResolveOutcome<T> {
    /// The outcome for an item with this digest whose signatures could not be verified. `old` is
    /// the item in the old lock, and `is_accepted` whether its recorded signatures meet the policy.
    pub(crate) fn unverified(
        old: Option<&T>,
        is_accepted: impl Fn(&T) -> bool,
        digest: &Digest,
        cause: ResolveError,
    ) -> ResolveOutcome<T> {
        // An accepted old item with another digest is kept. With the same digest, it is kept only
        // after a temporary failure: a permanent one means that its signature is gone.
        let kept = old.filter(|old| {
            is_accepted(old) && (old.as_item().digest() != digest || cause.is_temporary)
        });
        ResolveOutcome::Failed(kept.cloned(), cause)
    }
}
