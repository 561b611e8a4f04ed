//! The report of a command in all its forms, and the escaping that each form needs.
//!
//! [`RunReport`] has the items, totals and hosts of a run and is written as JSON. [`page`] renders
//! it as HTML. [`Markdown`] is a text for pull requests, and [`CiAnnotation`] a message for CI
//! services. [`Progress`] receives the progress of a run.

mod annotation;
mod count;
mod csv;
mod escape;
mod html;
mod item;
mod markdown;
mod notice;
pub mod page;
mod progress;
mod schema;
mod shell;
mod summary;

pub use annotation::{AnnotationLevel, CiAnnotation};
pub use count::{EntryCount, count_of};
pub use csv::csv_line;
pub use escape::{escape_lines, one_line};
pub use html::{HtmlEscaper, escape_html};
pub use item::{EntryKind, ItemStatus, ReportItem};
pub use markdown::{Markdown, markdown_block, markdown_code, markdown_text};
pub use notice::{Notice, NoticeKind};
pub use progress::{Progress, SilentProgress};
pub use schema::schema;
pub use shell::{shell_quoted, shell_word};
pub use summary::RunReport;
pub use summary::{ErrorInfo, HostUse, RunStatus, RunTotals, TransferSide};
