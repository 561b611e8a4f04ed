//! OpenPGP public keys. They verify detached signatures of files, and texts that contain their own
//! signature, such as the provenance of a chart.

use super::file_key::unreadable;
use super::openpgp_rules::{
    SignatureTime, SignerFault, SigningKey, check_form, check_signer, fingerprint, key_expiry,
    names, outdated_reason,
};
use crate::Failure;
use jiff::Timestamp;
use pgp::armor::{ArmorCrc24Status, Dearmor};
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{PacketHeader, Signature};
use pgp::types::{PacketLength, Tag};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

/// The maximum number of signatures of one message: verifying each one reads the whole content.
const MAX_SIGNATURES: usize = 32;

/// A set of public keys: a signature by any of them is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPgpKeys(pub(super) Vec<SignedPublicKey>);

/// The bit that is set in the first byte of every packet, and in no byte of an armored text.
const BINARY: u8 = 0x80;
const SIGNATURE_HEADER: &str = "-----BEGIN PGP SIGNATURE-----";
const KEY_HEADER: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";

impl OpenPgpKeys {
    /// Parses the public keys in `bytes`, armored or binary.
    ///
    /// # Errors
    /// Fails if `bytes` contain no public key, or if they contain a private key or a key that
    /// cannot be parsed. Text before the first armored key is ignored.
    pub fn parse(bytes: &[u8]) -> Result<OpenPgpKeys, Failure> {
        if bytes.windows(17).any(|part| part == b"BEGIN PGP PRIVATE") {
            return Err(Failure::usage(
                "it contains a private key; name the public one, which `gpg --armor --export NAME` \
                 writes",
            ));
        }
        // a file may have several armored blocks, one after the other
        let windows = bytes.windows(KEY_HEADER.len()).enumerate();
        let starts: Vec<usize> = windows
            .filter(|(_, window)| *window == KEY_HEADER)
            .map(|(at, _)| at)
            .collect();
        let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
        let mut blocks: Vec<&[u8]> = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| &bytes[*start..end])
            .collect();
        if blocks.is_empty() {
            blocks.push(bytes);
        }
        let mut keys: Vec<SignedPublicKey> = Vec::new();
        for block in blocks {
            let packets = packet_bytes::<SignedPublicKey>(block).ok_or_else(no_key)?;
            let packets = without_trust(&packets);
            let parsed = SignedPublicKey::from_bytes_many(&*packets).map_err(|_| no_key())?;
            for key in parsed {
                keys.push(key.map_err(|_| no_key())?);
            }
        }
        if keys.is_empty() {
            return Err(no_key());
        }
        Ok(OpenPgpKeys(keys))
    }

    /// Whether one of the keys has the fingerprint `wanted`.
    pub fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|key| fingerprint(key) == wanted)
    }

    /// Returns the fingerprints of the keys that gpg accepts, but apt of Debian 13 and rpm of RHEL
    /// 9 do not, each with the reason.
    pub fn outdated(&self) -> Vec<(String, &'static str)> {
        let outdated = |key: &SignedPublicKey| Some((fingerprint(key), outdated_reason(key)?));
        self.0.iter().filter_map(outdated).collect()
    }

    /// Returns the time at which the key with this fingerprint expires; `None` if it does not.
    pub fn expiry(&self, wanted: &str) -> Option<Timestamp> {
        let mut keys = self.0.iter();
        key_expiry(keys.find(|key| fingerprint(key) == wanted)?)
    }

    /// Returns all keys, each armored like [`certificate`](OpenPgpKeys::certificate).
    pub fn certificates(&self) -> Option<String> {
        self.0
            .iter()
            .map(|key| self.certificate(&fingerprint(key)))
            .collect()
    }

    /// Returns the key with this fingerprint, armored, or `None` if there is none. Omits pictures,
    /// and certifications of its user IDs by other keys.
    pub fn certificate(&self, wanted: &str) -> Option<String> {
        let mut key = self
            .0
            .iter()
            .find(|key| fingerprint(key) == wanted)?
            .clone();
        for user in &mut key.details.users {
            user.signatures
                .retain(|signature| names(signature, &key.primary_key));
        }
        key.details.user_attributes.clear();
        let text = key.to_armored_string(ArmorOptions::default()).ok()?;
        Some(format!("{}\n", text.replace('\r', "").trim_end()))
    }

    /// Verifies a text that contains its signature. Returns the signed text, and the fingerprint of
    /// the key.
    ///
    /// # Errors
    /// Fails if none of the keys signed this text, or gpgv would refuse the key or the signature at
    /// `time`.
    pub fn verify(&self, signed: &str, time: SignatureTime) -> Result<(String, String), Failure> {
        let (message, _) = CleartextSignedMessage::from_string(signed).map_err(|_| not_signed())?;
        let armor = match signed.rfind(SIGNATURE_HEADER) {
            Some(start) => &signed[start..],
            None => "",
        };
        if !has_good_checksum(armor.as_bytes()) {
            return Err(not_signed());
        }
        let named = hash_headers(signed);
        let is_named = |one: &Signature| one.hash_alg().is_some_and(|hash| named.contains(&hash));
        let is_known = |one: &Signature| {
            let mut certificates = self.0.iter();
            certificates.any(|certificate| SigningKey::find(certificate, one).is_some())
        };
        // a signature by another key does not matter, and may be of a newer version of the format
        let mut signatures = message.signatures().iter().take(MAX_SIGNATURES);
        if signatures.any(|one| !is_named(one) && is_known(one)) {
            return Err(Failure::usage(
                "its header `Hash` does not name the hash algorithm of its signature",
            ));
        }
        let text = message.signed_text();
        let name = self.find_signer(message.signatures(), time, || Ok(text.as_bytes()))?;
        Ok((text.replace("\r\n", "\n"), name))
    }

    /// Verifies detached signatures, armored or binary, of the content that `open` opens. Returns
    /// the fingerprint of the key that made one of them.
    ///
    /// # Errors
    /// Fails if none of the keys made one of the signatures, or gpgv would refuse the key or the
    /// signature at `time`.
    pub fn verify_detached<R: Read>(
        &self,
        signature: &[u8],
        time: SignatureTime,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, Failure> {
        let is_binary = signature.first().is_some_and(|first| first & BINARY != 0);
        if !is_binary && !has_good_checksum(signature) {
            return Err(not_signed());
        }
        let packets = packet_bytes::<DetachedSignature>(signature).ok_or_else(not_signed)?;
        let found = DetachedSignature::from_bytes_many(&*packets).map_err(|_| not_signed())?;
        let found = found
            .map(|one| one.map(|one| one.signature))
            .take(MAX_SIGNATURES + 1);
        let found: Vec<Signature> = found.collect::<Result<_, _>>().map_err(|_| not_signed())?;
        self.find_signer(&found, time, open)
    }

    /// Returns the fingerprint of the key that made the first valid one of `signatures`.
    ///
    /// The rules are those of gpgv and apt: signatures by other keys and weak signatures are
    /// skipped, and signatures after an expired one are ignored. If a signature by one of the keys
    /// does not match the content or has an unsupported critical part, all are invalid.
    fn find_signer<R: Read>(
        &self,
        signatures: &[Signature],
        time: SignatureTime,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, Failure> {
        if signatures.len() > MAX_SIGNATURES {
            return Err(Failure::usage(format!(
                "it has more than {MAX_SIGNATURES} signatures"
            )));
        }
        let mut good = None;
        let mut refused = None;
        for signature in signatures {
            let Some(key) = self
                .0
                .iter()
                .find_map(|certificate| SigningKey::find(certificate, signature))
            else {
                continue;
            };
            if let Err(why) = check_form(&key, signature) {
                refused.get_or_insert(why);
                continue;
            }
            let content = open().map_err(unreadable)?;
            if !key.made(signature, content) {
                return Err(self.wrong());
            }
            match check_signer(&key, signature, time) {
                Ok(()) => _ = good.get_or_insert_with(|| fingerprint(key.certificate)),
                Err(SignerFault::Critical(why)) => return Err(why),
                // gpgv ignores the signatures after an expired one
                Err(SignerFault::Expired(why)) => {
                    refused.get_or_insert(why);
                    break;
                }
                Err(SignerFault::Other(why)) => _ = refused.get_or_insert(why),
            }
        }
        good.ok_or_else(|| refused.unwrap_or_else(|| self.wrong()))
    }

    fn wrong(&self) -> Failure {
        Failure::usage(format!(
            "it has no valid signature by {self}: another key made it, or the content was changed"
        ))
    }
}

fn no_key() -> Failure {
    Failure::usage("it contains no OpenPGP public key; `gpg --armor --export NAME` writes one")
}

fn not_signed() -> Failure {
    Failure::usage("it contains no OpenPGP signature, or a damaged one")
}

impl fmt::Display for OpenPgpKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(fingerprint).collect();
        f.write_str(&names.join(" or "))
    }
}

/// Returns the packets in `bytes`, which are binary or begin with an armored block. `None` if there
/// is no valid block, or `T` does not accept its type.
///
/// `Deserializable::from_reader_many` accepts both as well, but compiles the whole parser a second
/// time for each kind of reader.
pub(super) fn packet_bytes<T: Deserializable>(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    if bytes.first()? & BINARY != 0 {
        return Some(Cow::Borrowed(bytes));
    }
    let mut armor = Dearmor::new(bytes);
    armor.read_header().ok()?;
    if !T::matches_block_type(armor.typ?) {
        return None;
    }
    let mut packets = Vec::new();
    armor.read_to_end(&mut packets).ok()?;
    Some(Cow::Owned(packets))
}

/// Returns `packets` without trust packets. gpg writes one after each packet of a keyring such as
/// `/etc/apt/trusted.gpg`, and others ignore them (RFC 9580, section 5.10). The `pgp` crate would
/// end a key at the first one.
fn without_trust(packets: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(packets.len());
    let mut rest = packets;
    while !rest.is_empty() {
        let mut body = rest;
        let header = PacketHeader::try_from_reader(&mut body).ok();
        // without a length, the parser decides about all that follows
        let after = match header.map(|header| header.packet_length()) {
            Some(PacketLength::Fixed(length)) => body.get(length as usize..).unwrap_or_default(),
            _ => &[],
        };
        if header.is_none_or(|header| header.tag() != Tag::Trust) {
            kept.extend_from_slice(&rest[..rest.len() - after.len()]);
        }
        rest = after;
    }
    kept
}

/// Whether the armored block at the start of `armored` has a correct checksum or none, as gpgv
/// requires. The `pgp` crate does not compare it (RFC 9580, section 6.1.1).
fn has_good_checksum(armored: &[u8]) -> bool {
    let mut armor = Dearmor::new(armored);
    let mut content = Vec::new();
    if armor.read_to_end(&mut content).is_err() {
        return false;
    }
    match armor.crc24_status() {
        ArmorCrc24Status::Unchecked { footer_crc } => footer_crc == crc24(&content),
        _ => true,
    }
}

/// The checksum of an armored block (RFC 9580, section 6.1).
fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0xb7_04ce;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= 0x186_4cfb;
            }
        }
    }
    crc
}

/// The hash algorithms that the headers of a signed text name. gpgv computes no others.
fn hash_headers(signed: &str) -> Vec<HashAlgorithm> {
    let headers = signed
        .lines()
        .skip(1)
        .map_while(|line| line.split_once(": "));
    headers
        .flat_map(|(_, names)| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_current_clients_refuse_are_found() {
        let outdated = include_bytes!("../../../../tests/data/packages/outdated-keys.asc");
        let current = include_bytes!("../../../../tests/data/packages/key.asc");
        let keys = OpenPgpKeys::parse(&[&current[..], &outdated[..]].concat()).unwrap();
        let expected = [
            (
                "978BDD239B2C94F1084FF12B225F0782806C2027",
                "is certified only with SHA-1",
            ),
            ("FCB41BA32369B77960747AD88BB8CD7FED2B294C", "uses DSA"),
            (
                "CB38F224071183DEEA0CBC4FCB09153768F388B4",
                "is an RSA key of less than 2048 bits",
            ),
        ];
        let found = keys.outdated();
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(key, why)| (key.as_str(), *why))
            .collect();
        assert_eq!(found, expected);
    }
}
