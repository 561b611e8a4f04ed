//! Why a key or a signature of OpenPGP is refused.

use jiff::Timestamp;

/// Why a signature of OpenPGP does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenPgpError {
    /// The file holds no public key.
    #[error("it holds no public key of OpenPGP; `gpg --armor --export NAME` writes one")]
    NoKey,
    /// The file holds a private key.
    #[error(
        "it holds a private key; name the public one, which `gpg --armor --export NAME` writes"
    )]
    Private,
    /// The file holds no private key.
    #[error(
        "it holds no private key of OpenPGP; `gpg --armor --export-secret-keys NAME` writes one"
    )]
    NoPrivate,
    /// The private key needs a passphrase.
    #[error(
        "it is locked; give its passphrase in the environment variable LANDFALL_PACKAGES_PASSPHRASE"
    )]
    Locked,
    /// The private key cannot sign what others check.
    #[error(
        "it is no key that signs as gpg and dnf check it; `gpg --quick-gen-key NAME ed25519 sign` makes one"
    )]
    Unfit,
    /// The text is not signed.
    #[error("it is no text with a signature of OpenPGP")]
    NotSigned,
    /// The text does not name the hash algorithm of its signature.
    #[error("its header `Hash` does not name the hash algorithm of its signature")]
    Unnamed,
    /// There are more signatures than are checked.
    #[error("it has more than {0} signatures")]
    TooMany(usize),
    /// The content cannot be read.
    #[error("cannot read what it signs: {0}")]
    Read(String),
    /// None of the keys made the signature, or the text was changed.
    #[error("it has no valid signature by {0}: another key made it, or the text was changed")]
    Wrong(String),
    /// The hash algorithm is broken: two contents can be made that fit one signature.
    #[error("its signature by {0} uses MD5, SHA-1 or RIPEMD-160, which can be forged")]
    Weak(String),
    /// The signature is of a kind that signs something else than content.
    #[error("its signature by {0} is not one of a file or a text")]
    Kind(String),
    /// The signature has a critical part with an unknown meaning.
    #[error("its signature by {0} has a critical part that is not supported: {1}")]
    Critical(String, String),
    /// The signature has expired.
    #[error("its signature by {0} expired on {1}")]
    SignatureExpired(String, Timestamp),
    /// The key was revoked.
    #[error("the key {0} that signed it is revoked")]
    Revoked(String),
    /// The key has expired.
    #[error(
        "the key {0} that signed it expired on {1}; ask its owner for the key with its new expiry date"
    )]
    Expired(String, Timestamp),
    /// The key is not for signatures of content, or is not bound to its primary key.
    #[error("the key {0} that signed it is not a signing key: {1}")]
    NotForSigning(String, &'static str),
    /// The times of the key, the signature and this machine contradict each other.
    #[error(
        "the key {0} was created on {1}, after its signature or in the future; is the clock of this machine right?"
    )]
    TooEarly(String, Timestamp),
}
