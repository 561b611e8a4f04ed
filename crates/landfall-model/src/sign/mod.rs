//! SIGN IT. OpenSSH's signatures (SSHSIG), so that plain `ssh-keygen -Y verify` checks them too:
//! keys and the agent ([`Signer`]), signatures ([`Signature`]), and who may sign
//! ([`AllowedSigners`]). Each stage chooses what it signs. What others sign is checked too: files
//! with their signatures beside them ([`FileKey`]), and texts signed by OpenPGP ([`OpenPgpKeys`]);
//! and the metadata of packages is signed anew by OpenPGP ([`OpenPgpSigner`]).

mod agent;
mod allowed;
mod detached;
mod error;
mod key;
mod openpgp;
mod openpgp_error;
mod openpgp_rules;
mod openpgp_signer;
mod private;
mod signature;
mod signer;
#[cfg(test)]
mod tests;
mod wire;

pub use allowed::AllowedSigners;
pub use detached::FileKey;
pub use error::SignatureError;
pub use key::PublicKey;
pub use openpgp::OpenPgpKeys;
pub use openpgp_error::OpenPgpError;
pub use openpgp_rules::SignatureTime;
pub use openpgp_signer::OpenPgpSigner;
pub use signature::Signature;
pub use signer::Signer;
