//! The ports that a platform needs between the machines of a site, by the role of this machine, and
//! the connection attempts that test them.

mod kkp_table;
mod port_formats;
mod port_probe;
mod port_query;
mod required_port;

pub(crate) use port_formats::{PORTS_FORMATS, port_table};
pub(crate) use port_probe::probe_ports;
pub(crate) use port_query::{PortQuery, Strategy};
