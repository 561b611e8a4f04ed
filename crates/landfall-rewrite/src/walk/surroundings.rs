//! Where a node stands in its document.

use crate::role::Role;
use crate::yaml::Entry;

/// Where a node stands, and what the shapes say about it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings<'n> {
    /// The key of the mapping entry whose value it is.
    pub(crate) key: Option<&'n str>,
    /// The key above that.
    pub(crate) above: Option<&'n str>,
    /// The role of a reference that is here as a whole.
    pub(crate) role: Role,
    /// Whether it is a container, if it is a mapping.
    pub(crate) container: bool,
    /// Whether the mappings here and below are Secrets, whatever their kind says.
    pub(crate) in_secrets: bool,
    /// Whether the values here and below are those of a Secret.
    pub(crate) secret: bool,
    /// Whether the values here and below are encoded, so that a shape must decode them.
    pub(crate) encoded: bool,
    /// Why nothing here and below may be changed, if so.
    pub(crate) keep: Option<&'static str>,
}

impl<'n> Surroundings<'n> {
    /// Those of what stands below, under `key`.
    pub(super) fn below(self, key: Option<&'n str>) -> Surroundings<'n> {
        Surroundings {
            key,
            above: self.key,
            role: Role::Value,
            container: false,
            ..self
        }
    }
}

/// The members of a mapping, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'s> {
    pub(crate) entries: &'s [Entry<'s>],
    /// The value under `kind`; empty where there is none.
    pub(crate) kind: &'s str,
    pub(crate) around: Surroundings<'s>,
}
