//! A report as one self-contained HTML page.
//!
//! The page can be opened from a file and printed, and works without scripts; its script only
//! searches the tables and zooms into the treemap. `page.html` and `treemap.html` are its
//! templates: askama escapes every value, and the Content-Security-Policy of the page forbids
//! loading anything.
//!
//! - `content.rs`: the content of the page.
//! - `blob_usage.rs`: which items share which blobs.
//! - `table.rs`: a table and its cells; `section.rs`: a section; `sections.rs` and
//!   `report_lists.rs` make all sections.
//! - `squarify.rs`: rectangles in proportion to sizes; `treemap.rs` lays out the content with them.
//! - `render.rs`: the whole page.

mod render;
mod sections;
mod treemap;

pub use self::render::{ItemContent, PackageRow, ReportPage, RunPhase, render};
