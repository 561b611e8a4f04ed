//! The annotations in which cosign stores a signature with its certificates, log entry and
//! timestamp.

pub(crate) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
pub(crate) const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
pub(crate) const CHAIN: &str = "dev.sigstore.cosign/chain";
pub(crate) const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
pub(crate) const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";
