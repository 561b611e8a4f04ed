//! Git repositories over git's smart HTTP protocol, read-only: as HOST/PATH below `/git/`,
//! `/files/` and `/`, and at the paths of their original URLs for clients that name the original
//! host.

mod databases;
mod lfs;
mod message;
mod pack_body;
mod prepared_answer;
mod respond;
mod route;

pub(crate) use databases::GitDatabases;
pub(crate) use respond::respond_git;
pub(crate) use route::GitRoute;
