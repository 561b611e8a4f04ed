//! A table of the page. Columns without values are left out, to leave space for names.

use crate::human_size;
use crate::report::ItemStatus;

/// A table, as the template shows it.
pub(super) struct Table {
    pub(super) columns: Vec<TableColumn>,
    pub(super) rows: Vec<Vec<TableCell>>,
}

/// The head of a column.
#[derive(Clone, Copy)]
pub(super) struct TableColumn {
    pub(super) title: &'static str,
    pub(super) is_number: bool,
}

/// A column of names or text.
pub(super) const fn text_column(title: &'static str) -> TableColumn {
    TableColumn {
        title,
        is_number: false,
    }
}

/// A column of numbers or sizes, aligned right.
pub(super) const fn number_column(title: &'static str) -> TableColumn {
    TableColumn {
        title,
        is_number: true,
    }
}

/// A cell with its class in `style.css`.
pub(super) struct TableCell {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// A text of at least this many characters gives its column a minimum width.
const LONG_TEXT: usize = 40;

impl TableCell {
    pub(super) fn text(text: impl Into<String>) -> TableCell {
        let text = text.into();
        let is_long = text.chars().count() >= LONG_TEXT;
        let class = if is_long { "long" } else { "" };
        TableCell { class, text }
    }

    /// A name, in the font of code.
    pub(super) fn code(text: impl Into<String>) -> TableCell {
        TableCell {
            class: "code",
            text: text.into(),
        }
    }

    /// A digest, which stays on one line.
    pub(super) fn digest(text: impl Into<String>) -> TableCell {
        TableCell {
            class: "hash",
            text: text.into(),
        }
    }

    pub(super) fn number(text: impl ToString) -> TableCell {
        TableCell {
            class: "num",
            text: text.to_string(),
        }
    }

    /// A size in bytes; empty if it is unknown.
    pub(super) fn size(bytes: impl Into<Option<u64>>) -> TableCell {
        TableCell::number(bytes.into().map(human_size).unwrap_or_default())
    }

    pub(super) fn status(status: ItemStatus) -> TableCell {
        TableCell {
            class: status.word(),
            text: status.word().to_owned(),
        }
    }
}

impl Table {
    /// Makes a table of `rows`, which have a cell for each of `columns`.
    pub(super) fn new(columns: &[TableColumn], rows: Vec<Vec<TableCell>>) -> Table {
        let is_used: Vec<bool> = (0..columns.len())
            .map(|index| rows.iter().any(|row| !row[index].text.is_empty()))
            .collect();
        Table {
            columns: keep_used(columns.to_vec(), &is_used),
            rows: rows
                .into_iter()
                .map(|row| keep_used(row, &is_used))
                .collect(),
        }
    }
}

fn keep_used<T>(values: Vec<T>, is_used: &[bool]) -> Vec<T> {
    let used = values.into_iter().zip(is_used).filter(|(_, used)| **used);
    used.map(|(value, _)| value).collect()
}
