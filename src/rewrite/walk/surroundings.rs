//! Where a node stands in its document.

use crate::rewrite::role::Role;
use crate::rewrite::yaml::Entry;

/// Where a node stands, and what the shapes say about it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::rewrite) struct Surroundings<'n> {
    /// The key of the mapping entry whose value it is.
    pub(in crate::rewrite) key: Option<&'n str>,
    /// The key above that.
    pub(in crate::rewrite) above: Option<&'n str>,
    /// The role of a reference that is here as a whole.
    pub(in crate::rewrite) role: Role,
    /// Whether it is a container, if it is a mapping.
    pub(in crate::rewrite) container: bool,
    /// Whether the mappings here and below are Secrets, whatever their kind says.
    pub(in crate::rewrite) in_secrets: bool,
    /// Whether the values here and below are those of a Secret.
    pub(in crate::rewrite) secret: bool,
    /// Whether the values here and below are encoded, so that a shape must decode them.
    pub(in crate::rewrite) encoded: bool,
    /// Why nothing here and below may be changed, if so.
    pub(in crate::rewrite) keep: Option<&'static str>,
}

impl<'n> Surroundings<'n> {
    /// Those of what stands below, under `key`.
    pub(super) fn below(self, key: Option<&'n str>) -> Surroundings<'n> {
        Surroundings { key, above: self.key, role: Role::Value, container: false, ..self }
    }
}

/// The members of a mapping, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(in crate::rewrite) struct Members<'s> {
    pub(in crate::rewrite) entries: &'s [Entry<'s>],
    /// The value under `kind`; empty where there is none.
    pub(in crate::rewrite) kind: &'s str,
    pub(in crate::rewrite) around: Surroundings<'s>,
}
