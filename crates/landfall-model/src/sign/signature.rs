//! Signatures in the format of OpenSSH, as PROTOCOL.sshsig defines it: parsing and verification.

use super::public_key::{PublicKey, SshReader, Unverifiable, armor, dearmor, strings};
use crate::document::Diagnostic;
use crate::{Algorithm, Digest, Failure, digest_of};
use std::io::{self, Read};
use std::path::PathBuf;

const LABEL: &str = "SSH SIGNATURE";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// A parsed signature, which proves nothing before [`Signature::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    key: PublicKey,
    namespace: String,
    /// The algorithm by which the message is hashed before it is signed.
    hash: Algorithm,
    /// In SSH encoding: the algorithm, then the value.
    value: Vec<u8>,
}

/// Returns the data to sign for `message`. Like `ssh-keygen`, it uses SHA-512.
pub(super) fn data_to_sign(namespace: &str, message: &[u8]) -> Vec<u8> {
    signed_data(namespace, &Digest::compute(Algorithm::Sha512, message))
}

fn signed_data(namespace: &str, hash: &Digest) -> Vec<u8> {
    let algorithm = hash.algorithm().as_str();
    let fields = [
        namespace.as_bytes(),
        b"",
        algorithm.as_bytes(),
        hash.bytes(),
    ];
    [MAGIC, &strings(&fields)].concat()
}

impl Signature {
    pub(super) fn new(key: PublicKey, namespace: &str, value: Vec<u8>) -> Signature {
        Signature {
            key,
            namespace: namespace.into(),
            hash: Algorithm::Sha512,
            value,
        }
    }

    /// Parses a signature that `ssh-keygen -Y sign` wrote.
    ///
    /// # Errors
    /// Returns [`SignatureError::Malformed`] if `text` is not a signature.
    pub fn parse(text: &[u8]) -> Result<Signature, SignatureError> {
        let parse = || {
            let bytes = dearmor(LABEL, std::str::from_utf8(text).ok()?)?;
            let mut reader = SshReader(bytes.strip_prefix(MAGIC)?);
            (reader.u32()? == VERSION).then_some(())?;
            let key = PublicKey::from_blob(reader.string()?)?;
            let namespace = reader.text()?.to_owned();
            let _reserved = reader.string()?;
            let hash = match reader.text()? {
                "sha256" => Algorithm::Sha256,
                "sha512" => Algorithm::Sha512,
                _ => return None,
            };
            let value = reader.string()?.to_vec();
            reader.end()?;
            Some(Signature {
                key,
                namespace,
                hash,
                value,
            })
        };
        parse().ok_or(SignatureError::Malformed)
    }

    /// The key that the signature names.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Verifies that the key made the signature for `namespace` and `message`.
    /// [`super::AllowedSigners::principals`] decides whether the key may sign.
    ///
    /// # Errors
    /// Fails if the key did not make the signature, or landfall does not support its algorithm.
    pub fn check(&self, namespace: &str, message: &[u8]) -> Result<(), SignatureError> {
        self.check_hash(namespace, &Digest::compute(self.hash, message))
    }

    fn check_hash(&self, namespace: &str, hash: &Digest) -> Result<(), SignatureError> {
        if self.namespace != namespace {
            return Err(SignatureError::Namespace {
                found: self.namespace.escape_default().to_string(),
                wanted: namespace.into(),
            });
        }
        let key = self.key.clone();
        match key.has_signed(&self.value, &signed_data(namespace, hash)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SignatureError::OtherContent { key }),
            Err(Unverifiable::Weak) => Err(SignatureError::Weak { key }),
            Err(Unverifiable::TooLong) => Err(SignatureError::TooLong { key }),
            Err(Unverifiable::Algorithm(algorithm)) => Err(SignatureError::Algorithm {
                kind: self.key.kind().into(),
                algorithm,
            }),
        }
    }

    /// Like [`Signature::check`], for the message that `content` yields.
    ///
    /// # Errors
    /// Fails if `content` cannot be read. The inner result is that of [`Signature::check`].
    pub fn check_content(
        &self,
        namespace: &str,
        content: &mut impl Read,
    ) -> io::Result<Result<(), SignatureError>> {
        let hash = digest_of(content, self.hash)?;
        Ok(self.check_hash(namespace, &hash))
    }

    pub(super) fn to_text(&self) -> String {
        let fields = [
            &self.key.blob[..],
            self.namespace.as_bytes(),
            b"",
            self.hash.as_str().as_bytes(),
            &self.value,
        ];
        armor(
            LABEL,
            &[MAGIC, &VERSION.to_be_bytes(), &strings(&fields)].concat(),
        )
    }
}

// Errors of OpenSSH keys and signatures.

/// Why landfall cannot sign, or refuses an OpenSSH signature.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The key file cannot be read.
    #[error("cannot read the key {path}: {source}")]
    Read {
        /// The key file, as the user named it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a key.
    #[error("{path} is not an OpenSSH key; `ssh-keygen -t ed25519 -f KEY` makes one")]
    NoKey {
        /// The file, or the text given instead of it.
        path: PathBuf,
    },
    /// The private key has the format that OpenSSH wrote before 2018.
    #[error("{path} is a private key in a legacy format; `ssh-keygen -p -f {path}` converts it")]
    OldKey {
        /// The file of the private key.
        path: PathBuf,
    },
    /// The private key needs a passphrase, and no agent holds it.
    #[error(
        "{path} needs a passphrase, for which landfall does not prompt; add the key to the agent \
         with `ssh-add {path}` and run this again"
    )]
    Encrypted {
        /// The file of the private key.
        path: PathBuf,
    },
    /// landfall signs with this type of private key only through an agent, and no agent holds it.
    #[error(
        "{path} is of a type, such as RSA, with which landfall signs only through the SSH agent; \
         add the key to the agent with `ssh-add {path}` and run this again, or use an ed25519 key"
    )]
    AgentOnly {
        /// The file of the private key.
        path: PathBuf,
    },
    /// There is only a public key, and no agent.
    #[error(
        "{path} has no private key that landfall can use, and there is no agent (SSH_AUTH_SOCK is \
         not set); start one, `ssh-add` the key, or name the private key file"
    )]
    NoAgent {
        /// The key file, or the public key given instead of it.
        path: PathBuf,
    },
    /// The agent does not have the key.
    #[error("the agent does not hold {key} of {path}; `ssh-add` it, or name the private key file")]
    NotHeld {
        /// The public key that the agent should hold.
        key: PublicKey,
        /// The key file, or the public key given instead of it.
        path: PathBuf,
    },
    /// The agent does not respond, or refuses to sign.
    #[error("the SSH agent at {socket} does not sign: {source}")]
    Agent {
        /// The socket of the agent (`SSH_AUTH_SOCK`).
        socket: PathBuf,
        /// The error of the connection, or the refusal.
        source: io::Error,
    },
    /// The system returned no random numbers, which signatures with ECDSA keys need.
    #[error(
        "signing with {key} failed: the system returned no random numbers; run the command again, \
         or use an ed25519 key, which needs none"
    )]
    NoRandomNumbers {
        /// The key of the signer.
        key: PublicKey,
    },
    /// The signature that was made is not valid.
    #[error("signing with {key} failed: the signature is not valid; use another key")]
    Failed {
        /// The key of the signer.
        key: PublicKey,
    },
    /// The text is not a signature.
    #[error("it is not an SSH signature, or it is damaged")]
    Malformed,
    /// The signature has another namespace.
    #[error("it was made for \"{found}\", not for \"{wanted}\"")]
    Namespace {
        /// The namespace of the signature.
        found: String,
        /// The namespace that landfall requires.
        wanted: String,
    },
    /// landfall does not support the algorithm of the signature.
    #[error(
        "landfall cannot verify {algorithm} signatures of {kind} keys; sign with an ed25519 key"
    )]
    Algorithm {
        /// The type of the key.
        kind: String,
        /// The algorithm of the signature.
        algorithm: String,
    },
    /// The key is too short.
    #[error("{key} has fewer than 2048 bits, which is too weak")]
    Weak {
        /// The key that the signature names.
        key: PublicKey,
    },
    /// The key is too long.
    #[error("{key} has more than 8192 bits, which landfall cannot verify; use a shorter key")]
    TooLong {
        /// The key that the signature names.
        key: PublicKey,
    },
    /// The signature does not match the content.
    #[error(
        "{key} did not make it for this content; the signature or the content was changed, or the \
         signature belongs to other content"
    )]
    OtherContent {
        /// The key that the signature names.
        key: PublicKey,
    },
    /// The signature is valid, but its key may not sign.
    #[error("{key} signed it, but {file} does not allow that: {why}")]
    NotAllowed {
        /// The key that made the signature.
        key: PublicKey,
        /// The file of allowed signers.
        file: String,
        /// For each line with the key, why it does not allow this; or that no line has the key.
        why: String,
    },
    /// The file of allowed signers cannot be read.
    #[error("cannot read the allowed signers {path}: {source}")]
    AllowedSigners {
        /// The file of allowed signers.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of allowed signers has an error.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}

impl From<SignatureError> for Failure {
    fn from(error: SignatureError) -> Failure {
        let message = error.to_string();
        match error {
            SignatureError::Agent { .. }
            | SignatureError::NoRandomNumbers { .. }
            | SignatureError::Failed { .. } => Failure::failed(message),
            _ => Failure::usage(message),
        }
    }
}
