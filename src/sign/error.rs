//! Why landfall cannot sign, or refuses a signature.

use super::key::PublicKey;
use crate::document::Diagnostic;
use std::io;
use std::path::PathBuf;

/// Why landfall cannot sign, or refuses a signature.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key file cannot be read.
    #[error("cannot read the key {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is no key.
    #[error("{path} is no key of OpenSSH's; `ssh-keygen -t ed25519 -f KEY` makes one")]
    NoKey {
        /// The file, or what was given in its place.
        path: PathBuf,
    },
    /// The private key is in a format that OpenSSH wrote before 2018.
    #[error("{path} is a private key in an old format; `ssh-keygen -p -f {path}` writes it in today's")]
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
    /// The private key is of a kind that landfall leaves to the agent, and no agent holds it.
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
        /// What happened.
        source: io::Error,
    },
    /// The key did not make a good signature.
    #[error("no good signature can be made with {key}; use another key")]
    Failed {
        /// The key.
        key: PublicKey,
    },
    /// It is no signature.
    #[error("it is no SSH signature, or a damaged one")]
    Malformed,
    /// It was made for something else.
    #[error("it was made for \"{found}\", not for \"{wanted}\"")]
    Namespace {
        /// What it was made for.
        found: String,
        /// What it would have to be made for.
        wanted: String,
    },
    /// This landfall does not know how to check it.
    #[error("landfall cannot check {algorithm} signatures of {kind} keys; sign with an ed25519 key")]
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
    /// The signature does not fit.
    #[error("it is none of {key} over this content; one of the two was changed, or belongs elsewhere")]
    OtherContent {
        /// The key that it says made it.
        key: PublicKey,
    },
    /// The signature is good, and its key may not sign.
    #[error("{key} signed it, whom {file} does not allow: {why}")]
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
    /// The file of allowed signers is not as it must be.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}
