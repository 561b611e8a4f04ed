//! The recipe: everything about a compressed stream that its plain bytes do not determine.
//!
//! Its encoding is frozen; `docs/reference/recipes.md` specifies it byte by byte.

mod build;
mod member;
mod recipe;
mod wire;

pub(crate) use build::RecipeBuilder;
pub(crate) use member::{FlushList, FlushRun, MemberReader, RebuildMethod, StreamMember};
pub use recipe::{EncoderShare, Recipe};
