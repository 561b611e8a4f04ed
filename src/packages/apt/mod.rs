//! Debian's repositories: releases, indexes, versions, and the choice that apt makes among packages.

mod base;
mod choose;
mod conflicts;
mod install;
mod marking;
mod paragraph;
mod reason;
mod relation;
mod release;
mod request;
mod solutions;
mod trimmed;
mod universe;
mod version;

pub(crate) use base::suite_packages;
pub(crate) use choose::{Choice, Settings, choose};
pub(crate) use release::Release;
pub(crate) use request::is_request;
pub(crate) use trimmed::{TrimmedSuite, plain_path};
pub(crate) use universe::{Offer, Universe, Version};
