//! SIGN IT. Signatures of OpenSSH's kind (SSHSIG), so that plain `ssh-keygen -Y verify` checks what landfall
//! signs: keys and the agent ([`Signer`]), the signature ([`Signature`]), and who may sign
//! ([`AllowedSigners`]). Each stage chooses what it signs.

mod agent;
mod allowed;
mod error;
mod key;
mod private;
mod signature;
mod signer;
#[cfg(test)]
mod tests;
mod wire;

pub use allowed::AllowedSigners;
pub(crate) use error::Error;
pub use key::PublicKey;
pub(crate) use signature::Signature;
pub use signer::Signer;
