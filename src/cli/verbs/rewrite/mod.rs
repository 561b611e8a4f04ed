//! `landfall rewrite`: points references to locked items at the private registry.

mod command;
mod kustomize;
mod report;

pub(crate) use self::command::RewriteCommand;
