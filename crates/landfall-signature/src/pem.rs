//! Certificates and keys in PEM (RFC 7468).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The line before a certificate.
pub(crate) const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Encodes `der` as PEM, with lines of 64 characters, as transparency logs store it.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}
