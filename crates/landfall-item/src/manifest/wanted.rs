//! What all manifests together ask for: expanded, merged, sorted.

use crate::lockfile::{Accepted, Endpoint};
use crate::{Exclude, ItemKind, kinds};

macro_rules! wanted {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// Everything that is wanted. Each list is sorted by name and holds a name once.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Wanted {
            /// What the manifests are called, where those that have a name share one.
            pub name: Option<String>,
            $(
                /// The items of this kind.
                pub $section: Vec<<$kind as ItemKind>::Wish>,
            )*
            /// What is left out of whatever the items ask for.
            pub exclude: Vec<Exclude>,
            /// Losses that are accepted.
            pub missing: Vec<Accepted>,
            /// Hosts that cannot be mirrored and must stay reachable.
            pub endpoints: Vec<Endpoint>,
        }
    };
}
kinds!(wanted);

macro_rules! names {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        impl Wanted {
            /// The names of all items.
            pub fn names(&self) -> Vec<String> {
                let mut names = Vec::new();
                $(
                    names.extend(self.$section.iter().map(|wish| <$kind>::wished(wish).to_string()));
                )*
                names
            }
        }
    };
}
kinds!(names);
