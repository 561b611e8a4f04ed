//! Keys with a designated revoker: another key that may revoke them.

use super::Case;
use super::crafted::{config, public, secret};
use super::detached::CONTENT;
use super::keys::Key;
use crate::support::Place;
use pgp::packet::{Signature, SignatureType, Subpacket, SubpacketData};
use pgp::ser::Serialize;
use pgp::types::{Duration, KeyDetails, Password, RevocationKey, RevocationKeyClass, Tag};

/// The reason why landfall refuses some of the cases although gpgv accepts them.
const UNCHECKED: &str = "a revocation whose issuer is a revoker counts without being verified";

pub fn cases(place: &Place) -> Vec<Case> {
    let revoker = Key::new(place, "revoker", "ed25519", "sign", "never");
    let stranger = Key::new(place, "not-a-revoker", "ed25519", "sign", "never");
    let mut all = by_gpg(place, &revoker, &stranger);
    all.extend(crafted(place, &revoker, &stranger));
    all
}

/// Cases in which gpg revokes a key with the key of its revoker.
fn by_gpg(place: &Place, revoker: &Key, stranger: &Key) -> Vec<Case> {
    let key = Key::new(place, "with-revoker", "ed25519", "sign", "never");
    let signed = key.sign(90, CONTENT, &[]);
    key.add_revoker(80, revoker);
    let whole = key.public();
    let revoked = revoker.revoke_for(10, &key);
    let case = |name, good, keys: &[&[u8]]| Case::new(name, good, &keys.concat(), &signed);
    vec![
        case(
            "by a key that names a revoker",
            true,
            &[&whole, &revoker.public()],
        ),
        case(
            "revoked by its revoker",
            false,
            &[&revoked, &revoker.public()],
        ),
        case(
            "revoked by its revoker, whose key precedes it",
            false,
            &[&revoker.public(), &revoked],
        ),
        case(
            "revoked by its revoker, whose key is absent",
            true,
            &[&revoked],
        )
        .stricter(UNCHECKED),
        case(
            "revoked by its revoker, whose key is absent, with another key",
            true,
            &[&revoked, &stranger.public()],
        )
        .stricter(UNCHECKED),
    ]
}

/// Cases that gpg itself does not write: unusual signatures that name a revoker, and unusual
/// revocations.
fn crafted(place: &Place, revoker: &Key, stranger: &Key) -> Vec<Case> {
    let key = Key::new(place, "crafted-revoker", "ed25519", "sign", "never");
    let signed = key.sign(5, CONTENT, &[]);
    let owner = secret(&key).primary_key;
    let names = |class, named: &Key| {
        let print = public(named).fingerprint();
        let name = RevocationKey::new(class, public(named).algorithm(), print.as_bytes());
        Subpacket::regular(SubpacketData::RevocationKey(name)).unwrap()
    };
    let named = |named: &Key| names(RevocationKeyClass::Default, named);
    let state = |kind, parts: Vec<Subpacket>| {
        let mut config = config(kind, &owner);
        config.hashed_subpackets.extend(parts);
        config
    };
    let direct = |parts| {
        let config = state(SignatureType::Key, parts);
        config
            .sign_key(&owner, &Password::empty(), owner.public_key())
            .unwrap()
    };
    // signatures with only the ID of the signing key, as older releases of gpg wrote them
    let revocation = |maker: &Key, of: &Key| {
        let maker = secret(maker).primary_key;
        let config = config(SignatureType::KeyRevocation, &maker);
        config
            .sign_key(&maker, &Password::empty(), &public(of).primary_key)
            .unwrap()
    };
    let case = |name, good, directs: &[Signature], revocation: Signature, more: &Key| {
        let mut key = public(&key);
        key.details
            .direct_signatures
            .extend(directs.iter().cloned());
        key.details.revocation_signatures.push(revocation);
        let keys = [key.to_bytes().unwrap(), more.public()].concat();
        Case::new(name, good, &keys, &signed)
    };
    let brief = || {
        let life = SubpacketData::SignatureExpirationTime(Duration::from_secs(3600));
        Subpacket::regular(life).unwrap()
    };
    let unknown =
        || Subpacket::critical(SubpacketData::Experimental(101, "unknown".into())).unwrap();
    let by_revoker = || revocation(revoker, &key);
    // the revoker is named in the self-signature of a user name
    let mut in_name = public(&key);
    let user = in_name.details.users.remove(0);
    let statement = state(SignatureType::CertPositive, vec![named(revoker)])
        .sign_certification(
            &owner,
            owner.public_key(),
            &Password::empty(),
            Tag::UserId,
            &user.id,
        )
        .unwrap();
    in_name.details.users.push(user.id.into_signed(statement));
    in_name.details.revocation_signatures.push(by_revoker());
    let in_name = [in_name.to_bytes().unwrap(), revoker.public()].concat();
    vec![
        case(
            "revoked by a revoker in a direct signature",
            false,
            &[direct(vec![named(revoker)])],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by its second revoker",
            false,
            &[direct(vec![named(stranger), named(revoker)])],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by the revoker of an older direct signature",
            false,
            &[direct(vec![named(revoker)]), direct(vec![named(stranger)])],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by a sensitive revoker",
            false,
            &[direct(vec![names(RevocationKeyClass::Sensitive, revoker)])],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by the revoker of an expired direct signature",
            false,
            &[direct(vec![named(revoker), brief()])],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by the revoker of a direct signature with an unknown critical subpacket",
            true,
            &[direct(vec![named(revoker), unknown()])],
            by_revoker(),
            revoker,
        ),
        Case::new(
            "revoked by the revoker that the self-signature of a user name names",
            true,
            &in_name,
            &signed,
        ),
        case(
            "revoked by a key that it does not name",
            true,
            &[],
            by_revoker(),
            revoker,
        ),
        case(
            "revoked by another key than its revoker",
            true,
            &[direct(vec![named(revoker)])],
            revocation(stranger, &key),
            stranger,
        ),
        case(
            "with the revocation of another key by its revoker",
            true,
            &[direct(vec![named(revoker)])],
            revocation(revoker, stranger),
            revoker,
        )
        .stricter(UNCHECKED),
    ]
}
