//! Tests of bundles with recipes.

mod damage;
mod packing;
mod rebuilding;
mod versions;
