//! OpenPGP keys, and what they sign: texts with their signature below them, such as the provenance
//! of a chart, and files with their signature beside them.

use super::openpgp_error::OpenPgpError;
use super::openpgp_rules::{SignatureTime, SigningKey, check_form, check_signer, fingerprint};
use pgp::armor::{ArmorCrc24Status, Dearmor};
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::Signature;
use pgp::types::KeyDetails;
use std::fmt;
use std::io::{self, Read};

/// Largest number of signatures in a message. Each one reads the content once.
const MAX_SIGNATURES: usize = 32;

/// Public keys, any of which may have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPgpKeys(pub(super) Vec<SignedPublicKey>);

/// The bit that the first byte of every packet has, and no byte of an armor.
const BINARY: u8 = 0x80;
/// What an armored signature begins with.
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
/// What an armored key begins with.
const BLOCK: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";

impl OpenPgpKeys {
    /// The public keys in `bytes`, armored or not.
    ///
    /// # Errors
    /// When there is none, or something else stands there.
    pub fn parse(bytes: &[u8]) -> Result<OpenPgpKeys, OpenPgpError> {
        if bytes.windows(17).any(|part| part == b"BEGIN PGP PRIVATE") {
            return Err(OpenPgpError::Private);
        }
        // a file may have several armored blocks, one after the other
        let windows = bytes.windows(BLOCK.len()).enumerate();
        let blocks: Vec<usize> = windows
            .filter(|(_, part)| *part == BLOCK)
            .map(|(at, _)| at)
            .collect();
        let ends = blocks.iter().skip(1).copied().chain([bytes.len()]);
        let mut parts: Vec<&[u8]> = blocks
            .iter()
            .zip(ends)
            .map(|(start, end)| &bytes[*start..end])
            .collect();
        if parts.is_empty() {
            parts.push(bytes);
        }
        let mut keys: Vec<SignedPublicKey> = Vec::new();
        for part in parts {
            let (found, _) =
                SignedPublicKey::from_reader_many(part).map_err(|_| OpenPgpError::NoKey)?;
            keys.extend(
                found
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|_| OpenPgpError::NoKey)?,
            );
        }
        if keys.is_empty() {
            Err(OpenPgpError::NoKey)
        } else {
            Ok(OpenPgpKeys(keys))
        }
    }

    /// Whether `fingerprint` is that of one of the keys.
    pub fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|key| fingerprint(key) == wanted)
    }

    /// All keys, each armored as [`certificate`](OpenPgpKeys::certificate) has it.
    pub fn certificates(&self) -> Option<String> {
        self.0
            .iter()
            .map(|key| self.certificate(&fingerprint(key)))
            .collect()
    }

    /// The key with this fingerprint, armored, without what others say of it; `None` where there is
    /// none.
    pub fn certificate(&self, wanted: &str) -> Option<String> {
        let mut key = self
            .0
            .iter()
            .find(|key| fingerprint(key) == wanted)?
            .clone();
        let id = key.legacy_key_id();
        let is_own = |signature: &Signature| signature.issuer_key_id().contains(&&id);
        for user in &mut key.details.users {
            user.signatures.retain(is_own);
        }
        key.details.user_attributes.clear();
        let text = key.to_armored_string(ArmorOptions::default()).ok()?;
        Some(format!("{}\n", text.replace('\r', "").trim_end()))
    }

    /// Returns the text that `signed` has above its signature, and the fingerprint of the key that
    /// made it.
    ///
    /// # Errors
    /// When none of the keys signed this text, or gpgv would refuse the key or the signature at
    /// `time`.
    pub fn verify(
        &self,
        signed: &str,
        time: SignatureTime,
    ) -> Result<(String, String), OpenPgpError> {
        let (message, _) =
            CleartextSignedMessage::from_string(signed).map_err(|_| OpenPgpError::NotSigned)?;
        let armor = signed.rfind(SIGNATURE).map_or("", |start| &signed[start..]);
        if !has_good_checksum(armor.as_bytes()) {
            return Err(OpenPgpError::NotSigned);
        }
        let named = hash_headers(signed);
        let is_named = |one: &Signature| one.hash_alg().is_some_and(|hash| named.contains(&hash));
        if !message.signatures().iter().all(is_named) {
            return Err(OpenPgpError::Unnamed);
        }
        let text = message.signed_text();
        let name = self.judge(message.signatures(), time, || Ok(text.as_bytes()))?;
        Ok((text.replace("\r\n", "\n"), name))
    }

    /// Returns the fingerprint of the key that made one of the signatures in `signature`, armored
    /// or not, over the content that `open` opens.
    ///
    /// # Errors
    /// When none of the keys made it, or gpgv would refuse the key or the signature at `time`.
    pub fn verify_detached<R: Read>(
        &self,
        signature: &[u8],
        time: SignatureTime,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, OpenPgpError> {
        let not_signed = |_| OpenPgpError::NotSigned;
        let is_binary = signature.first().is_some_and(|first| first & BINARY != 0);
        if !is_binary && !has_good_checksum(signature) {
            return Err(OpenPgpError::NotSigned);
        }
        let (found, _) = DetachedSignature::from_reader_many(signature).map_err(not_signed)?;
        let found = found
            .map(|one| one.map(|one| one.signature))
            .take(MAX_SIGNATURES + 1);
        let found: Vec<Signature> = found.collect::<Result<_, _>>().map_err(not_signed)?;
        self.judge(&found, time, open)
    }

    /// Returns the fingerprint of the key that made the first good one of `signatures`, as apt
    /// reads gpgv's answer: signatures by other keys and those that have expired or are too weak do
    /// not count, and one that does not fit the content invalidates all.
    fn judge<R: Read>(
        &self,
        signatures: &[Signature],
        time: SignatureTime,
        open: impl Fn() -> io::Result<R>,
    ) -> Result<String, OpenPgpError> {
        if signatures.len() > MAX_SIGNATURES {
            return Err(OpenPgpError::TooMany(MAX_SIGNATURES));
        }
        let (mut good, mut refused) = (None, None);
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
            let content = open().map_err(|error| OpenPgpError::Read(error.to_string()))?;
            if !key.made(signature, content) {
                return Err(OpenPgpError::Wrong(self.to_string()));
            }
            match check_signer(&key, signature, time) {
                Ok(()) => _ = good.get_or_insert_with(|| fingerprint(key.certificate)),
                Err(why @ OpenPgpError::Critical(..)) => return Err(why),
                // gpgv looks no further
                Err(why @ OpenPgpError::SignatureExpired(..)) => {
                    refused.get_or_insert(why);
                    break;
                }
                Err(why) => _ = refused.get_or_insert(why),
            }
        }
        good.ok_or_else(|| refused.unwrap_or_else(|| OpenPgpError::Wrong(self.to_string())))
    }
}

impl fmt::Display for OpenPgpKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(fingerprint).collect();
        f.write_str(&names.join(" or "))
    }
}

/// Whether the armored block at the start of `armored` has no checksum, or a right one, which is
/// what gpgv accepts. The reader of armor does not compare it (RFC 9580, 6.1.1).
fn has_good_checksum(armored: &[u8]) -> bool {
    let mut armor = Dearmor::new(armored);
    let mut content = Vec::new();
    let is_read = armor.read_to_end(&mut content).is_ok();
    is_read
        && match armor.crc24_status() {
            ArmorCrc24Status::Unchecked { footer_crc } => footer_crc == crc24(&content),
            _ => true,
        }
}

/// The checksum of an armored block (RFC 9580, 6.1).
fn crc24(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc, _| {
            let shifted = crc << 1;
            if shifted & 0x100_0000 == 0 {
                shifted
            } else {
                shifted ^ 0x186_4cfb
            }
        })
    };
    bytes.iter().fold(0xb7_04ce, byte)
}

/// The hash algorithms that the headers of a signed text name: gpgv computes no others.
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
