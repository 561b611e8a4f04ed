//! `landfall doctor`: diagnoses connections, and finds settings of a site that will not work.

mod command;
mod node;
mod packages;

pub(crate) use command::DoctorCommand;
