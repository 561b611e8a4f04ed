//! The table of kinds: a new kind is one row here.

use super::ItemKind;
use crate::report::Kind;

/// Hands the rows to the macro `$use`: `section: type`, the section being its key in manifest and lock, in the
/// order of the lock.
macro_rules! kinds {
    ($use:ident) => {
        $use! {
            images: $crate::item::Image,
            files: $crate::item::File,
        }
    };
}
pub(crate) use kinds;

macro_rules! words {
    ($($(#[$only:meta])* $section:ident: $kind:ty,)*) => {
        /// The words for the kinds, in the order of the lock.
        pub const KINDS: &[Kind] = &[$($(#[$only])* <$kind as ItemKind>::KIND,)*];
    };
}
kinds!(words);

macro_rules! questions {
    ($($(#[$only:meta])* $section:ident: $kind:ty,)*) => {
        /// Whether items of this kind are files that can be exported.
        pub fn has_files(kind: Kind) -> bool {
            $($(#[$only])* if kind == <$kind as ItemKind>::KIND { return <$kind as ItemKind>::HAS_FILES; })*
            false
        }

        /// The kind of the item that people mean by `name`.
        pub fn kind_named(name: &str) -> Kind {
            let mut found = KINDS[0];
            $($(#[$only])* if <$kind as ItemKind>::is_named(name) { found = <$kind as ItemKind>::KIND; })*
            found
        }
    };
}
kinds!(questions);
