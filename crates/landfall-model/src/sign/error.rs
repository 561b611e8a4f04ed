//! Why landfall cannot sign, or refuses a signature.

use super::key::PublicKey;
use crate::document::Diagnostic;
use std::io;
use std::path::PathBuf;

/// Why landfall cannot sign, or refuses a signature.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The key file cannot be read.
    #[error("cannot read the key {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a key.
    #[error("{path} is no key of OpenSSH's; `ssh-keygen -t ed25519 -f KEY` makes one")]
    NoKey {
        /// The file, or the text given instead of it.
        path: PathBuf,
    },
    /// The private key has the format that OpenSSH wrote before 2018.
    #[error(
        "{path} is a private key in an old format; `ssh-keygen -p -f {path}` writes it in today's"
    )]
    OldKey {
        /// The file.
        path: PathBuf,
    },
    /// The private key needs a passphrase, and no agent holds it.
    #[error(
        "{path} needs a passphrase, and landfall asks for none; give it to the agent with `ssh-add {path}` and run \
         this again"
    )]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// Only an agent signs with this kind of private key, and no agent holds it.
    #[error(
        "{path} is of a kind that signs by the SSH agent alone, such as RSA; give it to the agent with `ssh-add {path}` \
         and run this again, or take an ed25519 key"
    )]
    ByAgent {
        /// The file.
        path: PathBuf,
    },
    /// There is only a public key, and no agent.
    #[error(
        "{path} has no private key that landfall can use, and there is no agent (SSH_AUTH_SOCK is not set); start one, \
         `ssh-add` the key, or name the private key file"
    )]
    NoAgent {
        /// The file, or the key itself.
        path: PathBuf,
    },
    /// The agent does not have the key.
    #[error("the agent does not hold {key} of {path}; `ssh-add` it, or name the private key file")]
    NotHeld {
        /// The key.
        key: PublicKey,
        /// The file, or the key itself.
        path: PathBuf,
    },
    /// The agent cannot be asked, or does not sign.
    #[error("the SSH agent at {socket} does not sign: {source}")]
    Agent {
        /// Its socket (`SSH_AUTH_SOCK`).
        socket: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The key made no good signature.
    #[error("no good signature can be made with {key}; use another key")]
    Failed {
        /// The key.
        key: PublicKey,
    },
    /// The text is not a signature.
    #[error("it is no SSH signature, or a damaged one")]
    Malformed,
    /// The signature has another namespace.
    #[error("it was made for \"{found}\", not for \"{wanted}\"")]
    Namespace {
        /// Its namespace.
        found: String,
        /// The namespace that it needs.
        wanted: String,
    },
    /// This landfall cannot check the signature.
    #[error(
        "landfall cannot check {algorithm} signatures of {kind} keys; sign with an ed25519 key"
    )]
    Algorithm {
        /// Type of the key.
        kind: String,
        /// Kind of the signature.
        algorithm: String,
    },
    /// The key is too short.
    #[error("{key} has fewer than 2048 bits, which is too weak")]
    Weak {
        /// The key.
        key: PublicKey,
    },
    /// The signature does not match the content.
    #[error(
        "{key} did not make it for this content; the signature or the content was changed, or belongs elsewhere"
    )]
    OtherContent {
        /// The key that the signature names.
        key: PublicKey,
    },
    /// The signature is good, and its key may not sign.
    #[error("{key} signed it, and {file} does not allow that: {why}")]
    NotAllowed {
        /// The key.
        key: PublicKey,
        /// The file of allowed signers.
        file: String,
        /// Why.
        why: String,
    },
    /// The file of allowed signers cannot be read.
    #[error("cannot read the allowed signers {path}: {source}")]
    AllowedSigners {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file of allowed signers has an error.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}
