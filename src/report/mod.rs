//! What a command did: items, totals and hosts as one document; and progress as a small trait.

mod annotation;
mod count;
#[cfg(feature = "cli")]
mod csv;
mod escape;
mod html;
mod item;
#[cfg(feature = "cli")]
mod markdown;
#[cfg(feature = "cli")]
mod notice;
#[cfg(feature = "cli")]
pub(crate) mod page;
mod progress;
#[cfg(feature = "cli")]
mod schema;
mod shell;
mod summary;

pub(crate) use annotation::{Annotation, Level};
pub(crate) use count::{EntryCount, count_of};
#[cfg(feature = "cli")]
pub(crate) use csv::csv_line;
pub(crate) use escape::{escape, one_line};
pub(crate) use html::escape_html;
pub use item::{Item, Kind, Status};
#[cfg(feature = "cli")]
pub(crate) use markdown::{Markdown, block, code, text};
#[cfg(feature = "cli")]
pub(crate) use notice::{Notice, NoticeKind};
pub use progress::{Progress, Silent};
#[cfg(feature = "cli")]
pub(crate) use schema::schema;
pub(crate) use shell::{shell_quoted, shell_word};
pub use summary::Report;
pub(crate) use summary::{ErrorInfo, HostUse, RunStatus, Side, Totals};
