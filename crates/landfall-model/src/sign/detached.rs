//! Signatures that stand beside the file that they are of, checked with one key: minisign's,
//! OpenSSH's and OpenPGP's. The file with the key says which kind it is.

use super::error::SignatureError;
use super::key::PublicKey;
use super::openpgp::OpenPgpKeys;
use super::openpgp_error::OpenPgpError;
use super::openpgp_rules::SignatureTime;
use super::signature::Signature;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minisign_verify as minisign;
use std::fmt;
use std::io::{self, Read};

/// The namespace of OpenSSH's signatures of files (ssh-keygen(1), `-Y sign`).
const NAMESPACE: &str = "file";
/// The largest file of which a signature in minisign's old form is checked: it needs the file as a
/// whole.
const OLD_FORM: u64 = 64 << 20;

/// A public key that signs files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKey(FileKeyKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum FileKeyKind {
    /// In base64, as the second line of a `.pub` file has it.
    Minisign(String),
    /// Any of these.
    Ssh(Vec<PublicKey>),
    /// Any of these.
    OpenPgp(OpenPgpKeys),
}

/// Why a key or a signature beside a file does not count.
#[derive(Debug, thiserror::Error)]
pub enum FileKeyError {
    /// The file is no key.
    #[error("it is no public key of minisign, OpenSSH or OpenPGP")]
    NoKey,
    /// The file holds a private key.
    #[error("it holds a private key; name the public one")]
    Private,
    /// The signature is damaged, or of another kind.
    #[error("it is no signature of {0}, or a damaged one")]
    Malformed(&'static str),
    /// The key did not make the signature, or the file was changed.
    #[error(
        "{0} did not make it for this content: another key did, or the signature or the content was changed"
    )]
    Wrong(String),
    /// A signature in minisign's old form, of a large file.
    #[error(
        "it is in minisign's old form, which landfall checks for files up to 64 MiB; ask for one that is made anew"
    )]
    OldForm,
    /// OpenPGP's key or signature does not count.
    #[error(transparent)]
    OpenPgp(#[from] OpenPgpError),
    /// OpenSSH's signature does not count.
    #[error(transparent)]
    Ssh(#[from] SignatureError),
    /// The content cannot be read.
    #[error("cannot read what it signs: {0}")]
    Read(#[from] io::Error),
}

impl FileKey {
    /// Reads a file with a public key: minisign's; lines of OpenSSH, also with principals before
    /// the keys; or OpenPGP's, armored or not.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(bytes: &[u8]) -> Result<FileKey, FileKeyError> {
        if is_binary(bytes) || bytes.windows(9).any(|part| part == b"BEGIN PGP") {
            return Ok(FileKey(FileKeyKind::OpenPgp(OpenPgpKeys::parse(bytes)?)));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| FileKeyError::NoKey)?;
        if text.contains("PRIVATE KEY") || text.contains("minisign encrypted secret key") {
            return Err(FileKeyError::Private);
        }
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        if let Some(line) = lines().find(|line| minisign::PublicKey::from_base64(line).is_ok()) {
            return Ok(FileKey(FileKeyKind::Minisign(line.to_owned())));
        }
        let starts = |line: &str| {
            let words = line
                .match_indices(char::is_whitespace)
                .map(|(at, _)| at + 1);
            std::iter::once(0)
                .chain(words)
                .find_map(|at| PublicKey::from_line(&line[at..]))
        };
        let keys: Vec<PublicKey> = lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(starts)
            .collect();
        if keys.is_empty() {
            Err(FileKeyError::NoKey)
        } else {
            Ok(FileKey(FileKeyKind::Ssh(keys)))
        }
    }

    /// Whether `name` is what [`FileKey::verify`] calls this key, or one of these keys.
    pub fn has(&self, name: &str) -> bool {
        match &self.0 {
            FileKeyKind::OpenPgp(keys) => keys.has(name),
            _ => self.names().iter().any(|own| own == name),
        }
    }

    fn names(&self) -> Vec<String> {
        match &self.0 {
            FileKeyKind::Minisign(text) => vec![minisign_name(text)],
            FileKeyKind::Ssh(keys) => keys.iter().map(ToString::to_string).collect(),
            FileKeyKind::OpenPgp(keys) => vec![keys.to_string()],
        }
    }

    /// Whether `signature` is of the kind that such a key makes.
    pub fn may_check(&self, signature: &[u8]) -> bool {
        let starts = |start: &str| signature.trim_ascii_start().starts_with(start.as_bytes());
        match &self.0 {
            FileKeyKind::Minisign(_) => starts("untrusted comment:"),
            FileKeyKind::Ssh(_) => starts("-----BEGIN SSH SIGNATURE-----"),
            FileKeyKind::OpenPgp(_) => {
                starts("-----BEGIN PGP SIGNATURE-----") || is_binary(signature)
            }
        }
    }

    /// Returns the name of the key that made `signature` over the content that `open` opens.
    ///
    /// # Errors
    /// When the key did not make it.
    pub fn verify<R: Read>(
        &self,
        signature: &[u8],
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, FileKeyError> {
        match &self.0 {
            FileKeyKind::Minisign(key) => {
                check_minisign(key, signature, &mut open()?).map(|()| minisign_name(key))
            }
            FileKeyKind::OpenPgp(keys) => {
                Ok(keys.verify_detached(signature, SignatureTime::Now, open)?)
            }
            FileKeyKind::Ssh(keys) => {
                let signature = Signature::parse(signature)?;
                signature.check_content(NAMESPACE, &mut open()?)??;
                let key = signature.key();
                let is_ours = keys.contains(key);
                if is_ours {
                    Ok(key.to_string())
                } else {
                    Err(FileKeyError::Wrong(self.to_string()))
                }
            }
        }
    }
}

impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" or "))
    }
}

/// Whether it begins as OpenPGP's binary form does (RFC 9580, "Packet Headers").
fn is_binary(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x80 != 0)
}

/// `minisign`, and the number of the key as minisign shows it.
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

fn check_minisign(
    key: &str,
    signature: &[u8],
    content: &mut impl Read,
) -> Result<(), FileKeyError> {
    let malformed = || FileKeyError::Malformed("minisign");
    let wrong = |_| FileKeyError::Wrong(minisign_name(key));
    let key = minisign::PublicKey::from_base64(key).map_err(|_| FileKeyError::NoKey)?;
    let text = std::str::from_utf8(signature).map_err(|_| malformed())?;
    let signature = minisign::Signature::decode(text).map_err(|_| malformed())?;
    let mut verifier = match key.verify_stream(&signature) {
        Ok(verifier) => verifier,
        Err(minisign::Error::UnsupportedLegacyMode) => {
            let mut all = Vec::new();
            content.take(OLD_FORM + 1).read_to_end(&mut all)?;
            if all.len() as u64 > OLD_FORM {
                return Err(FileKeyError::OldForm);
            }
            return key.verify(&all, &signature, true).map_err(wrong);
        }
        Err(error) => return Err(wrong(error)),
    };
    let mut piece = vec![0; 64 << 10];
    loop {
        match content.read(&mut piece)? {
            0 => return verifier.finalize().map_err(wrong),
            count => verifier.update(&piece[..count]),
        }
    }
}
