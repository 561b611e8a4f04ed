//! The first answer of a server: the version of the protocol and the object format that it offers.

use super::packet::Packets;
use crate::error::GitError;

/// The maximum size of the first answer of a server that speaks version 2, in bytes. A list of refs
/// may be longer.
pub const MAX_ADVERTISEMENT: usize = 1 << 20;

/// Checks that a server speaks version 2 of the protocol, and that its repository uses SHA-1.
///
/// # Errors
/// If the server does not offer version 2, the repository uses SHA-256, or the message is not an
/// advertisement.
pub fn check_advertisement(message: &[u8]) -> Result<(), GitError> {
    let mut is_version_2 = false;
    let other_version = "the server does not offer version 2 of git's protocol";
    if message.len() >= MAX_ADVERTISEMENT {
        return Err(GitError::Unsupported(other_version));
    }
    for packet in Packets::new(message) {
        let line = packet?.line().map(str::trim_end);
        match line {
            Some("version 2") => is_version_2 = true,
            Some(line) if line.starts_with("object-format=") && line != "object-format=sha1" => {
                return Err(GitError::Unsupported(
                    "the repository uses SHA-256, which landfall does not support",
                ));
            }
            _ => {}
        }
    }
    if is_version_2 {
        return Ok(());
    }
    Err(GitError::Unsupported(other_version))
}

#[cfg(test)]
mod tests {
    use super::super::packet::{push_flush, push_text};
    use super::*;

    fn advertisement(lines: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        push_text(&mut message, "# service=git-upload-pack");
        push_flush(&mut message);
        lines.iter().for_each(|line| push_text(&mut message, line));
        push_flush(&mut message);
        message
    }

    #[test]
    fn only_version_2_with_sha1_is_accepted() {
        let accepted = advertisement(&["version 2", "ls-refs=unborn", "object-format=sha1"]);
        assert!(check_advertisement(&accepted).is_ok());
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 HEAD\0multi_ack";
        for lines in [&["version 2", "object-format=sha256"][..], &[id], &[]] {
            assert!(
                check_advertisement(&advertisement(lines)).is_err(),
                "{lines:?}"
            );
        }
        assert!(check_advertisement(b"<html>").is_err());
    }
}
