//! The report of a command in all its forms, and the escaping that each form needs.
//!
//! [`RunReport`] has the items, totals and hosts of a run and is written as JSON. [`page`] renders
//! it as HTML. [`Markdown`] is a text for pull requests, and [`CiAnnotation`] a message for CI
//! services. [`Progress`] receives the progress of a run.

mod escape;
mod item;
mod markdown;
pub mod page;
mod summary;

pub use self::escape::{
    HtmlEscaper, command_word, csv_line, escape_html, escape_lines, one_line, shell_quoted,
    shell_word,
};
pub use self::item::{
    EntryCount, EntryKind, ItemStatus, Notice, NoticeKind, Progress, ReportItem, SilentProgress,
    and_more, count_of,
};
pub use self::markdown::{
    Markdown, aligned_columns, markdown_block, markdown_code, markdown_row, markdown_text,
};
pub use self::summary::{AnnotationLevel, CiAnnotation, ErrorInfo, HostUse, RunReport, RunTotals};
pub use crate::failure::{RunStatus, TransferSide};
