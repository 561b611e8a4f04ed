//! Reads and writes bits, least significant first (RFC 1951, section 3.1.1).

mod reader;
mod writer;

pub(crate) use reader::BitReader;
pub(crate) use writer::BitWriter;
