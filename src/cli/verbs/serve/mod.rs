//! `landfall serve`: serves bundles as a registry and file server; with `--writable`, a registry
//! that accepts pushes.

mod command;
mod limit_flags;
mod node_guides;
mod served_bundles;

pub(crate) use self::command::ServeCommand;
