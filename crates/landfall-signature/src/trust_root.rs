//! Sigstore's trust root: certificate authorities, logs and timestamp authorities, from a file.

use crate::crypto;
use sigstore_verify::Verifier;
use sigstore_verify::crypto::KeyAlgorithm;
use sigstore_verify::trust_root::TrustedRoot;
use std::fmt;
use std::sync::Arc;

/// A `trusted_root.json` that was checked.
#[derive(Clone)]
pub(crate) struct TrustRoot {
    text: Arc<str>,
    root: Arc<TrustedRoot>,
}

impl TrustRoot {
    /// Reads a `trusted_root.json`. Fails with a message if it is not valid.
    pub(crate) fn parse(text: &str) -> Result<TrustRoot, String> {
        crypto::install();
        let root = TrustedRoot::from_json(text)
            .map_err(|error| format!("it is not a trusted_root.json: {error}"))?;
        Verifier::new(&root).map_err(|error| format!("it cannot be used: {error}"))?;
        Ok(TrustRoot {
            text: text.into(),
            root: Arc::new(root),
        })
    }

    /// A verifier with this root.
    pub(crate) fn verifier(&self) -> Verifier {
        Verifier::new(&self.root).unwrap_or_else(|_| unreachable!("`parse` accepted this root"))
    }

    /// Whether it has transparency logs. If so, signatures must be in one.
    pub(crate) fn has_logs(&self) -> bool {
        !self.root.tlogs.is_empty()
    }

    /// The roots of its certificate authorities, in DER.
    pub(crate) fn authorities(&self) -> Vec<Vec<u8>> {
        let authorities = self.root.certificate_authorities.iter();
        let roots = authorities.filter_map(|authority| authority.cert_chain.certificates.last());
        roots
            .map(|certificate| certificate.raw_bytes.as_bytes().to_vec())
            .collect()
    }

    /// The keys, in DER, of its transparency logs with inclusion promises: Rekor before version 2.
    /// Logs without them have Ed25519 keys.
    pub(crate) fn promising_logs(&self) -> Vec<Vec<u8>> {
        let keys = self.root.tlogs.iter().map(|log| &log.public_key.raw_bytes);
        keys.filter(|key| {
            let algorithm = KeyAlgorithm::from_spki(key);
            algorithm.is_ok_and(|algorithm| algorithm != KeyAlgorithm::Ed25519)
        })
        .map(|key| key.as_bytes().to_vec())
        .collect()
    }

    /// The URLs of its transparency logs.
    pub(crate) fn log_urls(&self) -> impl Iterator<Item = &str> {
        self.root.tlogs.iter().map(|log| log.base_url.as_str())
    }

    /// Whether it has certificate transparency logs. If so, certificates must be in one.
    pub(crate) fn has_certificate_logs(&self) -> bool {
        !self.root.ctlogs.is_empty()
    }
}

impl PartialEq for TrustRoot {
    fn eq(&self, other: &TrustRoot) -> bool {
        self.text == other.text
    }
}

impl Eq for TrustRoot {}

impl fmt::Debug for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustRoot").finish_non_exhaustive()
    }
}
