//! The ports that a platform needs between the machines of a site, by the role of this one; and the
//! knocks at them.

mod ask;
mod knock;
mod list;
mod table;
mod write;

pub(crate) use ask::{PortQuery, Strategy};
pub(crate) use knock::knock_at;
pub(crate) use write::{PORTS_FORMATS, port_table};
