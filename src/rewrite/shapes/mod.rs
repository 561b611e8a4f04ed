//! Shapes of references that are more than a word: one file each.

pub(super) mod encoded;
pub(super) mod prefix;
pub(super) mod seeming;
pub(super) mod split;
