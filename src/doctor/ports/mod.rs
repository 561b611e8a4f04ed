//! The ports that a platform needs between the machines of a site, by the role of this machine, and
//! the connection attempts that test them.

mod port_formats;
mod port_probe;
mod port_query;
mod required_port;

pub(crate) use self::port_formats::{PORTS_FORMATS, port_table};
pub(crate) use self::port_probe::probe_ports;
pub(crate) use self::port_query::{PortQuery, Strategy};
pub(crate) use self::required_port::RequiredPort;
