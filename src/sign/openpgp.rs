//! OpenPGP keys, and what they sign: texts with their signature below them, such as the provenance of a chart, and files with
//! their signature beside them.

use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
    SignedPublicSubKey,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{PublicKey, Signature};
use pgp::types::{KeyDetails, VerifyingKey};
use std::fmt;
use std::io::Read;

/// Public keys, any of which may have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPgpKeys(pub(super) Vec<SignedPublicKey>);

/// Why a signature of OpenPGP does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenPgpError {
    /// The file holds no public key.
    #[error("it holds no public key of OpenPGP; `gpg --armor --export NAME` writes one")]
    NoKey,
    /// The file holds a private key.
    #[error("it holds a private key; name the public one, which `gpg --armor --export NAME` writes")]
    Private,
    /// The file holds no private key.
    #[error("it holds no private key of OpenPGP; `gpg --armor --export-secret-keys NAME` writes one")]
    NoPrivate,
    /// The private key needs a passphrase.
    #[error("it is locked; give its passphrase in the environment variable LANDFALL_PACKAGES_PASSPHRASE")]
    Locked,
    /// The private key cannot sign what others check.
    #[error(
        "it is no key that signs as gpg and dnf check it; `gpg --quick-gen-key NAME ed25519 sign` makes one"
    )]
    Unfit,
    /// The text is not signed.
    #[error("it is no text with a signature of OpenPGP")]
    NotSigned,
    /// None of the keys made the signature, or the text was changed.
    #[error("it has no valid signature by {0}: another key made it, or the text was changed")]
    Wrong(String),
    /// The key was revoked.
    #[error("the key {0} that signed it is revoked")]
    Revoked(String),
    /// The key had expired before the signature was made.
    #[error("the key {0} had expired when it signed")]
    Expired(String),
}

/// What an armored block begins with.
const BLOCK: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";

impl OpenPgpKeys {
    /// The public keys in `bytes`, armored or not.
    ///
    /// # Errors
    /// When there is none, or something else stands there.
    pub(crate) fn parse(bytes: &[u8]) -> Result<OpenPgpKeys, OpenPgpError> {
        if bytes.windows(17).any(|part| part == b"BEGIN PGP PRIVATE") {
            return Err(OpenPgpError::Private);
        }
        // a file may have several armored blocks, one after the other
        let windows = bytes.windows(BLOCK.len()).enumerate();
        let blocks: Vec<usize> = windows.filter(|(_, part)| *part == BLOCK).map(|(at, _)| at).collect();
        let ends = blocks.iter().skip(1).copied().chain([bytes.len()]);
        let mut parts: Vec<&[u8]> = blocks.iter().zip(ends).map(|(start, end)| &bytes[*start..end]).collect();
        if parts.is_empty() {
            parts.push(bytes);
        }
        let mut keys: Vec<SignedPublicKey> = Vec::new();
        for part in parts {
            let (found, _) = SignedPublicKey::from_reader_many(part).map_err(|_| OpenPgpError::NoKey)?;
            keys.extend(found.collect::<Result<Vec<_>, _>>().map_err(|_| OpenPgpError::NoKey)?);
        }
        if keys.is_empty() { Err(OpenPgpError::NoKey) } else { Ok(OpenPgpKeys(keys)) }
    }

    /// Whether `fingerprint` is that of one of the keys.
    pub(crate) fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|key| fingerprint(key) == wanted)
    }

    /// All keys, each armored as [`certificate`](OpenPgpKeys::certificate) has it.
    pub(crate) fn certificates(&self) -> Option<String> {
        self.0.iter().map(|key| self.certificate(&fingerprint(key))).collect()
    }

    /// The key with this fingerprint, armored, without what others say of it; `None` where there is none.
    pub(crate) fn certificate(&self, wanted: &str) -> Option<String> {
        let mut key = self.0.iter().find(|key| fingerprint(key) == wanted)?.clone();
        let id = key.legacy_key_id();
        let is_own = |signature: &Signature| signature.issuer_key_id().contains(&&id);
        for user in &mut key.details.users {
            user.signatures.retain(is_own);
        }
        key.details.user_attributes.clear();
        let text = key.to_armored_string(ArmorOptions::default()).ok()?;
        Some(format!("{}\n", text.replace('\r', "").trim_end()))
    }

    /// The text below which its signature stands in `signed`, and the fingerprint of the key that made it.
    ///
    /// # Errors
    /// When none of the keys signed this text, or the one that did must not be believed.
    pub(crate) fn verify(&self, signed: &str) -> Result<(String, String), OpenPgpError> {
        let (message, _) =
            CleartextSignedMessage::from_string(signed).map_err(|_| OpenPgpError::NotSigned)?;
        for key in &self.0 {
            let mut subkeys = key.public_subkeys.iter().filter(|subkey| may_sign(&key.primary_key, subkey));
            let made = good(&message, &key.primary_key)
                .or_else(|| subkeys.find_map(|subkey| good(&message, &subkey.key)));
            if let Some(signature) = made {
                let name = believed(key, signature)?;
                return Ok((message.signed_text().replace("\r\n", "\n"), name));
            }
        }
        Err(OpenPgpError::Wrong(self.to_string()))
    }
}

impl OpenPgpKeys {
    /// The fingerprint of the key that made `signature`, armored or not, over all that `content` gives.
    ///
    /// # Errors
    /// When none of the keys made it, or the one that did must not be believed.
    pub(crate) fn verify_detached(
        &self,
        signature: &[u8],
        content: impl Read,
    ) -> Result<String, OpenPgpError> {
        let (found, _) =
            DetachedSignature::from_reader_many(signature).map_err(|_| OpenPgpError::NotSigned)?;
        let found: Vec<DetachedSignature> =
            found.collect::<Result<_, _>>().map_err(|_| OpenPgpError::NotSigned)?;
        let made = found.iter().map(|one| &one.signature).filter(|one| is_strong(one)).find_map(|one| {
            let of_key = |key: &&SignedPublicKey| {
                let subkeys = key.public_subkeys.iter().filter(|subkey| may_sign(&key.primary_key, subkey));
                is_by(one, &key.primary_key) || subkeys.map(|subkey| &subkey.key).any(|key| is_by(one, key))
            };
            Some((one, self.0.iter().find(of_key)?))
        });
        let (made, key) = made.ok_or_else(|| OpenPgpError::Wrong(self.to_string()))?;
        let subkey = key
            .public_subkeys
            .iter()
            .find(|subkey| may_sign(&key.primary_key, subkey) && is_by(made, &subkey.key));
        let verified = match subkey {
            Some(subkey) => made.verify(&subkey.key, content),
            None => made.verify(&key.primary_key, content),
        };
        verified.map_err(|_| OpenPgpError::Wrong(self.to_string()))?;
        believed(key, made)
    }
}

impl fmt::Display for OpenPgpKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(fingerprint).collect();
        f.write_str(&names.join(" or "))
    }
}

fn fingerprint(key: &SignedPublicKey) -> String {
    key.fingerprint().to_string().to_ascii_uppercase()
}

/// The signature of `message` by `key`. Weak ones do not count.
fn good<'m>(message: &'m CleartextSignedMessage, key: &impl VerifyingKey) -> Option<&'m Signature> {
    let text = message.signed_text();
    let mut strong = message.signatures().iter().filter(|signature| is_strong(signature));
    strong.find(|signature| signature.verify(key, text.as_bytes()).is_ok())
}

/// Whether no two texts can be made to fit the signature.
fn is_strong(signature: &Signature) -> bool {
    let hash = signature.hash_alg();
    !matches!(hash, None | Some(HashAlgorithm::Md5 | HashAlgorithm::Sha1 | HashAlgorithm::Ripemd160))
}

/// Whether `signature` says that `key` made it.
fn is_by(signature: &Signature, key: &impl KeyDetails) -> bool {
    signature.issuer_key_id().contains(&&key.legacy_key_id())
        || signature.issuer_fingerprint().contains(&&key.fingerprint())
}

/// The name of `key`, unless it must not be believed when it made `signature`.
fn believed(key: &SignedPublicKey, signature: &Signature) -> Result<String, OpenPgpError> {
    let name = fingerprint(key);
    if !key.details.revocation_signatures.is_empty() {
        return Err(OpenPgpError::Revoked(name));
    }
    if has_expired(key, signature) {
        return Err(OpenPgpError::Expired(name));
    }
    Ok(name)
}

/// Whether `subkey` belongs to `key`, is for signing, and is not revoked.
pub(super) fn may_sign(key: &PublicKey, subkey: &SignedPublicSubKey) -> bool {
    use pgp::packet::SignatureType;
    let revoked = Some(SignatureType::SubkeyRevocation);
    !subkey.signatures.iter().any(|signature| signature.typ() == revoked)
        && subkey.signatures.iter().any(|signature| signature.key_flags().sign())
        && subkey.verify_bindings(key).is_ok()
}

/// Whether the newest self-signature of `key` ends before `signature` was made.
fn has_expired(key: &SignedPublicKey, signature: &Signature) -> bool {
    let id = key.legacy_key_id();
    let all =
        key.details.users.iter().flat_map(|user| &user.signatures).chain(&key.details.direct_signatures);
    let newest = all.filter(|one| one.issuer_key_id().contains(&&id)).max_by_key(|own| own.created());
    let life = newest.and_then(Signature::key_expiration_time).map_or(0, pgp::types::Duration::as_secs);
    let made = signature.created().map_or(u32::MAX, pgp::types::Timestamp::as_secs);
    life > 0 && made > key.primary_key.created_at().as_secs().saturating_add(life)
}
