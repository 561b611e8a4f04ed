//! The web page: the content of the server and the commands that fetch it (`/`), the changes of
//! each bundle (`/changes`), the configuration of nodes (`/nodes`), and what clients asked for in vain
//! (`/misses`).
//!
//! Each page contains its style and script, loads no other file, and also works without the script.
//! The script copies commands and searches while the reader types. The templates (`*.html`) escape
//! every value.

mod commands;
mod list;
mod misses;
mod nodes;
mod respond;

pub(crate) use self::misses::misses_document;
pub(crate) use self::respond::{POLICY, page};
