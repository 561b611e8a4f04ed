//! Keys that sign commits and tags of git: OpenPGP, or OpenSSH as plain keys or allowed signers.

use super::file_key::{FileKey, FileKeyError};
use super::openpgp_rules::SignatureTime;
use jiff::Timestamp;
use std::fmt;

/// The namespace of OpenSSH signatures of git (git-config(1), `gpg.format`).
const NAMESPACE: &str = "git";

/// The keys, all from one file, that may sign commits and tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSigners(FileKey);

/// Why a file does not have keys that sign commits and tags.
#[derive(Debug, thiserror::Error)]
pub enum GitSignersError {
    /// The file has no keys, or private ones.
    #[error(transparent)]
    Key(#[from] FileKeyError),
    /// The file has keys of minisign.
    #[error("git does not sign with minisign; name a key of OpenPGP or OpenSSH")]
    Minisign,
}

impl GitSigners {
    /// Parses a file: OpenPGP keys, armored or binary; OpenSSH keys, one a line; or allowed signers
    /// (ssh-keygen(1)), whose times without `Z` are UTC. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails if the file is none of these, or contains a private key.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<GitSigners, GitSignersError> {
        let keys = FileKey::parse(file, bytes)?;
        if keys.may_check(b"untrusted comment:") {
            return Err(GitSignersError::Minisign);
        }
        Ok(GitSigners(keys))
    }

    /// Whether `name` is the name of one of these keys, as [`GitSigners::verify`] returns it.
    pub fn has(&self, name: &str) -> bool {
        self.0.has_in(NAMESPACE, name)
    }

    /// Returns the name of the key that made the armored `signature` of `payload`. `made` is the
    /// time in the payload: an allowed signer must be valid at that time, an OpenPGP key at
    /// `time`.
    ///
    /// # Errors
    /// Fails if none of the keys made the signature, or the key may not sign at that time.
    pub fn verify(
        &self,
        signature: &[u8],
        payload: &[u8],
        made: Timestamp,
        time: SignatureTime,
    ) -> Result<String, FileKeyError> {
        self.0
            .verify_in(NAMESPACE, signature, time, made, || Ok(payload))
    }

    /// Whether `signature` has the format of the signatures that these keys make.
    pub fn may_check(&self, signature: &[u8]) -> bool {
        self.0.may_check(signature)
    }
}

impl fmt::Display for GitSigners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = concat!(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
        " release"
    );

    #[test]
    fn the_content_of_the_file_determines_the_kind_of_keys() {
        let plain = GitSigners::parse("k", format!("# us\n{KEY}\n").as_bytes()).unwrap();
        let marked = GitSigners::parse("k", format!("\u{feff}{KEY}\n").as_bytes()).unwrap();
        assert_eq!(marked, plain);
        let allowed = format!("a@example.com namespaces=\"git\" {KEY}\n");
        let allowed = GitSigners::parse("k", allowed.as_bytes()).unwrap();
        assert_ne!(allowed, plain);
        assert!(allowed.has(&plain.to_string()) && !plain.has("ssh-ed25519 SHA256:"));
        assert_eq!(allowed.to_string(), plain.to_string());
        let files = format!("a@example.com namespaces=\"file\" {KEY}\n");
        let files = GitSigners::parse("k", files.as_bytes()).unwrap();
        assert!(!files.has(&plain.to_string()));
        let mixed = format!("a@example.com {KEY}\n{KEY}\n");
        let error = GitSigners::parse("k", mixed.as_bytes()).unwrap_err();
        assert!(
            error.to_string().starts_with("line 2: the principal"),
            "{error}"
        );
        let minisign =
            "untrusted comment: x\nRWQAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYn\n";
        let error = GitSigners::parse("k", minisign.as_bytes()).unwrap_err();
        assert!(matches!(error, GitSignersError::Minisign), "{error}");
        assert!(GitSigners::parse("k", b"text").is_err());
    }
}
