//! Newer trust roots from a TUF repository (theupdateframework.io). The caller fetches the files;
//! nothing here uses the network.

use crate::crypto;
use crate::trust_root::TrustRoot;
use jiff::Timestamp;
use sigstore_tuf::client::Updater;
pub use sigstore_tuf::error::Error as TufError;
pub use sigstore_tuf::transport::{FetchFuture as TufFetch, Repository as TufRepository};

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
