//! `landfall pack`: packs the items of a lock into one bundle.

mod command;
mod companions;
mod volume;

pub(crate) use command::PackCommand;
