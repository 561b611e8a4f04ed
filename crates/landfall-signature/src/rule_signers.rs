//! The signers that a rule accepts, for the policies of other programs.

use crate::pem::pem;
use crate::requirement::SignatureRequirement;
use crate::signer_key::SignerKey;
use crate::trust_root::TrustRoot;
use landfall_model::document::KeylessSigner;

/// The signers that a rule accepts: one of `keys` or one of `identities` must sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSigners {
    /// Public keys in PEM.
    pub keys: Vec<String>,
    /// Identities in certificates, with `*` for any text.
    pub identities: Vec<KeylessSigner>,
    /// The root certificates of the authorities in the trust root, in PEM.
    pub authorities: Vec<String>,
    /// The keys, in PEM, of the trust root's transparency logs with inclusion promises.
    pub logs: Vec<String>,
    /// Whether a provenance is required in place of a signature.
    pub needs_provenance: bool,
}

impl From<&SignatureRequirement> for RuleSigners {
    fn from(requirement: &SignatureRequirement) -> RuleSigners {
        let root = requirement.trust_root.as_ref();
        let authorities = root.map(TrustRoot::authorities).unwrap_or_default();
        let logs = root.map(TrustRoot::promising_logs).unwrap_or_default();
        RuleSigners {
            keys: requirement.keys.iter().map(SignerKey::pem).collect(),
            identities: requirement
                .identities
                .iter()
                .map(|signer| KeylessSigner {
                    issuer: signer.issuer.to_string(),
                    identity: signer.identity.to_string(),
                })
                .collect(),
            authorities: authorities
                .iter()
                .map(|certificate| pem("CERTIFICATE", certificate))
                .collect(),
            logs: logs.iter().map(|key| pem("PUBLIC KEY", key)).collect(),
            needs_provenance: requirement.provenance.is_some(),
        }
    }
}
