//! `landfall pack`: packs the items of a lock into one bundle.

mod command;
mod companions;

pub(crate) use self::command::PackCommand;
