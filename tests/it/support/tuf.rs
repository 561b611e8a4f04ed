//! A TUF repository (theupdateframework.io), like the one in which Sigstore publishes its trust
//! root.

use super::Place;
use super::images::{hex, sha256_hex};
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData, SigningKey};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A repository in the folder `www/tuf`. One key signs all its metadata.
pub struct TufRepository {
    key: KeyPair,
    root_version: u64,
    version: u64,
}

impl TufRepository {
    pub fn new() -> TufRepository {
        TufRepository {
            key: KeyPair::generate_for(&PKCS_ED25519).unwrap(),
            root_version: 0,
            version: 0,
        }
    }

    /// Publishes `trusted_root`, with metadata that is valid until this day.
    pub fn publish(&mut self, place: &Place, trusted_root: &str, until: &str) {
        self.version += 1;
        let version = self.version;
        let digest = sha256_hex(trusted_root.as_bytes());
        place.write(
            &format!("www/tuf/targets/{digest}.trusted_root.json"),
            trusted_root,
        );
        let target = json!({"hashes": {"sha256": digest}, "length": trusted_root.len()});
        let of_version = json!({"version": version});
        for (name, kind, members) in [
            (
                format!("{version}.targets"),
                "targets",
                json!({"targets": {"trusted_root.json": target}}),
            ),
            (
                format!("{version}.snapshot"),
                "snapshot",
                json!({"meta": {"targets.json": of_version}}),
            ),
            (
                "timestamp".to_owned(),
                "timestamp",
                json!({"meta": {"snapshot.json": of_version}}),
            ),
        ] {
            let signed = metadata(kind, version, until, members);
            place.write(&format!("www/tuf/{name}.json"), sign(&signed, &[&self.key]));
        }
    }

    /// Publishes a root with a new key, signed by the old and the new key. Returns the root.
    pub fn rotate(&mut self, place: &Place) -> String {
        let new = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let old = std::mem::replace(&mut self.key, new);
        self.root_version += 1;
        let keys = json!({key_id(&self.key): public_key(&self.key)});
        let role = json!({"keyids": [key_id(&self.key)], "threshold": 1});
        let members = json!({
            "consistent_snapshot": true,
            "keys": keys,
            "roles": {"root": role, "snapshot": role, "targets": role, "timestamp": role},
        });
        let signed = metadata("root", self.root_version, "2040-01-01", members);
        let root = sign(&signed, &[&old, &self.key]);
        place.write(&format!("www/tuf/{}.root.json", self.root_version), &root);
        root
    }
}

fn sign(signed: &Value, keys: &[&KeyPair]) -> String {
    let text = canonical(signed);
    let signatures: Vec<Value> = keys
        .iter()
        .map(|key| {
            let signature = key.sign(text.as_bytes()).unwrap();
            json!({"keyid": key_id(key), "sig": hex(&signature)})
        })
        .collect();
    json!({"signatures": signatures, "signed": signed}).to_string()
}

fn metadata(kind: &str, version: u64, until: &str, members: Value) -> Value {
    let mut signed = json!({
        "_type": kind, "spec_version": "1.0.31", "version": version,
        "expires": format!("{until}T00:00:00Z"),
    });
    let Value::Object(members) = members else {
        panic!("not an object");
    };
    signed.as_object_mut().unwrap().extend(members);
    signed
}

fn public_key(key: &KeyPair) -> Value {
    json!({
        "keytype": "ed25519", "scheme": "ed25519",
        "keyval": {"public": hex(key.der_bytes())},
    })
}

fn key_id(key: &KeyPair) -> String {
    sha256_hex(canonical(&public_key(key)).as_bytes())
}

/// The text that signatures cover: JSON with sorted members.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let members: BTreeMap<&String, Value> = members
                    .iter()
                    .map(|(key, value)| (key, sorted(value)))
                    .collect();
                let members: Map<String, Value> = members
                    .into_iter()
                    .map(|(key, value)| (key.clone(), value))
                    .collect();
                Value::Object(members)
            }
            Value::Array(values) => values.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}
