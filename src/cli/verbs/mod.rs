//! One file a verb.

pub(super) mod audit;
pub(super) mod completions;
pub(super) mod diff;
pub(super) mod discover;
pub(super) mod doctor;
pub(super) mod egress;
pub(super) mod export;
mod export_files;
mod export_images;
mod export_list;
pub(super) mod gc;
pub(super) mod import;
pub(super) mod init;
pub(super) mod lock;
pub(super) mod ls;
pub(super) mod mirror;
pub(super) mod pack;
pub(super) mod pack_volume;
pub(super) mod pull;
pub(super) mod push;
pub(super) mod render;
pub(super) mod rewrite;
pub(super) mod schema;
pub(super) mod serve;
pub(super) mod sign;
pub(super) mod verify;
