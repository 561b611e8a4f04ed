//! Binary patches between plain streams, file by file if the streams are tar archives. A patch
//! describes a new stream by parts of one or more base streams. If a part of the new stream
//! resembles a part of a base, the patch contains only the bytes that differ; if it is new, the
//! patch contains all its bytes. The patch is small for a layer whose files are mostly equal to
//! those of an older layer, and for programs whose code moved.
//!
//! 1. [`PlainSource`]: a stream that can be read at any offset;
//! 2. [`Listing`]: the files of a stream, and how similar two listings are;
//! 3. `matching`: similar parts of two files;
//! 4. [`create`]: writes a patch, as four [sections](PatchSections);
//! 5. [`PatchReader`]: reads the new stream from a patch and its bases.
//!
//! The encoding of a patch is part of the bundle format (`docs/reference/recipes.md`). The crate
//! imports no other crate of the workspace and uses zstd for compression. It needs bounded memory:
//! 230 MiB while a patch is created, and 40 MiB while one is applied. The listing of a stream of
//! 65,536 files or more takes 6 MB.
//!
//! Begin with `create.rs`.

mod apply;
mod correspondence;
mod create;
mod error;
mod listing;
mod matching;
mod section_encoder;
mod sections;
mod source;
mod varint;

pub use apply::PatchReader;
pub use create::{PatchBase, PatchStatistics, create};
pub use error::PatchError;
pub use listing::Listing;
pub use sections::{PatchSections, SECTIONS};
pub use source::PlainSource;
