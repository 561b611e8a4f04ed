//! Rules for OpenPGP keys and signatures: whether a key may sign, and whether a signature is valid.
//!
//! The rules are those of gpgv (`merge_selfsigs` and `check_signature` of `GnuPG` 2.2), so that
//! landfall accepts what apt accepts.

use crate::Failure;
use jiff::Timestamp;
use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{PublicKey, Signature, SignatureConfig, SignatureType, SubpacketData};
use pgp::ser::Serialize as _;
use pgp::types::{KeyDetails, KeyVersion, PublicParams, Tag};
use std::io::Read;

/// The time at which a signature must be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureTime {
    /// The current time, like gpgv: for content that is fetched.
    Now,
    /// The time of the signature: for content that was verified when it was locked, so that a
    /// bundle stays valid when the key expires.
    Made,
}

/// A key of a certificate: its primary key, or one of its subkeys.
pub(super) struct SigningKey<'k> {
    pub(super) certificate: &'k SignedPublicKey,
    subkey: Option<&'k SignedPublicSubKey>,
}

/// The status of a key according to the newest statements of its owner: signatures about the key,
/// made by the key itself or by its primary key.
struct KeyStatus {
    revoked: bool,
    /// The expiry date in seconds since 1970.
    expires: Option<u64>,
    /// Why the key is not usable: it has no valid self-signature.
    not_known: Option<&'static str>,
    /// Why the key may not sign content.
    not_for_signing: Option<&'static str>,
}

impl<'k> SigningKey<'k> {
    /// The key `subkey` of `certificate`, or the primary key if `subkey` is `None`.
    pub(super) fn new(
        certificate: &'k SignedPublicKey,
        subkey: Option<&'k SignedPublicSubKey>,
    ) -> Self {
        SigningKey {
            certificate,
            subkey,
        }
    }

    /// Returns the key of `certificate` that `signature` names as its issuer.
    pub(super) fn find(
        certificate: &'k SignedPublicKey,
        signature: &Signature,
    ) -> Option<SigningKey<'k>> {
        let primary = &certificate.primary_key;
        // the fingerprints of keys of these versions can be forged, and gpg does not read the keys
        if matches!(primary.version(), KeyVersion::V2 | KeyVersion::V3) {
            return None;
        }
        if names(signature, primary) {
            return Some(SigningKey::new(certificate, None));
        }
        let subkey = certificate
            .public_subkeys
            .iter()
            .find(|subkey| names(signature, &subkey.key))?;
        Some(SigningKey::new(certificate, Some(subkey)))
    }

    /// Whether the key made `signature` for `content`.
    pub(super) fn made(&self, signature: &Signature, content: impl Read) -> bool {
        let verified = match self.subkey {
            Some(subkey) => signature.verify(&subkey.key, content),
            None => signature.verify(&self.certificate.primary_key, content),
        };
        verified.is_ok()
    }

    /// Fails unless the key may sign content at `now`, in seconds since 1970.
    pub(super) fn check(&self, now: u64) -> Result<(), Failure> {
        let key = fingerprint(self.certificate);
        let primary = primary_status(self.certificate, now);
        let subkey = self
            .subkey
            .map(|subkey| subkey_status(&self.certificate.primary_key, subkey, now));
        let not_for_signing = subkey.as_ref().unwrap_or(&primary).not_for_signing;
        if let Some(why) = primary.not_known.or(not_for_signing) {
            return Err(Failure::usage(format!(
                "the key {key} that signed it is not a signing key: {why}"
            )));
        }
        if primary.revoked || subkey.as_ref().is_some_and(|subkey| subkey.revoked) {
            return Err(Failure::usage(format!(
                "the key {key} that signed it is revoked"
            )));
        }
        match [primary.expires, subkey.and_then(|subkey| subkey.expires)]
            .into_iter()
            .flatten()
            .min()
        {
            Some(end) if end <= now => Err(Failure::usage(format!(
                "the key {key} that signed it expired on {}; get the key with its new expiry date \
                 from its owner",
                time_of(end)
            ))),
            _ => Ok(()),
        }
    }

    fn created(&self) -> u64 {
        self.subkey
            .map_or_else(
                || self.certificate.primary_key.created_at().as_secs(),
                |subkey| subkey.key.created_at().as_secs(),
            )
            .into()
    }
}

/// Refuses a signature that proves nothing about any content: a weak one, or one of a type that is
/// not for content.
pub(super) fn check_form(key: &SigningKey<'_>, signature: &Signature) -> Result<(), Failure> {
    let name = fingerprint(key.certificate);
    match (signature.hash_alg(), signature.typ()) {
        (None | Some(HashAlgorithm::Md5 | HashAlgorithm::Sha1 | HashAlgorithm::Ripemd160), _) => {
            Err(Failure::usage(format!(
                "its signature by {name} uses MD5, SHA-1 or RIPEMD-160, which can be forged"
            )))
        }
        (_, Some(SignatureType::Binary | SignatureType::Text)) => Ok(()),
        _ => Err(Failure::usage(format!(
            "its signature by {name} is not for a file or a text"
        ))),
    }
}

/// Why a signature that a key made is not valid. Decides whether further signatures count.
pub(super) enum SignerFault {
    /// The signature has a critical part with an unknown meaning.
    Critical(Failure),
    /// The signature itself has expired.
    Expired(Failure),
    Other(Failure),
}

/// Refuses a signature that `key` made if the key or the signature is not valid at `time`.
pub(super) fn check_signer(
    key: &SigningKey<'_>,
    signature: &Signature,
    time: SignatureTime,
) -> Result<(), SignerFault> {
    let name = fingerprint(key.certificate);
    if let Some(part) = unsupported_critical(signature) {
        return Err(SignerFault::Critical(Failure::usage(format!(
            "its signature by {name} has a critical part that is not supported: {part}"
        ))));
    }
    let current = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
    let made = signature
        .created()
        .map_or(0, |created| created.as_secs().into());
    let now = match time {
        SignatureTime::Now => current,
        SignatureTime::Made => made,
    };
    // the clock of this machine is used only for `Now`: on a disconnected machine it may be wrong
    if key.created() > made || time == SignatureTime::Now && key.created() > current {
        return Err(SignerFault::Other(Failure::usage(format!(
            "the key {name} was created on {}, after its signature or in the future; check the \
             clock of this machine",
            time_of(key.created())
        ))));
    }
    key.check(now).map_err(SignerFault::Other)?;
    match expiry_of(signature) {
        Some(end) if end <= now => Err(SignerFault::Expired(Failure::usage(format!(
            "its signature by {name} expired on {}",
            time_of(end)
        )))),
        _ => Ok(()),
    }
}

/// Whether `signature` names `key` as its issuer.
pub(super) fn names(signature: &Signature, key: &impl KeyDetails) -> bool {
    signature.issuer_key_id().contains(&&key.legacy_key_id())
        || signature.issuer_fingerprint().contains(&&key.fingerprint())
}

fn time_of(seconds: u64) -> Timestamp {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or_default()
}

/// The time at which `signature` expires, in seconds since 1970.
fn expiry_of(signature: &Signature) -> Option<u64> {
    let life = signature
        .signature_expiration_time()
        .filter(|life| life.as_secs() > 0)?;
    Some(u64::from(signature.created()?.as_secs()) + u64::from(life.as_secs()))
}

/// The first critical subpacket of `signature` that landfall does not support. Such a subpacket
/// makes the signature invalid (RFC 9580, section 5.2.3.7). landfall supports no notations.
fn unsupported_critical(signature: &Signature) -> Option<String> {
    use SubpacketData as Data;
    let config = signature.config()?;
    let mut all = config
        .hashed_subpackets()
        .chain(config.unhashed_subpackets());
    let part = all.find(|part| {
        let has_effect = !matches!(
            part.data,
            Data::Notation(_)
                | Data::KeyServerPreferences(_)
                | Data::SignersUserID(_)
                | Data::SignatureTarget(..)
                | Data::IntendedRecipientFingerprint(_)
                | Data::Experimental(..)
                | Data::Other(..)
        );
        part.is_critical && !has_effect
    })?;
    Some(match &part.data {
        Data::Notation(notation) => {
            format!(
                "the notation {}",
                String::from_utf8_lossy(&notation.name).escape_default()
            )
        }
        _ => format!("{:?}", part.typ()),
    })
}

/// Whether a statement of the owner is valid at `now`.
fn is_valid(statement: &Signature, now: u64) -> bool {
    is_acceptable(statement) && expiry_of(statement).is_none_or(|expiry| expiry > now)
}

/// Whether a statement of the owner is valid, regardless of its expiry.
fn is_acceptable(statement: &Signature) -> bool {
    // like gpg, accept SHA-1 here: both contents of a collision would be the owner's
    let is_weak = matches!(statement.hash_alg(), None | Some(HashAlgorithm::Md5));
    !is_weak && unsupported_critical(statement).is_none()
}

/// The fingerprints of the designated revokers that `statement` names.
fn revokers(statement: &Signature) -> impl Iterator<Item = &[u8]> {
    let parts = statement
        .config()
        .into_iter()
        .flat_map(SignatureConfig::hashed_subpackets);
    parts.filter_map(|part| match &part.data {
        SubpacketData::RevocationKey(revoker) => Some(&revoker.fingerprint[..]),
        _ => None,
    })
}

/// Whether `signature` names the key with this version 4 fingerprint as its issuer. As in gpg, the
/// key ID, which is the end of the fingerprint, is enough: older signatures contain only the key
/// ID.
fn names_fingerprint(signature: &Signature, fingerprint: &[u8]) -> bool {
    signature
        .issuer_key_id()
        .iter()
        .any(|id| fingerprint.ends_with(id.as_ref()))
        || signature
            .issuer_fingerprint()
            .iter()
            .any(|maker| maker.as_bytes() == fingerprint)
}

/// The newest of `statements`, or the last of the newest if several have the same second.
fn newest<'s>(statements: impl Iterator<Item = &'s Signature>) -> Option<&'s Signature> {
    statements.max_by_key(|statement| statement.created().map(pgp::types::Timestamp::as_secs))
}

/// The lifetime that `statement` gives the key, in seconds.
fn lifetime(statement: &Signature) -> Option<u64> {
    statement
        .key_expiration_time()
        .map(|life| life.as_secs().into())
        .filter(|life| *life > 0)
}

/// Whether `statement` permits the key to sign content, or `None` if it does not limit the use of
/// the key.
fn may_sign(statement: &Signature) -> Option<bool> {
    let mut parts = statement.config()?.hashed_subpackets();
    parts.find_map(|part| match &part.data {
        SubpacketData::KeyFlags(flags) => Some(flags.sign()),
        _ => None,
    })
}

/// The status of the primary key. A direct statement overrides the statements about user IDs.
fn primary_status(certificate: &SignedPublicKey, now: u64) -> KeyStatus {
    let key = &certificate.primary_key;
    let details = &certificate.details;
    let mut direct: Vec<&Signature> = details
        .direct_signatures
        .iter()
        .filter(|one| {
            one.typ() == Some(SignatureType::Key)
                && is_acceptable(one)
                && one.verify_key(key).is_ok()
        })
        .collect();
    // a designated revoker may revoke the key even after the statement that names the revoker has
    // expired; its revocation is accepted unverified, because its key need not be in this file
    let revokers: Vec<&[u8]> = direct.iter().flat_map(|one| revokers(one)).collect();
    let revoked = details.revocation_signatures.iter().any(|revocation| {
        revocation.verify_key(key).is_ok()
            || revokers
                .iter()
                .any(|revoker| names_fingerprint(revocation, revoker))
    });
    direct.retain(|one| is_valid(one, now));
    let is_own = |one: &&Signature| names(one, key) && is_valid(one, now);
    let users = details.users.iter().map(|user| {
        let own = user.signatures.iter().filter(is_own);
        newest(own.filter(|one| one.verify_certification(key, Tag::UserId, &user.id).is_ok()))
    });
    let attributes = details.user_attributes.iter().map(|user| {
        let own = user.signatures.iter().filter(is_own);
        newest(own.filter(|one| {
            let checked = one.verify_certification(key, Tag::UserAttribute, &user.attr);
            checked.is_ok()
        }))
    });
    let mut users: Vec<&Signature> = users.chain(attributes).flatten().collect();
    let is_unknown = users.is_empty() && direct.is_empty();
    users.retain(|one| one.typ() != Some(SignatureType::CertRevocation));
    let direct = newest(direct.into_iter());
    let signs = direct.and_then(may_sign).or_else(|| {
        let mut statements = users.iter().copied();
        newest(statements.by_ref().filter(|one| may_sign(one).is_some())).and_then(may_sign)
    });
    let lifetime = direct.and_then(lifetime).or_else(|| {
        let statements = users.iter().copied();
        newest(statements.filter(|one| lifetime(one).is_some())).and_then(lifetime)
    });
    KeyStatus {
        revoked,
        expires: lifetime.map(|seconds| u64::from(key.created_at().as_secs()) + seconds),
        not_known: is_unknown
            .then_some("it has no valid self-signature, which every key with a user name has"),
        not_for_signing: (signs == Some(false)).then_some("its owner made it for other uses"),
    }
}

/// The status of `subkey`, from its newest valid binding to `primary`. A revocation counts
/// regardless of its date.
fn subkey_status(primary: &PublicKey, subkey: &SignedPublicSubKey, now: u64) -> KeyStatus {
    let key = &subkey.key;
    let is_bound = |one: &&Signature| one.verify_subkey_binding(primary, key).is_ok();
    let own: Vec<&Signature> = subkey.signatures.iter().filter(is_bound).collect();
    let bindings = own.iter().copied();
    let binding = newest(
        bindings
            .filter(|one| one.typ() == Some(SignatureType::SubkeyBinding) && is_valid(one, now)),
    );
    // without a signature by the subkey, an owner could claim the subkey of another owner
    let is_mutual = |binding: &Signature| {
        binding.embedded_signature().is_some_and(|back| {
            is_valid(back, now) && back.verify_primary_key_binding(key, primary).is_ok()
        })
    };
    let not_for_signing = match binding {
        None => Some("nothing binds it to its primary key"),
        Some(binding) if may_sign(binding) == Some(false) => {
            Some("its owner made it for other uses")
        }
        Some(binding) if !is_mutual(binding) => {
            Some("it does not confirm that it belongs to its primary key")
        }
        Some(_) => None,
    };
    KeyStatus {
        revoked: own
            .iter()
            .any(|one| one.typ() == Some(SignatureType::SubkeyRevocation)),
        not_known: None,
        expires: binding
            .and_then(lifetime)
            .map(|seconds| u64::from(key.created_at().as_secs()) + seconds),
        not_for_signing,
    }
}

/// The time at which the primary key of `certificate` expires; `None` if it does not.
pub(super) fn key_expiry(certificate: &SignedPublicKey) -> Option<Timestamp> {
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
    primary_status(certificate, now).expires.map(time_of)
}

/// The length in bytes of the parameters of an RSA key of nearly 2048 bits.
const RSA_2048: usize = 256;

/// Why apt of Debian 13 and rpm of RHEL 9 refuse `certificate`, although gpg accepts it.
pub(super) fn outdated_reason(certificate: &SignedPublicKey) -> Option<&'static str> {
    let parameters = certificate.primary_key.public_params();
    match parameters {
        PublicParams::DSA(_) => Some("uses DSA"),
        PublicParams::RSA(_) if parameters.write_len() < RSA_2048 => {
            Some("is an RSA key of less than 2048 bits")
        }
        _ => is_bound_by_sha1(certificate).then_some("is certified only with SHA-1"),
    }
}

/// Whether only signatures with SHA-1 bind the primary key of `certificate`, or a signing subkey.
fn is_bound_by_sha1(certificate: &SignedPublicKey) -> bool {
    let key = &certificate.primary_key;
    let details = &certificate.details;
    let users = details.users.iter().flat_map(|user| &user.signatures);
    let own = users.chain(&details.direct_signatures);
    let signs = |subkey: &&SignedPublicSubKey| {
        let mut bindings = subkey.signatures.iter();
        bindings.any(|binding| may_sign(binding) == Some(true))
    };
    let mut subkeys = certificate.public_subkeys.iter().filter(signs);
    has_only_sha1(own.filter(|one| names(one, key)))
        || subkeys.any(|subkey| has_only_sha1(subkey.signatures.iter()))
}

/// Whether there are `statements`, and all of them use SHA-1 or MD5.
fn has_only_sha1<'s>(mut statements: impl Iterator<Item = &'s Signature>) -> bool {
    let is_weak = |one: &Signature| {
        matches!(
            one.hash_alg(),
            Some(HashAlgorithm::Md5 | HashAlgorithm::Sha1)
        )
    };
    statements.next().is_some_and(is_weak) && statements.all(is_weak)
}

/// The fingerprint of the primary key of `certificate`, in upper-case hex.
pub(super) fn fingerprint(certificate: &SignedPublicKey) -> String {
    certificate.fingerprint().to_string().to_ascii_uppercase()
}
