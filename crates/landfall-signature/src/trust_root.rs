//! Sigstore's trust root: certificate authorities, logs and timestamp authorities, from a file.

use crate::crypto;
use sigstore_verify::Verifier;
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
    /// Reads a `trusted_root.json`. Fails with a text for people if it is not valid.
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
