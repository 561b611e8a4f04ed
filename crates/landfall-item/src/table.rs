//! The table of kinds: a new kind is one row here.

use super::entry_reader::Checked;
use super::exclude::Exclude;
use super::kind::ItemKind;
use landfall_model::document::SourceSpan;
use landfall_model::report::EntryKind;

/// Hands the rows to the macro `$use`, in the order of the lock. A row is the section of manifest
/// and lock, with its words in the manifest's schema, and the type of its items.
#[cfg(not(any(test, feature = "testkit")))]
#[macro_export]
macro_rules! kinds {
    ($use:ident) => {
        $crate::kinds_and! { $use {} }
    };
}

/// As above, with a kind that only tests have.
#[cfg(any(test, feature = "testkit"))]
#[macro_export]
macro_rules! kinds {
    ($use:ident) => {
        $crate::kinds_and! {
            $use {
                /// Notes, which tests write.
                notes: $crate::Note,
            }
        }
    };
}

/// The rows, and more of them.
#[doc(hidden)]
#[macro_export]
macro_rules! kinds_and {
    ($use:ident { $($more:tt)* }) => {
        $use! {
            /// Images: a reference with a tag or digest, or a mapping.
            images: $crate::Image,
            /// Plain files: binaries, archives, scripts.
            files: $crate::File,
            /// Helm charts: `oci://registry/path/name:version`, or a mapping.
            charts: $crate::Chart,
            /// OS packages with all that they need: `apt: {…}`.
            packages: $crate::PackageSet,
            $($more)*
        }
    };
}

macro_rules! questions {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// Wishes of every kind.
        #[derive(Debug, Clone, Default)]
        pub struct Wishes {
            $(
                /// Those of this kind.
                pub $section: Vec<<$kind as ItemKind>::Wish>,
            )*
        }

        /// The words for the kinds, in the order of the lock.
        pub const KINDS: &[EntryKind] = &[$(<$kind as ItemKind>::KIND,)*];

        /// Whether items of this kind are files that can be exported.
        pub fn has_files(kind: EntryKind) -> bool {
            $(
                if kind == <$kind as ItemKind>::KIND {
                    return <$kind as ItemKind>::HAS_FILES;
                }
            )*
            false
        }

        /// The kind of the item that people mean by `name`.
        pub fn kind_named(name: &str) -> EntryKind {
            let mut found = KINDS[0];
            $(
                if <$kind as ItemKind>::is_named(name) {
                    found = <$kind as ItemKind>::KIND;
                }
            )*
            found
        }

        /// `text` as the lock names the item that people mean by it.
        ///
        /// # Errors
        /// When it names none.
        pub fn locked_name(text: &str, span: &SourceSpan) -> Checked<(EntryKind, String)> {
            let kind = kind_named(text);
            $(
                if kind == <$kind as ItemKind>::KIND {
                    return Ok((kind, <$kind as ItemKind>::name_of(text, span)?));
                }
            )*
            Ok((kind, text.to_owned()))
        }

        /// `text` as what to leave out.
        ///
        /// # Errors
        /// When it names nothing.
        pub fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
            let kind = kind_named(text);
            $(
                if kind == <$kind as ItemKind>::KIND {
                    return <$kind as ItemKind>::exclusion(text, span);
                }
            )*
            Ok(Exclude::Url(text.to_owned()))
        }
    };
}
kinds!(questions);
