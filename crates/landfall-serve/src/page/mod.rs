//! The web page: the content of the server and the commands that fetch it (`/`), the changes of
//! each bundle (`/changes`), and the configuration of nodes (`/nodes`).
//!
//! Each page contains its style and script, loads no other file, and also works without the script.
//! The script copies commands and searches while the reader types. The templates (`*.html`) escape
//! every value.

mod attachment_counts;
mod changes;
mod commands;
mod item_row;
mod list;
mod list_query;
mod nodes;
mod page_frame;
mod respond;

pub(crate) use page_frame::POLICY;
pub(crate) use respond::page;
