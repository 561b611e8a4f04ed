//! Sigstore's trust root: certificate authorities, logs and timestamp authorities, from a file.

use crate::crypto;
use jiff::Timestamp;
use sigstore_tuf::client::Updater;
use sigstore_verify::Verifier;
use sigstore_verify::crypto::KeyAlgorithm;
use sigstore_verify::trust_root::TrustedRoot;
use std::fmt;
use std::sync::Arc;

pub use sigstore_tuf::error::Error as TufError;
pub use sigstore_tuf::transport::{FetchFuture as TufFetch, Repository as TufRepository};

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

// Newer trust roots from a TUF repository (theupdateframework.io). The caller fetches the files;
// nothing here uses the network.

/// The target with the trust root in Sigstore's TUF repositories.
const TARGET: &str = "trusted_root.json";

/// The newest trust root of a TUF repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestTrustRoot {
    /// The `trusted_root.json`.
    pub trusted_root: String,
    /// The newest `root.json` of the TUF repository.
    pub tuf_root: String,
}

/// Fetches the newest trust root from `repository`, and verifies it by the keys in `tuf_root`, a
/// `root.json`. Metadata that has expired at `now` is refused.
///
/// # Errors
/// If a file cannot be fetched or is not signed by these keys, or the trust root cannot be used.
pub async fn newest_trust_root(
    repository: impl TufRepository + 'static,
    tuf_root: &str,
    now: Timestamp,
) -> Result<NewestTrustRoot, String> {
    crypto::install();
    let mut updater = Updater::new(repository, tuf_root.as_bytes()).map_err(with_causes)?;
    updater.refresh(now).await.map_err(with_causes)?;
    let target = updater.get_target(TARGET, now).await.map_err(with_causes)?;
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map(str::to_owned);
        text.map_err(|error| error.to_string())
    };
    let trusted_root = text(&target)?;
    TrustRoot::parse(&trusted_root).map_err(|why| format!("{TARGET}: {why}"))?;
    Ok(NewestTrustRoot {
        trusted_root,
        tuf_root: text(updater.trusted().root_bytes())?,
    })
}

/// The error with its causes, which its own text does not name.
fn with_causes(error: TufError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}
