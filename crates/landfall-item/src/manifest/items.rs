//! The items of one manifest, each with its place, before all manifests are merged.

use crate::lockfile::{Accepted, Endpoint};
use crate::{Exclude, ItemKind, kinds};
use landfall_model::document::SourceSpan;
use std::collections::BTreeSet;
use std::path::PathBuf;

macro_rules! items {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// What one manifest asks for.
        #[derive(Debug, Default)]
        pub(super) struct Items {
            /// What the manifests are called.
            pub(super) names: BTreeSet<String>,
            $(
                pub(super) $section: Vec<Located<<$kind as ItemKind>::Wish>>,
            )*
            pub(super) missing: Vec<Located<Accepted>>,
            pub(super) endpoints: Vec<Located<Endpoint>>,
            pub(super) exclude: Vec<Located<Exclude>>,
            /// The lists that have a source.
            pub(super) list_sources: Vec<ListSource>,
        }

        impl Items {
            /// Whether nothing is asked for, excluded or accepted as lost.
            pub(super) fn is_empty(&self) -> bool {
                let all = [self.missing.is_empty(), self.endpoints.is_empty(), self.exclude.is_empty()];
                $(if !self.$section.is_empty() { return false; })*
                !all.contains(&false)
            }

            /// Adds all that `other` asks for.
            pub(super) fn append(&mut self, mut other: Items) {
                self.names.append(&mut other.names);
                $(self.$section.append(&mut other.$section);)*
                self.missing.append(&mut other.missing);
                self.endpoints.append(&mut other.endpoints);
                self.exclude.append(&mut other.exclude);
            }
        }
    };
}
kinds!(items);

/// A list of another tool, and the URL that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSource {
    /// The list.
    pub path: PathBuf,
    /// Where it comes from.
    pub url: String,
}

/// A value with its place.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: SourceSpan,
    /// Whether it comes from another tool's list, which may say a thing twice.
    pub(super) listed: bool,
}
