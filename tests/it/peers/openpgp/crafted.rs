//! Keys and signatures that gpg does not create, written by another implementation with gpg's
//! private keys.

use super::Case;
use super::detached::CONTENT;
use super::keys::{Key, seconds};
use crate::support::Place;
use pgp::composed::{Deserializable, SignedPublicKey, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{
    Notation, PacketTrait, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData,
};
use pgp::ser::Serialize;
use pgp::types::{Duration, KeyDetails as _, Password, SigningKey, Timestamp};
use sha2::{Digest as _, Sha256};

fn created(ago: i64) -> Subpacket {
    let time = Timestamp::from_secs(u32::try_from(seconds(ago)).unwrap());
    Subpacket::regular(SubpacketData::SignatureCreationTime(time)).unwrap()
}

/// The parameters of a signature by `key`, made five days ago.
pub fn config(kind: SignatureType, key: &dyn SigningKey) -> SignatureConfig {
    let mut config = SignatureConfig::v4(kind, key.algorithm(), HashAlgorithm::Sha256);
    config.hashed_subpackets = vec![created(5)];
    config.unhashed_subpackets =
        vec![Subpacket::regular(SubpacketData::IssuerKeyId(key.legacy_key_id())).unwrap()];
    config
}

pub fn secret(key: &Key) -> SignedSecretKey {
    SignedSecretKey::from_bytes(&key.secret()[..]).unwrap()
}

pub fn public(key: &Key) -> SignedPublicKey {
    SignedPublicKey::from_bytes(&key.public()[..]).unwrap()
}

fn bytes(signature: &Signature) -> Vec<u8> {
    let mut bytes = Vec::new();
    signature.to_writer_with_header(&mut bytes).unwrap();
    bytes
}

/// Signs the content as `config` says.
fn sign(config: SignatureConfig, key: &dyn SigningKey) -> Vec<u8> {
    bytes(
        &config
            .sign(&Box::new(key), &Password::empty(), CONTENT)
            .unwrap(),
    )
}

pub fn cases(place: &Place, plain: &Key) -> Vec<Case> {
    let mut all = of_parts(plain);
    all.extend(of_version_3(place));
    all.extend(of_uses(place));
    all.extend(of_bindings(place, plain));
    all.extend(of_statements(place, plain));
    all
}

/// Signatures with unusual subpackets.
fn of_parts(plain: &Key) -> Vec<Case> {
    let secret = secret(plain);
    let key: &dyn SigningKey = &secret.primary_key;
    let made = |name, good, change: &dyn Fn(&mut SignatureConfig)| {
        let mut config = config(SignatureType::Binary, key);
        change(&mut config);
        Case::new(name, good, &plain.public(), &sign(config, key))
    };
    let notation = || {
        let name = "policy@example.com".into();
        let value = "strict".into();
        SubpacketData::Notation(Notation {
            readable: true,
            name,
            value,
        })
    };
    let unknown = || SubpacketData::Experimental(101, "unknown".into());
    vec![
        made("crafted", true, &|_| {}),
        made("an unknown subpacket", true, &|one| {
            one.hashed_subpackets
                .push(Subpacket::regular(unknown()).unwrap());
        }),
        made("an unknown critical subpacket", false, &|one| {
            one.hashed_subpackets
                .push(Subpacket::critical(unknown()).unwrap());
        }),
        made("a critical notation that is not signed", false, &|one| {
            one.unhashed_subpackets
                .push(Subpacket::critical(notation()).unwrap());
        }),
        made("a critical user name of the signer", false, &|one| {
            let name = SubpacketData::SignersUserID("plain@example.com".into());
            one.hashed_subpackets
                .push(Subpacket::critical(name).unwrap());
        }),
        made("without the ID of the signing key", false, &|one| {
            one.unhashed_subpackets.clear()
        }),
        made("without a creation time", false, &|one| {
            one.hashed_subpackets.clear()
        }),
    ]
}

/// Signatures of version 3, as the Open Build Service creates them (pkgs.k8s.io).
fn of_version_3(place: &Place) -> Vec<Case> {
    let key = Key::new(place, "version-3", "rsa2048", "sign", "never");
    let maker = secret(&key).primary_key;
    let of = |kind: SignatureType, content: &[u8], ago: i64| {
        let time = u32::try_from(seconds(ago)).unwrap();
        let signed = [content, &[u8::from(kind)], &time.to_be_bytes()].concat();
        let sum = Sha256::digest(signed);
        let hash = HashAlgorithm::Sha256;
        let made = maker.sign(&Password::empty(), hash, &sum).unwrap();
        let created = Timestamp::from_secs(time);
        let id = maker.legacy_key_id();
        let config = SignatureConfig::v3(kind, maker.algorithm(), hash, created, id);
        bytes(&Signature::from_config(config, [sum[0], sum[1]], made).unwrap())
    };
    let text = String::from_utf8_lossy(CONTENT).replace('\n', "\r\n");
    let case = |name, good, signature: &[u8]| Case::new(name, good, &key.public(), signature);
    vec![
        case("of version 3", true, &of(SignatureType::Binary, CONTENT, 5)),
        case(
            "of version 3, of a text",
            true,
            &of(SignatureType::Text, text.as_bytes(), 5),
        ),
        case(
            "of version 3, of other content",
            false,
            &of(SignatureType::Binary, b"other", 5),
        ),
        case(
            "of version 3, older than its key",
            false,
            &of(SignatureType::Binary, CONTENT, 200),
        ),
    ]
}

/// Keys that may not sign data.
fn of_uses(place: &Place) -> Vec<Case> {
    let certify = Key::new(place, "certify", "ed25519", "cert", "never");
    let secret_certify = secret(&certify);
    let primary: &dyn SigningKey = &secret_certify.primary_key;
    let by_primary = sign(config(SignatureType::Binary, primary), primary);
    let other = Key::new(place, "authenticate", "ed25519", "sign", "never");
    other.subkey(90, "ed25519", "auth", "never");
    let secret_other = secret(&other);
    let subkey: &dyn SigningKey = &secret_other.secret_subkeys[0].key;
    let by_subkey = sign(config(SignatureType::Binary, subkey), subkey);
    vec![
        Case::new(
            "by a key that may only certify",
            false,
            &certify.public(),
            &by_primary,
        ),
        Case::new(
            "by a subkey that may only authenticate",
            false,
            &other.public(),
            &by_subkey,
        ),
    ]
}

/// Subkeys with and without a valid binding to their primary key.
fn of_bindings(place: &Place, plain: &Key) -> Vec<Case> {
    let key = Key::new(place, "bound", "ed25519", "cert", "never");
    key.subkey(90, "ed25519", "sign", "never");
    let signed = key.sign(5, CONTENT, &[]);
    let mut without = public(&key);
    for binding in &mut without.public_subkeys[0].signatures {
        let parts = binding.config().unwrap().unhashed_subpackets();
        let back = parts
            .enumerate()
            .find(|(_, part)| matches!(part.data, SubpacketData::EmbeddedSignature(_)));
        let at = back.map(|(at, _)| at).unwrap();
        binding.unhashed_subpacket_remove(at).unwrap();
    }
    let mut grafted = public(plain);
    grafted.public_subkeys.extend(public(&key).public_subkeys);
    vec![
        Case::new("by a subkey of the key", true, &key.public(), &signed),
        Case::new(
            "by a subkey without a signature that confirms the primary key",
            false,
            &without.to_bytes().unwrap(),
            &signed,
        ),
        Case::new(
            "by a subkey of another key",
            false,
            &grafted.to_bytes().unwrap(),
            &signed,
        ),
    ]
}

/// Signatures of a key over itself, which set its lifetime or revoke it.
fn of_statements(place: &Place, plain: &Key) -> Vec<Case> {
    let signed = plain.sign(5, CONTENT, &[]);
    let secret = secret(plain);
    let state = |more: Vec<Subpacket>, kind| {
        let mut config = config(kind, &secret.primary_key);
        config.hashed_subpackets.extend(more);
        let own = secret.primary_key.public_key();
        config
            .sign_key(&secret.primary_key, &Password::empty(), own)
            .unwrap()
    };
    let life = |days: u32| {
        let life = SubpacketData::KeyExpirationTime(Duration::from_secs(days * 86400));
        Subpacket::regular(life).unwrap()
    };
    let with = |statement: Signature| {
        let mut key = public(plain);
        match statement.typ() {
            Some(SignatureType::KeyRevocation) => key.details.revocation_signatures.push(statement),
            _ => key.details.direct_signatures.push(statement),
        }
        key.to_bytes().unwrap()
    };
    let critical = || {
        let name = "policy@example.com".into();
        let value = "strict".into();
        Subpacket::critical(SubpacketData::Notation(Notation {
            readable: true,
            name,
            value,
        }))
        .unwrap()
    };
    let brief = {
        let life = SubpacketData::SignatureExpirationTime(Duration::from_secs(3600));
        Subpacket::regular(life).unwrap()
    };
    // the revocation of another key, added to this key
    let other = Key::new(place, "stranger", "ed25519", "sign", "never");
    other.revoke();
    let foreign = public(&other).details.revocation_signatures.remove(0);
    let mut nameless = public(plain);
    nameless.details.users.clear();
    let direct = SignatureType::Key;
    vec![
        Case::new(
            "a key that limits its own lifetime, which has ended",
            false,
            &with(state(vec![life(10)], direct)),
            &signed,
        ),
        Case::new(
            "a key that limits its own lifetime, which has not ended",
            true,
            &with(state(vec![life(300)], direct)),
            &signed,
        ),
        Case::new(
            "an ended lifetime in a statement with an unknown critical notation",
            true,
            &with(state(vec![life(10), critical()], direct)),
            &signed,
        ),
        Case::new(
            "an ended lifetime in a statement that has expired itself",
            true,
            &with(state(vec![life(10), brief], direct)),
            &signed,
        ),
        Case::new(
            "a key that revokes itself",
            false,
            &with(state(Vec::new(), SignatureType::KeyRevocation)),
            &signed,
        ),
        Case::new("a revocation of another key", true, &with(foreign), &signed),
        Case::new(
            "a key without a user name",
            false,
            &nameless.to_bytes().unwrap(),
            &signed,
        ),
    ]
}
