//! A report as one self-contained HTML page.
//!
//! The page can be opened from a file and printed, and works without scripts; its script only
//! searches the tables and zooms into the treemap. `page.html` and `treemap.html` are its
//! templates: askama escapes every value, and the Content-Security-Policy of the page forbids
//! loading anything.
//!
//! - `sections.rs`: the sections of the page, with their tables.
//! - `treemap.rs`: the content as rectangles in proportion to sizes, and which items share blobs.
//! - `render.rs`: the whole page, and the content that it is made from.

mod render;
mod sections;
mod treemap;

pub use self::render::{ItemContent, PackageRow, ReportPage, RunPhase, render};
