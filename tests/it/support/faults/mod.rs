//! A registry and file server of our own that misbehaves when told to: every switch is a [`What`],
//! armed with [`Faults::arm`] for the requests of one kind ([`On`]), so many times.

mod answers;
mod content;
mod rig;
mod server;
mod switch;
mod wire;

pub use content::Content;
pub use rig::{Rig, quick, quick_and_wide};
pub use server::{Auth, Faults, Seen, Settings};
pub use switch::{Fault, Later, Location, On, What};
