//! Git repositories over git's smart HTTP protocol, read-only: as HOST/PATH below `/git/`,
//! `/files/` and `/`, and at the paths of their original URLs for clients that name the original
//! host.

mod databases;
mod lfs;
mod message;
mod prepared_answer;
mod respond;

pub(crate) use self::databases::GitDatabases;
pub(crate) use self::respond::{GitRoute, respond_git};
