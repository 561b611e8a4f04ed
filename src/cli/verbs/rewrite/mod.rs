//! `landfall rewrite`: points references to locked items at the private registry.

mod command;
mod kustomize;
mod not_locked;
mod report;

pub(crate) use command::RewriteCommand;
