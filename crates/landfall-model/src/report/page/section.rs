//! A section of the page.

use super::table::Table;
use super::treemap::Treemap;

/// A section of the page.
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) body: SectionBody,
}

/// The content of a section below its heading.
pub(super) enum SectionBody {
    Table(Table),
    Treemap(Treemap),
}

impl Section {
    pub(super) fn table(heading: impl Into<String>, table: Table) -> Section {
        Section {
            heading: heading.into(),
            body: SectionBody::Table(table),
        }
    }

    /// The number of rows of a table; 0 for a treemap.
    pub(super) fn rows(&self) -> usize {
        match &self.body {
            SectionBody::Table(table) => table.rows.len(),
            SectionBody::Treemap(_) => 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.body {
            SectionBody::Table(table) => table.rows.is_empty(),
            SectionBody::Treemap(treemap) => treemap.groups.is_empty(),
        }
    }
}
