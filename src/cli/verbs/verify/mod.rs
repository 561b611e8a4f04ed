//! `landfall verify`: checks that a bundle is intact, and that it is the approved one.

mod command;
mod git_objects;

pub(crate) use command::VerifyCommand;
