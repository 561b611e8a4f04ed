//! A report as one self-contained HTML page. It opens from a file, prints, and works without
//! scripts; a script only zooms into the picture. Whatever comes from elsewhere is escaped, and the
//! page may load nothing.
//!
//! - `data.rs`: what a page is made of.
//! - `treemap.rs`: rectangles in proportion to sizes; `picture.rs` draws content with them.
//! - `sections.rs`: the tables; `render.rs`: the whole page.

mod data;
mod picture;
mod render;
mod sections;
mod treemap;

pub use data::{ItemContent, PackageRow, ReportPage, RunPhase};
pub use render::render;
