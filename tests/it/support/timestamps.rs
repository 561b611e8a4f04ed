//! A timestamp authority (RFC 3161) that signs any given time with `openssl`.

use super::sigstore::{base64, raw_sha256};
use super::{Place, run};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};

/// `TSTInfo` (RFC 3161, 2.4.2).
const TST_INFO: &str = "1.2.840.113549.1.9.16.1.4";

/// An authority whose certificates are valid from 2020 to 2040.
pub struct TimestampAuthority {
    place: Place,
    chain: [Vec<u8>; 2],
}

impl TimestampAuthority {
    /// Needs `openssl`.
    pub fn new() -> TimestampAuthority {
        let place = Place::new();
        let params = |name: &str| {
            let mut params = CertificateParams::new(vec![]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2040, 1, 1);
            params
        };
        let mut root = params("test timestamp root");
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root_key = KeyPair::generate().unwrap();
        let root_certificate = root.self_signed(&root_key).unwrap();
        let mut leaf = params("test timestamp authority");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // the extended key usage must be critical, and rcgen does not write it as critical
        let purpose = sequence(&[&[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8]]);
        let mut usage = CustomExtension::from_oid_content(&[2, 5, 29, 37], purpose);
        usage.set_criticality(true);
        leaf.custom_extensions.push(usage);
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &Issuer::new(root, root_key)).unwrap();
        place.write("tsa.pem", certificate.pem());
        place.write("tsa.key", key.serialize_pem());
        TimestampAuthority {
            place,
            chain: [certificate.der().to_vec(), root_certificate.der().to_vec()],
        }
    }

    /// The authority in a `trusted_root.json`.
    pub fn trusted(&self) -> Value {
        let certificates: Vec<Value> = self
            .chain
            .iter()
            .map(|certificate| json!({"rawBytes": base64(certificate)}))
            .collect();
        json!({
            "subject": {"organization": "test", "commonName": "test timestamp authority"},
            "uri": "https://tsa.test",
            "certChain": {"certificates": certificates},
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        })
    }

    /// The response for `signature`, in base64. `time` has the form `20260101120000Z`.
    pub fn stamp(&self, signature: &[u8], time: &str) -> String {
        let sha256 = sequence(&[&[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], &[5, 0]]);
        let imprint = sequence(&[&sha256, &tagged(4, &raw_sha256(signature))]);
        let info = sequence(&[
            &[2, 1, 1],
            &[6, 3, 0x2a, 3, 4],
            &imprint,
            &[2, 1, 1],
            &tagged(0x18, time.as_bytes()),
        ]);
        self.place.write("info.der", info);
        let sign = [
            "cms",
            "-sign",
            "-econtent_type",
            TST_INFO,
            "-in",
            "info.der",
            "-binary",
            "-nodetach",
            "-outform",
            "DER",
            "-signer",
            "tsa.pem",
            "-inkey",
            "tsa.key",
            "-cades",
            "-md",
            "sha256",
            "-nosmimecap",
            "-out",
            "token.der",
        ];
        run(self
            .place
            .clean("openssl")
            .args(sign)
            .current_dir(self.place.dir()));
        let token = std::fs::read(self.place.path("token.der")).unwrap();
        base64(sequence(&[&sequence(&[&[2, 1, 0]]), &token]))
    }
}

/// Adds a timestamp to a bundle.
pub fn add_timestamp(bundle: &mut Value, timestamp: &str) {
    bundle["verificationMaterial"]["timestampVerificationData"] =
        json!({"rfc3161Timestamps": [{"signedTimestamp": timestamp}]});
}

/// A DER value.
pub fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut value = vec![tag];
    match content.len() {
        length @ ..128 => value.push(u8::try_from(length).unwrap()),
        length => {
            let bytes = length.to_be_bytes();
            let bytes: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
            value.push(0x80 | u8::try_from(bytes.len()).unwrap());
            value.extend(bytes);
        }
    }
    value.extend_from_slice(content);
    value
}

/// A DER sequence of DER values.
pub fn sequence(values: &[&[u8]]) -> Vec<u8> {
    tagged(0x30, &values.concat())
}
