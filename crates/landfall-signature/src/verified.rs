//! Verified signatures of images, files and charts, as locks and reports contain them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A signature that was verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedSignature {
    /// Whether a key or an identity signed.
    pub by: SignerKind,
    /// The SHA-256 of the public key, `sha256:…`; or the name of a key of minisign, OpenSSH or
    /// OpenPGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The identity provider that the certificate names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The identity that the certificate names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it was signed, according to a transparency log or timestamp authority; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The builder in the provenance, if the policy requires a provenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// The source repository in the provenance, if the policy requires a provenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The kinds of signers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignerKind {
    /// A public key of the policy.
    Key,
    /// An identity in a certificate of Fulcio.
    Keyless,
}

impl fmt::Display for SignerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SignerKind::Key => "key",
            SignerKind::Keyless => "keyless",
        })
    }
}

impl VerifiedSignature {
    /// A signature by the key with this fingerprint or name.
    pub fn by_key(fingerprint: String) -> VerifiedSignature {
        VerifiedSignature {
            by: SignerKind::Key,
            fingerprint: Some(fingerprint),
            issuer: None,
            identity: None,
            time: None,
            builder: None,
            source: None,
        }
    }

    /// Returns the fields with a value, in the order of the lock.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let by = Some(self.by.to_string());
        let all = [
            ("by", &by),
            ("fingerprint", &self.fingerprint),
            ("issuer", &self.issuer),
            ("identity", &self.identity),
            ("time", &self.time),
            ("builder", &self.builder),
            ("source", &self.source),
        ];
        all.into_iter()
            .filter_map(|(key, value)| Some((key, value.clone()?)))
            .collect()
    }
}

impl fmt::Display for VerifiedSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.fingerprint, &self.identity) {
            (Some(fingerprint), _) => write!(f, "key {fingerprint}")?,
            (None, Some(identity)) => f.write_str(identity)?,
            (None, None) => f.write_str("an unnamed signer")?,
        }
        match &self.builder {
            Some(builder) => write!(f, ", built by {builder}"),
            None => Ok(()),
        }
    }
}

/// Reads one signature or a list of them, as locks have them.
///
/// # Errors
/// If a signature is malformed or has unknown fields.
pub fn read_verified<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Vec<VerifiedSignature>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum LockedSignatures {
        One(Box<VerifiedSignature>),
        Many(Vec<VerifiedSignature>),
    }
    Ok(match LockedSignatures::deserialize(source)? {
        LockedSignatures::One(one) => vec![*one],
        LockedSignatures::Many(many) => many,
    })
}

/// Writes a single signature by itself, and several as a list, as [`read_verified`] reads them.
///
/// # Errors
/// The errors of `out`.
pub fn write_verified<S: Serializer>(
    verified: &[VerifiedSignature],
    out: S,
) -> Result<S::Ok, S::Error> {
    match verified {
        [one] => one.serialize(out),
        _ => verified.serialize(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_one_signature_or_a_list() {
        #[derive(Deserialize)]
        struct Locked {
            #[serde(deserialize_with = "read_verified")]
            verified: Vec<VerifiedSignature>,
        }
        let one = r#"{"by":"key","fingerprint":"sha256:aa","time":"2026-01-01T12:00:00Z"}"#;
        let other = r#"{"by":"keyless","issuer":"i","identity":"j","builder":"b"}"#;
        let read = |text: String| {
            let locked: Result<Locked, _> = serde_json::from_str(&text);
            locked.map(|locked| locked.verified)
        };
        let single = read(format!(r#"{{"verified":{one}}}"#)).unwrap();
        assert_eq!(single[0].to_string(), "key sha256:aa");
        let both = read(format!(r#"{{"verified":[{one},{other}]}}"#)).unwrap();
        assert_eq!((&both[0], both.len()), (&single[0], 2));
        assert_eq!(both[1].to_string(), "j, built by b");
        let keys: Vec<&str> = both[1].fields().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["by", "issuer", "identity", "builder"]);
        assert!(read(r#"{"verified":{"by":"key","other":1}}"#.into()).is_err());
    }
}
