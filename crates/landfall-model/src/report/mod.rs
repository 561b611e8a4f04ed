//! What a command did: items, totals and hosts as one document; and progress as a small trait.

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
pub use escape::{escape, one_line};
pub use html::{HtmlEscaper, escape_html};
pub use item::{EntryKind, ItemStatus, ReportItem};
pub use markdown::{Markdown, block, code, text};
pub use notice::{Notice, NoticeKind};
pub use progress::{Progress, SilentProgress};
pub use schema::schema;
pub use shell::{shell_quoted, shell_word};
pub use summary::RunReport;
pub use summary::{ErrorInfo, HostUse, RunStatus, RunTotals, TransferSide};
