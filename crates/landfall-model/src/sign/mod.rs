//! Makes and verifies signatures. The callers decide which bytes are signed.
//!
//! landfall signs with OpenSSH signatures (SSHSIG), which `ssh-keygen -Y verify` verifies too:
//! [`Signer`] signs with a key file or the SSH agent, [`Signature`] is the result, and
//! [`AllowedSigners`] says who may sign.
//!
//! landfall also verifies signatures that others made: detached signatures of files ([`FileKey`]:
//! minisign, OpenSSH or OpenPGP), those of git ([`GitSigners`]), and texts that contain an OpenPGP
//! signature ([`OpenPgpKeys`]). It signs the metadata of package repositories again with OpenPGP
//! ([`OpenPgpSigner`]).

mod agent;
mod allowed_signers;
mod file_key;
mod git_signers;
mod openpgp;
mod openpgp_error;
mod openpgp_rules;
mod openpgp_signer;
mod pattern_list;
mod private_key;
mod public_key;
mod signature;
mod signature_error;
mod signer;
mod ssh_encoding;
#[cfg(test)]
mod tests;

pub use allowed_signers::AllowedSigners;
pub use file_key::{FileKey, FileKeyError};
pub use git_signers::{GitSigners, GitSignersError};
pub use openpgp::OpenPgpKeys;
pub use openpgp_error::OpenPgpError;
pub use openpgp_rules::SignatureTime;
pub use openpgp_signer::OpenPgpSigner;
pub use public_key::PublicKey;
pub use signature::Signature;
pub use signature_error::SignatureError;
pub use signer::Signer;
