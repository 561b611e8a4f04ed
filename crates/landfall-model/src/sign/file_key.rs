//! Keys for detached signatures of files: minisign, OpenSSH or OpenPGP. The content of a key
//! file determines the kind of its keys.

use super::allowed_signers::AllowedSigners;
use super::openpgp::OpenPgpKeys;
use super::openpgp_rules::SignatureTime;
use super::public_key::PublicKey;
use super::signature::Signature;
use crate::{Failure, read_chunks};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use minisign_verify as minisign;
use std::io::{self, Read};

/// The namespace of OpenSSH signatures of files (ssh-keygen(1), `-Y sign`).
const NAMESPACE: &str = "file";
/// The maximum size of a file with a legacy minisign signature, which needs the whole file in
/// memory.
const MAX_LEGACY_FILE: u64 = 64 << 20;

/// A public key, or alternative public keys, for verifying signatures of files.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{}", self.names().join(" or "))]
pub struct FileKey(FileKeyKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum FileKeyKind {
    /// The second line of a `.pub` file, in base64.
    Minisign(String),
    /// Alternative keys: one of them must have signed.
    Ssh(Vec<PublicKey>),
    /// Alternative OpenSSH keys, each with the times and namespaces for which it may sign.
    Allowed(AllowedSigners),
    OpenPgp(OpenPgpKeys),
}

impl FileKey {
    /// Parses a file with a public key of minisign, with public keys of OpenPGP (armored or
    /// binary), with public keys of OpenSSH (one per line), or with allowed signers
    /// (ssh-keygen(1)), whose times without `Z` are UTC. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails if the file is none of these, or contains a private key.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<FileKey, Failure> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        if is_binary(bytes) || bytes.windows(9).any(|part| part == b"BEGIN PGP") {
            return Ok(FileKey(FileKeyKind::OpenPgp(OpenPgpKeys::parse(bytes)?)));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| no_key())?;
        if text.contains("PRIVATE KEY") || text.contains("minisign encrypted secret key") {
            return Err(Failure::usage(
                "it contains a private key; name the public one",
            ));
        }
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        if let Some(line) = lines().find(|line| minisign::PublicKey::from_base64(line).is_ok()) {
            return Ok(FileKey(FileKeyKind::Minisign(line.to_owned())));
        }
        let keys = || lines().filter(|line| !line.starts_with('#'));
        if !keys().any(has_ssh_key) {
            return Err(no_key());
        }
        let plain: Option<Vec<PublicKey>> = keys().map(PublicKey::from_line).collect();
        if let Some(plain) = plain {
            return Ok(FileKey(FileKeyKind::Ssh(plain)));
        }
        let signers = AllowedSigners::parse(file, text, &TimeZone::UTC);
        let signers = signers.map_err(|fault| {
            let line = text[..fault.span.start].matches('\n').count() + 1;
            Failure::usage(format!("line {line}: {}", fault.message)).with_help(
                "write each line as PRINCIPALS [OPTIONS] TYPE BASE64, or each as TYPE BASE64",
            )
        })?;
        Ok(FileKey(FileKeyKind::Allowed(signers)))
    }

    /// Whether `name` is the name that [`FileKey::verify`] returns for this key, or for one of
    /// these keys, at some time.
    pub fn has(&self, name: &str) -> bool {
        self.has_in(NAMESPACE, name)
    }

    /// Like [`FileKey::has`], for OpenSSH signatures in the given namespace instead of `file`.
    pub(super) fn has_in(&self, namespace: &str, name: &str) -> bool {
        match &self.0 {
            FileKeyKind::OpenPgp(keys) => keys.has(name),
            FileKeyKind::Allowed(signers) => signers.has(name, namespace),
            _ => self.names().iter().any(|own| own == name),
        }
    }

    /// Returns the keys if they are OpenPGP keys.
    pub fn open_pgp(&self) -> Option<&OpenPgpKeys> {
        match &self.0 {
            FileKeyKind::OpenPgp(keys) => Some(keys),
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        match &self.0 {
            FileKeyKind::Minisign(text) => vec![minisign_name(text)],
            FileKeyKind::Ssh(keys) => keys.iter().map(ToString::to_string).collect(),
            FileKeyKind::Allowed(signers) => signers.keys().map(ToString::to_string).collect(),
            FileKeyKind::OpenPgp(keys) => vec![keys.to_string()],
        }
    }

    /// Whether `signature` has the format of the signatures that keys of this kind make.
    pub fn may_check(&self, signature: &[u8]) -> bool {
        let starts = |start: &str| signature.trim_ascii_start().starts_with(start.as_bytes());
        match &self.0 {
            FileKeyKind::Minisign(_) => starts("untrusted comment:"),
            FileKeyKind::Ssh(_) | FileKeyKind::Allowed(_) => {
                starts("-----BEGIN SSH SIGNATURE-----")
            }
            FileKeyKind::OpenPgp(_) => {
                starts("-----BEGIN PGP SIGNATURE-----") || is_binary(signature)
            }
        }
    }

    /// Returns the usual file name endings of signatures that keys of this kind make.
    pub fn signature_endings(&self) -> &'static [&'static str] {
        match &self.0 {
            FileKeyKind::Minisign(_) => &[".minisig"],
            FileKeyKind::Ssh(_) | FileKeyKind::Allowed(_) => &[".sig"],
            FileKeyKind::OpenPgp(_) => &[".asc", ".sig"],
        }
    }

    /// Returns the name of the key that made `signature` over the content that `open` opens. An
    /// OpenPGP key and its signature must be valid at `time`, an allowed signer now: like
    /// `ssh-keygen -Y verify`, since its signature contains no time. Other keys do not expire.
    ///
    /// # Errors
    /// Fails if the key did not make the signature, or may not make it.
    pub fn verify<R: Read>(
        &self,
        signature: &[u8],
        time: SignatureTime,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, Failure> {
        self.verify_in(NAMESPACE, signature, time, Timestamp::now(), open)
    }

    /// Like [`FileKey::verify`], for OpenSSH signatures in the given namespace instead of `file`,
    /// and for allowed signers at the time `made`.
    pub(super) fn verify_in<R: Read>(
        &self,
        namespace: &str,
        signature: &[u8],
        time: SignatureTime,
        made: Timestamp,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, Failure> {
        match &self.0 {
            FileKeyKind::Minisign(key) => {
                check_minisign(key, signature, &mut open().map_err(unreadable)?)
                    .map(|()| minisign_name(key))
            }
            FileKeyKind::OpenPgp(keys) => keys.verify_detached(signature, time, open),
            FileKeyKind::Ssh(keys) => {
                let key = ssh_signer(namespace, signature, &mut open().map_err(unreadable)?)?;
                if !keys.contains(&key) {
                    return Err(wrong(&self.to_string()));
                }
                Ok(key.to_string())
            }
            FileKeyKind::Allowed(signers) => {
                let key = ssh_signer(namespace, signature, &mut open().map_err(unreadable)?)?;
                signers.principals(&key, namespace, made)?;
                Ok(key.to_string())
            }
        }
    }
}

/// Whether the line contains a key, even after principals and options.
fn has_ssh_key(line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    words
        .windows(2)
        .any(|pair| PublicKey::from_words(pair[0], pair[1]).is_some())
}

/// Returns the key that made the OpenSSH `signature` of `content`.
fn ssh_signer(
    namespace: &str,
    signature: &[u8],
    content: &mut impl Read,
) -> Result<PublicKey, Failure> {
    let signature = Signature::parse(signature)?;
    signature
        .check_content(namespace, content)
        .map_err(unreadable)??;
    Ok(signature.key().clone())
}

/// Whether the first bit is set, as in a binary OpenPGP packet (RFC 9580, "Packet Headers"), and
/// the bytes are not UTF-8 text. The first bit of UTF-8 text may be set too.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x80 != 0) && std::str::from_utf8(bytes).is_err()
}

/// Returns `minisign` and the key ID as minisign shows it: its bytes in reverse order.
fn minisign_name(key: &str) -> String {
    let bytes = STANDARD.decode(key).unwrap_or_default();
    let number: String = bytes
        .iter()
        .skip(2)
        .take(8)
        .rev()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("minisign {number}")
}

fn no_key() -> Failure {
    Failure::usage("it is not a public key of minisign, OpenSSH or OpenPGP")
}

fn wrong(key: &str) -> Failure {
    Failure::usage(format!(
        "{key} did not make it for this content: another key did, or the signature or the content \
         was changed"
    ))
}

pub(super) fn unreadable(error: io::Error) -> Failure {
    Failure::usage(format!("cannot read the signed content: {error}"))
}

fn check_minisign(key: &str, signature: &[u8], content: &mut impl Read) -> Result<(), Failure> {
    let malformed = || Failure::usage("it is not a minisign signature, or it is damaged");
    let wrong = |_| wrong(&minisign_name(key));
    let key = minisign::PublicKey::from_base64(key).map_err(|_| no_key())?;
    let text = std::str::from_utf8(signature).map_err(|_| malformed())?;
    let signature = minisign::Signature::decode(text).map_err(|_| malformed())?;
    let mut verifier = match key.verify_stream(&signature) {
        Ok(verifier) => verifier,
        Err(minisign::Error::UnsupportedLegacyMode) => {
            let mut all = Vec::new();
            content
                .take(MAX_LEGACY_FILE + 1)
                .read_to_end(&mut all)
                .map_err(unreadable)?;
            if all.len() as u64 > MAX_LEGACY_FILE {
                return Err(Failure::usage(
                    "it is a legacy minisign signature, which landfall verifies for files up to 64 \
                     MiB; request a signature by a current minisign",
                ));
            }
            return key.verify(&all, &signature, true).map_err(wrong);
        }
        Err(error) => return Err(wrong(error)),
    };
    read_chunks(content, |chunk| verifier.update(chunk)).map_err(unreadable)?;
    verifier.finalize().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssh_key_is_found_after_principals_and_options() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for before in [
            "",
            "a@example.org ",
            "a@é.test,b\tnamespaces=\"file\" ",
            "a\u{a0}b ",
            "é@a.test ",
        ] {
            let file = format!("{before}{key} comment\n");
            for file in [format!("# c\n{file}"), format!("\u{feff}{file}"), file] {
                let parsed = FileKey::parse("k", file.as_bytes()).unwrap();
                let is_plain = matches!(parsed.0, FileKeyKind::Ssh(_));
                assert_eq!(is_plain, before.is_empty(), "{file}");
            }
        }
    }

    #[test]
    fn text_with_non_ascii_white_space_is_not_a_key() {
        for text in ["a\u{a0}b", "a\u{2003}b c", "a\u{85}\u{3000}\u{2028}b"] {
            assert!(
                FileKey::parse("k", text.as_bytes()).is_err_and(|error| error == no_key()),
                "{text:?}"
            );
        }
    }
}
