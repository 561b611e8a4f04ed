//! Signatures of images in the formats of cosign: with keys, or with certificates and log entries
//! of a stand-in for Sigstore's services.

use super::images::{OCI_EMPTY, OCI_MANIFEST, digest, hex, sha256, sha256_hex};
use super::signed::{SIMPLE, send_list, tag_of};
use super::{Images, Place, http};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SigningKey, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
pub const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Noon of 1 January 2026, when everything is signed.
pub const SIGNED_AT: u64 = 1_767_268_800;

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub fn pem(label: &str, der: &[u8]) -> String {
    let text = base64(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// The SHA-256 of `bytes`.
pub fn raw_sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// The payload that cosign signs for `image` (simple signing).
pub fn simple_payload(image: &Value) -> Vec<u8> {
    let payload = json!({
        "critical": {
            "identity": {"docker-reference": "registry.test/app"},
            "image": {"docker-manifest-digest": image["digest"]},
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    payload.to_string().into_bytes()
}

/// An in-toto statement about `image`.
pub fn statement(image: &Value, kind: &str, predicate: &Value) -> Vec<u8> {
    let hex = digest(image).split_once(':').unwrap().1;
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": hex}}],
        "predicateType": kind,
        "predicate": predicate,
    });
    statement.to_string().into_bytes()
}

/// cosign's own statement about `image`.
pub fn sign_statement(image: &Value) -> Vec<u8> {
    statement(image, "https://sigstore.dev/cosign/sign/v1", &json!({}))
}

pub fn pae(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {IN_TOTO} {} ", IN_TOTO.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// A signer of images: a key, or a key with a certificate.
pub struct ImageSigner {
    pub(super) key: KeyPair,
    /// The certificate in DER.
    pub(super) certificate: Option<Vec<u8>>,
}

impl ImageSigner {
    /// A new key without a certificate.
    pub fn with_key() -> ImageSigner {
        ImageSigner {
            key: KeyPair::generate().unwrap(),
            certificate: None,
        }
    }

    pub fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &self.key.subject_public_key_info())
    }

    /// The private key.
    pub fn private_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The SHA-256 of the public key.
    pub fn fingerprint(&self) -> String {
        sha256(&self.key.subject_public_key_info())
    }

    /// The verification material of a bundle: the certificate or an empty key hint, and the log
    /// entry.
    pub(super) fn material(&self, entry: Option<Value>) -> Value {
        let mut material = match &self.certificate {
            Some(certificate) => json!({"certificate": {"rawBytes": base64(certificate)}}),
            None => json!({"publicKey": {"hint": ""}}),
        };
        material["tlogEntries"] = entry.into_iter().collect();
        material
    }

    /// The certificate or the public key in PEM form, which a log records as the verifier.
    pub(super) fn verifier(&self) -> String {
        match &self.certificate {
            Some(certificate) => pem("CERTIFICATE", certificate),
            None => self.public_pem(),
        }
    }
}

/// A certificate authority and a transparency log.
pub struct Sigstore {
    pub(super) issuer: Issuer<'static, KeyPair>,
    pub(super) authority: Vec<u8>,
    pub(super) log: KeyPair,
}

/// How a log entry is altered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tampering {
    None,
    /// The time in the entry differs from the one that the log signed.
    Time,
    /// No entry at all.
    Missing,
}

impl Sigstore {
    pub fn new() -> Sigstore {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "test fulcio");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().der().to_vec();
        Sigstore {
            issuer: Issuer::new(params, key),
            authority,
            log: KeyPair::generate().unwrap(),
        }
    }

    /// A signer whose certificate for the URI `identity` is valid on 1 January 2026.
    pub fn signer(&self, issuer: &str, identity: &str) -> ImageSigner {
        self.signer_until(issuer, identity, 2)
    }

    /// Like `signer`, with a certificate that expires on this day of January 2026.
    pub fn signer_until(&self, issuer: &str, identity: &str, day: u8) -> ImageSigner {
        self.certified(certificate_params(issuer, identity, day))
    }

    /// A signer with a new key, and a certificate of these parameters.
    pub fn certified(&self, params: CertificateParams) -> ImageSigner {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ImageSigner {
            key,
            certificate: Some(certificate.der().to_vec()),
        }
    }

    /// The `trusted_root.json` with the certificate authority and the log.
    pub fn trusted_root(&self) -> String {
        let valid = json!({"start": "2020-01-01T00:00:00Z"});
        let log = self.log.subject_public_key_info();
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [{
                "baseUrl": "https://rekor.test",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": base64(&log), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": valid,
                },
                "logId": {"keyId": base64(raw_sha256(&log))},
            }],
            "certificateAuthorities": [{
                "subject": {"organization": "test", "commonName": "test fulcio"},
                "uri": "https://fulcio.test",
                "certChain": {"certificates": [{"rawBytes": base64(&self.authority)}]},
                "validFor": valid,
            }],
            "ctlogs": [],
            "timestampAuthorities": [],
        })
        .to_string()
    }

    pub(super) fn log_id(&self) -> Vec<u8> {
        raw_sha256(&self.log.subject_public_key_info())
    }

    /// The promise of the log for an entry.
    pub(super) fn promise(&self, body: &str) -> String {
        let id = hex(&self.log_id());
        let signed = format!(
            r#"{{"body":"{body}","integratedTime":{SIGNED_AT},"logID":"{id}","logIndex":0}}"#
        );
        base64(self.log.sign(signed.as_bytes()).unwrap())
    }

    /// The layer of a `.sig` tag: cosign's payload, with certificate and log entry in annotations.
    pub fn simple_layer(
        &self,
        images: &Images,
        signer: &ImageSigner,
        payload: &[u8],
        tampering: Tampering,
    ) -> Value {
        let signature = signer.key.sign(payload).unwrap();
        let mut layer = images.blob(SIMPLE, payload);
        layer["annotations"] = json!({"dev.cosignproject.cosign/signature": base64(&signature)});
        if let Some(certificate) = &signer.certificate {
            layer["annotations"]["dev.sigstore.cosign/certificate"] =
                pem("CERTIFICATE", certificate).into();
            layer["annotations"]["dev.sigstore.cosign/chain"] =
                pem("CERTIFICATE", &self.authority).into();
        }
        if tampering == Tampering::Missing {
            return layer;
        }
        let body = base64(hashedrekord(payload, &base64(&signature), signer));
        let id = hex(&self.log_id());
        let time = SIGNED_AT - u64::from(tampering == Tampering::Time);
        let entry = json!({
            "SignedEntryTimestamp": self.promise(&body),
            "Payload": {"body": body, "integratedTime": time, "logIndex": 0, "logID": id},
        });
        layer["annotations"]["dev.sigstore.cosign/bundle"] = entry.to_string().into();
        layer
    }

    /// A Sigstore bundle with a statement, in version 0.3.
    pub fn bundle(&self, signer: &ImageSigner, statement: &[u8], tampering: Tampering) -> Value {
        let signature = base64(signer.key.sign(&pae(statement)).unwrap());
        let envelope = json!({
            "payload": base64(statement),
            "payloadType": IN_TOTO,
            "signatures": [{"sig": signature}],
        });
        let body = json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
            "envelopeHash": {"algorithm": "sha256", "value": sha256_hex(envelope.to_string().as_bytes())},
            "payloadHash": {"algorithm": "sha256", "value": sha256_hex(statement)},
            "signatures": [{"signature": signature, "verifier": base64(signer.verifier())}],
        }})
        .to_string();
        let entry = self.log_entry("dsse", &body, tampering);
        let entry = Some(entry).filter(|_| tampering != Tampering::Missing);
        let material = signer.material(entry);
        json!({"mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": envelope})
    }

    /// An entry of the log, with its proof and promise.
    pub(super) fn log_entry(&self, kind: &str, body: &str, tampering: Tampering) -> Value {
        let root = raw_sha256(&[&[0], body.as_bytes()].concat());
        let note = format!("rekor.test - 1\n1\n{}\n", base64(&root));
        let checkpoint_signature = self.log.sign(note.as_bytes()).unwrap();
        let signed = [&self.log_id()[..4], &checkpoint_signature].concat();
        let checkpoint = format!("{note}\n\u{2014} rekor.test {}\n", base64(signed));
        let time = SIGNED_AT - u64::from(tampering == Tampering::Time);
        json!({
            "logIndex": "0",
            "logId": {"keyId": base64(self.log_id())},
            "kindVersion": {"kind": kind, "version": "0.0.1"},
            "integratedTime": time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": self.promise(&base64(body))},
            "inclusionProof": {
                "logIndex": "0", "rootHash": base64(&root), "treeSize": "1", "hashes": [],
                "checkpoint": {"envelope": checkpoint},
            },
            "canonicalizedBody": base64(body),
        })
    }
}

/// The parameters of a certificate for the URI `identity`, as Fulcio issues it. The certificate
/// expires on this day of January 2026.
pub fn certificate_params(issuer: &str, identity: &str, day: u8) -> CertificateParams {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.subject_alt_names = vec![SanType::URI(identity.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.not_before = date_time_ymd(2025, 12, 31);
    params.not_after = date_time_ymd(2026, 1, day);
    // the issuer as Fulcio writes it, in the old and in the new form
    let raw = issuer.as_bytes().to_vec();
    let mut utf8 = vec![0x0c, u8::try_from(issuer.len()).unwrap()];
    utf8.extend_from_slice(&raw);
    for (number, value) in [(1, raw), (8, utf8)] {
        let oid = [1, 3, 6, 1, 4, 1, 57264, 1, number];
        let extension = CustomExtension::from_oid_content(&oid, value);
        params.custom_extensions.push(extension);
    }
    params
}

/// The body of a log entry for a signature of `content`.
pub(super) fn hashedrekord(content: &[u8], signature: &str, signer: &ImageSigner) -> String {
    let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": {"hash": {"algorithm": "sha256", "value": sha256_hex(content)}},
        "signature": {
            "content": signature,
            "publicKey": {"content": base64(signer.verifier())},
        },
    }});
    body.to_string()
}

/// A layer with a DSSE envelope, as in a `.att` tag, without a certificate.
pub fn envelope_layer(images: &Images, signer: &ImageSigner, statement: &[u8]) -> Value {
    let signature = base64(signer.key.sign(&pae(statement)).unwrap());
    let envelope = json!({
        "payload": base64(statement),
        "payloadType": IN_TOTO,
        "signatures": [{"keyid": "", "sig": signature}],
    });
    let mut layer = images.blob(DSSE, envelope.to_string().as_bytes());
    layer["annotations"] = json!({"dev.cosignproject.cosign/signature": ""});
    layer
}

/// Uploads `layer` as the `.sig` or `.att` tag of `image`.
pub fn push_tagged(
    images: &Images,
    address: &str,
    repository: &str,
    image: &Value,
    layer: &Value,
    ending: &str,
) {
    let config = images.blob("application/vnd.oci.image.config.v1+json", b"{}");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
    });
    let manifest = images.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
    images.push(address, repository, &tag_of(image, ending), &manifest);
}

/// Uploads `bundle` as a referrer of `image`, listed by the referrers tag.
pub fn push_bundle(
    images: &Images,
    address: &str,
    repository: &str,
    image: &Value,
    bundle: &Value,
) {
    push_bundles(
        images,
        address,
        repository,
        image,
        std::slice::from_ref(bundle),
    );
}

/// Uploads `bundles` as the referrers of `image`, listed by the referrers tag.
pub fn push_bundles(
    images: &Images,
    address: &str,
    repository: &str,
    image: &Value,
    bundles: &[Value],
) {
    let mut subject = image.clone();
    subject
        .as_object_mut()
        .unwrap()
        .retain(|key, _| key != "platform");
    let push = |bundle: &Value| {
        let layer = images.blob(BUNDLE, bundle.to_string().as_bytes());
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": BUNDLE,
            "config": images.blob(OCI_EMPTY, b"{}"), "layers": [layer], "subject": subject,
        });
        let mut manifest = images.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
        images.push(address, repository, digest(&manifest), &manifest);
        manifest["artifactType"] = BUNDLE.into();
        manifest
    };
    let manifests: Vec<Value> = bundles.iter().map(push).collect();
    let manifests: Vec<&Value> = manifests.iter().collect();
    send_list(images, address, repository, image, &manifests);
}

/// Runs `landfall lock` for `manifest` with the lock `NAME.lock`. Returns the exit code, the report
/// and the lock, which is empty if none was written.
pub fn lock(place: &Place, name: &str, manifest: &str) -> (i32, Value, String) {
    let file = format!("{name}.yaml");
    let lock = format!("{name}.lock");
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    place.write(&file, format!("{head}{manifest}"));
    let run = place
        .command()
        .args(["lock", "-f", &file, "--lock", &lock])
        .args(["--output", "json", "--progress", "none"])
        .output()
        .unwrap();
    let report = serde_json::from_slice(&run.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&run.stderr));
    });
    let written = std::fs::read_to_string(place.path(&lock)).unwrap_or_default();
    (run.status.code().unwrap(), report, written)
}

/// Uploads an image of one platform as `REPOSITORY:v1`.
pub fn push_image(images: &Images, address: &str, repository: &str) -> Value {
    let layer = images.layer(&[("name", repository.as_bytes())]);
    let image = images.image("linux/amd64", &[layer]);
    images.push(address, repository, "v1", &image);
    // the registry must serve the image before the tests request referrers
    assert_eq!(http::manifest(address, repository, "v1").status, 200);
    image
}
