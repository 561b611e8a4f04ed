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

mod allowed_signers;
mod file_key;
mod openpgp;
mod openpgp_rules;
mod openpgp_signer;
mod public_key;
mod signature;
mod signer;
#[cfg(test)]
mod tests;

pub use self::allowed_signers::{AllowedSigners, GitSigners};
pub use self::file_key::FileKey;
pub use self::openpgp::OpenPgpKeys;
pub use self::openpgp_rules::SignatureTime;
pub use self::openpgp_signer::OpenPgpSigner;
pub use self::public_key::{PublicKey, armor};
pub use self::signature::Signature;
pub use self::signer::Signer;
