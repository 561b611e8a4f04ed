//! Keys that sign commits and tags of git: OpenPGP, or OpenSSH as plain keys or allowed signers.

use super::allowed_signers::AllowedSigners;
use super::file_key::{FileKey, FileKeyError};
use super::openpgp_rules::SignatureTime;
use super::public_key::PublicKey;
use super::signature::Signature;
use crate::document::Diagnostic;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt;

/// The namespace of OpenSSH signatures of git (git-config(1), `gpg.format`).
const NAMESPACE: &str = "git";

/// The keys, all from one file, that may sign commits and tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSigners(GitSignersKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum GitSignersKind {
    /// Keys in a file that does not limit when and for what they may sign.
    Keys(FileKey),
    /// OpenSSH keys, each with the times and namespaces for which it may sign.
    Allowed(AllowedSigners),
}

/// Why a file does not have keys that sign commits and tags.
#[derive(Debug, thiserror::Error)]
pub enum GitSignersError {
    /// The file has no keys, or private ones.
    #[error(transparent)]
    Key(#[from] FileKeyError),
    /// The file has keys of minisign.
    #[error("git does not sign with minisign; name a key of OpenPGP or OpenSSH")]
    Minisign,
    /// The file has allowed signers, and a line of it is malformed.
    #[error("line {line}: {}", .fault.message)]
    AllowedSigners {
        /// The number of the line.
        line: usize,
        /// What is wrong with it.
        fault: Box<Diagnostic>,
    },
}

impl GitSigners {
    /// Parses a file: OpenPGP keys, armored or binary; OpenSSH keys, one a line; or allowed signers
    /// (ssh-keygen(1)), whose times without `Z` are UTC. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails if the file is none of these, or contains a private key.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<GitSigners, GitSignersError> {
        let keys = FileKey::parse(bytes)?;
        if keys.may_check(b"untrusted comment:") {
            return Err(GitSignersError::Minisign);
        }
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let is_ssh = keys.may_check(b"-----BEGIN SSH SIGNATURE-----");
        if !is_ssh || lines.all(|line| PublicKey::from_line(line).is_some()) {
            return Ok(GitSigners(GitSignersKind::Keys(keys)));
        }
        let signers = AllowedSigners::parse(file, text, &TimeZone::UTC);
        let signers = signers.map_err(|fault| GitSignersError::AllowedSigners {
            line: text[..fault.span.start].matches('\n').count() + 1,
            fault,
        })?;
        Ok(GitSigners(GitSignersKind::Allowed(signers)))
    }

    /// Whether `name` is the name of one of these keys, as [`GitSigners::verify`] returns it.
    pub fn has(&self, name: &str) -> bool {
        match &self.0 {
            GitSignersKind::Keys(keys) => keys.has(name),
            GitSignersKind::Allowed(signers) => signers.keys().any(|key| key.to_string() == name),
        }
    }

    /// Returns the name of the key that made the armored `signature` of `payload`. `made` is the
    /// time in the payload: an allowed signer must be valid at that time, an OpenPGP key now.
    ///
    /// # Errors
    /// Fails if none of the keys made the signature, or the key may not sign at that time.
    pub fn verify(
        &self,
        signature: &[u8],
        payload: &[u8],
        made: Timestamp,
    ) -> Result<String, FileKeyError> {
        match &self.0 {
            GitSignersKind::Keys(keys) => {
                keys.verify_in(NAMESPACE, signature, SignatureTime::Now, || Ok(payload))
            }
            GitSignersKind::Allowed(signers) => {
                let signature = Signature::parse(signature)?;
                signature.check(NAMESPACE, payload)?;
                signers.principals(signature.key(), NAMESPACE, made)?;
                Ok(signature.key().to_string())
            }
        }
    }

    /// Whether `signature` has the format of the signatures that these keys make.
    pub fn may_check(&self, signature: &[u8]) -> bool {
        match &self.0 {
            GitSignersKind::Keys(keys) => keys.may_check(signature),
            GitSignersKind::Allowed(_) => signature.starts_with(b"-----BEGIN SSH SIGNATURE-----"),
        }
    }
}

impl fmt::Display for GitSigners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            GitSignersKind::Keys(keys) => keys.fmt(f),
            GitSignersKind::Allowed(signers) => {
                let names: Vec<String> = signers.keys().map(ToString::to_string).collect();
                f.write_str(&names.join(" or "))
            }
        }
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
        assert!(matches!(plain.0, GitSignersKind::Keys(_)));
        let marked = GitSigners::parse("k", format!("\u{feff}{KEY}\n").as_bytes()).unwrap();
        assert!(matches!(marked.0, GitSignersKind::Keys(_)));
        let allowed = format!("a@example.com namespaces=\"git\" {KEY}\n");
        let allowed = GitSigners::parse("k", allowed.as_bytes()).unwrap();
        assert!(matches!(allowed.0, GitSignersKind::Allowed(_)));
        assert!(allowed.has(&plain.to_string()) && !plain.has("ssh-ed25519 SHA256:"));
        assert_eq!(allowed.to_string(), plain.to_string());
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
