//! The short answers of a server: its capabilities and errors.

use super::packet::{push_data, push_flush, push_text};

/// The capabilities of a server that speaks version 2.
pub fn advertise_version_2() -> Vec<u8> {
    let mut message = service_line();
    for line in [
        "version 2",
        "agent=landfall",
        "ls-refs",
        "fetch=shallow filter",
        "object-format=sha1",
    ] {
        push_text(&mut message, line);
    }
    push_flush(&mut message);
    message
}

/// An answer that reports an error to the client.
pub fn error_answer(why: &str) -> Vec<u8> {
    let mut message = Vec::new();
    push_data(&mut message, format!("ERR {why}\n").as_bytes());
    message
}

/// The line with which every answer to `info/refs` begins (gitprotocol-http).
pub(super) fn service_line() -> Vec<u8> {
    let mut message = Vec::new();
    push_text(&mut message, "# service=git-upload-pack");
    push_flush(&mut message);
    message
}
