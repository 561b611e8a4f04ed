//! Connections: who is connected, who has to go, and how much is under way at one time.
//!
//! Two things are scarce: connections, and requests in flight. Whoever holds one and makes no
//! progress loses it after a time (`Patience`), and at once when another waits for it: an idle
//! connection first, then the answer that a client has not read for longest.

mod file_pieces;
mod in_flight;
mod open_files;
mod run;
mod seats;
mod watched_stream;

pub(super) use file_pieces::FilePieces;
pub(super) use in_flight::{InFlight, Ticket};
pub(super) use open_files::raise_open_files;
pub(super) use run::run;
pub(super) use seats::{Busy, Seats};
