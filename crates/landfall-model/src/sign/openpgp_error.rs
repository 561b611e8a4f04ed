//! Errors of OpenPGP keys and signatures.

use jiff::Timestamp;

/// Why an OpenPGP key or signature is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenPgpError {
    /// The file contains no public key.
    #[error("it contains no OpenPGP public key; `gpg --armor --export NAME` writes one")]
    NoKey,
    /// The file contains a private key.
    #[error(
        "it contains a private key; name the public one, which `gpg --armor --export NAME` writes"
    )]
    Private,
    /// The file contains no private key, or lacks the private part of the signing key.
    #[error(
        "it contains no OpenPGP private key; `gpg --armor --export-secret-keys NAME` writes one"
    )]
    NoPrivate,
    /// The private key needs a passphrase.
    #[error(
        "it is locked; set the environment variable LANDFALL_PACKAGES_PASSPHRASE to its passphrase"
    )]
    Locked,
    /// Signing with the private key failed.
    #[error(
        "landfall cannot sign with this key; `gpg --quick-gen-key NAME ed25519 sign` makes a \
         suitable key"
    )]
    CannotSign,
    /// gpg and dnf cannot verify the signatures of the private key.
    #[error(
        "gpg and dnf cannot verify the signatures of this key; `gpg --quick-gen-key NAME ed25519 \
         sign` makes a suitable key"
    )]
    Unfit,
    /// The text is not signed, or a detached signature is malformed.
    #[error("it contains no OpenPGP signature, or a damaged one")]
    NotSigned,
    /// The text does not name the hash algorithm of its signature.
    #[error("its header `Hash` does not name the hash algorithm of its signature")]
    Unnamed,
    /// There are more signatures than landfall verifies.
    #[error("it has more than {0} signatures")]
    TooMany(usize),
    /// The content cannot be read.
    #[error("cannot read the signed content: {0}")]
    Read(String),
    /// None of the keys made the signature, or the content was changed.
    #[error("it has no valid signature by {0}: another key made it, or the content was changed")]
    Wrong(String),
    /// The hash algorithm is broken: an attacker can make two contents with one signature.
    #[error("its signature by {0} uses MD5, SHA-1 or RIPEMD-160, which can be forged")]
    Weak(String),
    /// The signature is of a type that is not for content.
    #[error("its signature by {0} is not for a file or a text")]
    Kind(String),
    /// The signature has a critical part with an unknown meaning.
    #[error("its signature by {key} has a critical part that is not supported: {part}")]
    Critical {
        /// The fingerprint of the key.
        key: String,
        /// The type of the part.
        part: String,
    },
    /// The signature itself has expired.
    #[error("its signature by {key} expired on {end}")]
    SignatureExpired {
        /// The fingerprint of the key.
        key: String,
        /// When the signature expired.
        end: Timestamp,
    },
    /// The key was revoked by its owner or a designated revoker.
    #[error("the key {0} that signed it is revoked")]
    Revoked(String),
    /// The key or its primary key has expired.
    #[error(
        "the key {key} that signed it expired on {end}; get the key with its new expiry date from \
         its owner"
    )]
    Expired {
        /// The fingerprint of the key.
        key: String,
        /// When the key expired.
        end: Timestamp,
    },
    /// The key is not for signatures of content, or is not bound to its primary key.
    #[error("the key {key} that signed it is not a signing key: {why}")]
    NotForSigning {
        /// The fingerprint of the key.
        key: String,
        /// The rule that the key violates.
        why: &'static str,
    },
    /// The times of the key, the signature and this machine contradict each other.
    #[error(
        "the key {key} was created on {created}, after its signature or in the future; check the \
         clock of this machine"
    )]
    TooEarly {
        /// The fingerprint of the key.
        key: String,
        /// The creation time that the key states.
        created: Timestamp,
    },
}
