//! Signs package metadata with an OpenPGP private key. Equal content, key and time give equal
//! bytes.

use super::openpgp::{OpenPgpKeys, packet_bytes};
use super::openpgp_rules;
use crate::Failure;
use jiff::Timestamp;
use pgp::composed::{
    ArmorOptions, CleartextSignedMessage, Deserializable, DetachedSignature, SignedPublicKey,
    SignedSecretKey,
};
use pgp::packet::{
    SecretSubkey, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData,
};
use pgp::types::{
    EncryptedSecretParams, KeyDetails, KeyVersion, Password, S2kParams, SecretParams, SigningKey,
    StringToKey,
};

/// An OpenPGP private key that can sign.
pub struct OpenPgpSigner {
    key: SignedSecretKey,
    public: OpenPgpKeys,
    passphrase: Password,
    /// The time since which the whole key is valid, in seconds since 1970. Earlier signatures would
    /// be invalid.
    since: u32,
    /// The index of the signing subkey, or `None` for the primary key.
    subkey: Option<usize>,
}

fn no_private() -> Failure {
    Failure::usage(
        "it contains no OpenPGP private key; `gpg --armor --export-secret-keys NAME` writes one",
    )
}

fn locked() -> Failure {
    Failure::usage(
        "it is locked; set the environment variable LANDFALL_PACKAGES_PASSPHRASE to its passphrase",
    )
}

fn cannot_sign() -> Failure {
    Failure::usage(
        "landfall cannot sign with this key; `gpg --quick-gen-key NAME rsa3072 sign` makes a \
         suitable key",
    )
}

impl OpenPgpSigner {
    /// Parses the private key in `bytes`, armored or binary. `passphrase` unlocks it if needed.
    ///
    /// # Errors
    /// Fails if there is no private key, it stays locked, or it cannot sign now.
    pub fn parse(bytes: &[u8], passphrase: Option<&str>) -> Result<OpenPgpSigner, Failure> {
        let key = secret_key(bytes).ok_or_else(no_private)?;
        // current gpg and dnf verify only signatures by keys of version 4
        if key.primary_key.version() != KeyVersion::V4 {
            return Err(Failure::usage(
                "gpg and dnf cannot verify the signatures of this key; `gpg --quick-gen-key NAME \
                 rsa3072 sign` makes a suitable key",
            ));
        }
        let public = OpenPgpKeys(vec![key.to_public_key()]);
        let details = &key.details;
        let own = details
            .users
            .iter()
            .flat_map(|user| &user.signatures)
            .chain(&details.direct_signatures);
        let own = own.chain(
            key.secret_subkeys
                .iter()
                .flat_map(|subkey| &subkey.signatures),
        );
        let times = own
            .filter_map(Signature::created)
            .chain([key.primary_key.created_at()]);
        let since = times
            .map(pgp::types::Timestamp::as_secs)
            .max()
            .unwrap_or_default();
        let passphrase = passphrase.map_or_else(Password::empty, Password::from);
        let subkey = newest_subkey(&public.0[0], Timestamp::now());
        let signer = OpenPgpSigner {
            key,
            public,
            passphrase,
            since,
            subkey,
        };
        signer.check_passphrase()?;
        // a trial signature detects an unfit key at once
        let tried = signer.detached(b"", Timestamp::now())?;
        signer.public.verify_detached(
            tried.as_bytes(),
            openpgp_rules::SignatureTime::Now,
            || Ok(&b""[..]),
        )?;
        Ok(signer)
    }

    /// Fails unless the passphrase unlocks the signing key.
    fn check_passphrase(&self) -> Result<(), Failure> {
        let primary = &self.key.primary_key;
        let subkey = self.subkey.map(|at| &self.key.secret_subkeys[at].key);
        let unlocked = match subkey {
            Some(subkey) => subkey.unlock(&self.passphrase, |_, _| Ok(())).map(drop),
            None => primary.unlock(&self.passphrase, |_, _| Ok(())).map(drop),
        };
        let parameters = subkey.map_or(primary.secret_params(), SecretSubkey::secret_params);
        unlocked.map_err(|_| match parameters {
            SecretParams::Encrypted(key) if is_stub(key) => no_private(),
            _ => locked(),
        })
    }

    /// Parses the public keys in `bytes`, or the public half of a private key, which may be locked.
    ///
    /// # Errors
    /// Fails if there is no key.
    pub fn public_half(bytes: &[u8]) -> Result<OpenPgpKeys, Failure> {
        match (OpenPgpKeys::parse(bytes), secret_key(bytes)) {
            (Err(_), Some(key)) => Ok(OpenPgpKeys(vec![key.to_public_key()])),
            (parsed, _) => parsed,
        }
    }

    /// Returns `time`, or the time since which the key is valid if that is later.
    pub fn time(&self, time: Timestamp) -> Timestamp {
        let since = Timestamp::from_second(i64::from(self.since)).unwrap_or_default();
        time.max(since)
    }

    /// Returns `text` with its signature below. The signature has the date `self.time(at)`.
    ///
    /// # Errors
    /// Fails if the key cannot sign.
    pub fn cleartext(&self, text: &str, at: Timestamp) -> Result<String, Failure> {
        let key = Box::new(self.signing_key());
        let text = text.trim_end_matches('\n');
        let signed = self.config(SignatureType::Text, at).and_then(|config| {
            CleartextSignedMessage::new(text, config, &key, &self.passphrase)?
                .to_armored_string(ArmorOptions::default())
        });
        signed.map_err(|_| cannot_sign())
    }

    /// Returns the armored signature of `content`. It has the date `self.time(at)`.
    ///
    /// # Errors
    /// Fails if the key cannot sign.
    pub fn detached(&self, content: &[u8], at: Timestamp) -> Result<String, Failure> {
        let key = Box::new(self.signing_key());
        let signed = self.config(SignatureType::Binary, at).and_then(|config| {
            let signature = config.sign(&key, &self.passphrase, content)?;
            DetachedSignature::new(signature).to_armored_string(ArmorOptions::default())
        });
        signed.map_err(|_| cannot_sign())
    }

    fn config(&self, kind: SignatureType, at: Timestamp) -> pgp::errors::Result<SignatureConfig> {
        let key = self.signing_key();
        let seconds = self.time(at).as_second() as u32;
        let mut config = SignatureConfig::v4(kind, key.algorithm(), key.hash_alg());
        config.hashed_subpackets = vec![
            Subpacket::regular(SubpacketData::IssuerFingerprint(key.fingerprint()))?,
            Subpacket::regular(SubpacketData::SignatureCreationTime(
                pgp::types::Timestamp::from_secs(seconds),
            ))?,
        ];
        config.unhashed_subpackets = vec![Subpacket::regular(SubpacketData::IssuerKeyId(
            key.legacy_key_id(),
        ))?];
        Ok(config)
    }

    fn signing_key(&self) -> &dyn SigningKey {
        match self
            .subkey
            .and_then(|position| self.key.secret_subkeys.get(position))
        {
            Some(subkey) => &subkey.key,
            None => &self.key.primary_key,
        }
    }
}

/// The index of the newest subkey of `certificate` that may sign at `now`.
fn newest_subkey(certificate: &SignedPublicKey, now: Timestamp) -> Option<usize> {
    let now = u64::try_from(now.as_second()).unwrap_or_default();
    let subkeys = certificate.public_subkeys.iter().enumerate();
    let may_sign = subkeys.filter(|(_, subkey)| {
        let key = openpgp_rules::SigningKey::new(certificate, Some(subkey));
        key.check(now).is_ok()
    });
    Some(
        may_sign
            .max_by_key(|(_, subkey)| subkey.key.created_at())?
            .0,
    )
}

/// Whether gpg exported the key without its private part, which is elsewhere, for example on a
/// smart card. gpg marks such a key by an encryption method that only gpg defines.
fn is_stub(key: &EncryptedSecretParams) -> bool {
    let (S2kParams::Cfb { s2k, .. } | S2kParams::MalleableCfb { s2k, .. }) =
        key.string_to_key_params()
    else {
        return false;
    };
    matches!(s2k, StringToKey::Private { .. })
}

/// The first private key in `bytes`.
fn secret_key(bytes: &[u8]) -> Option<SignedSecretKey> {
    let packets = packet_bytes::<SignedSecretKey>(bytes)?;
    SignedSecretKey::from_bytes_many(&*packets)
        .ok()?
        .next()?
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = include_bytes!("../../../../tests/data/packages/site-key.asc");
    const LOCKED: &[u8] = include_bytes!("../../../../tests/data/packages/site-key-locked.asc");
    /// `gpg --export-secret-subkeys` of a primary key that signs and a subkey that encrypts.
    const STUB: &[u8] = include_bytes!("../../../../tests/data/packages/stub-key.asc");
    /// A key on the curve brainpoolP256r1, which is not supported.
    const BRAINPOOL: &[u8] = include_bytes!("../../../../tests/data/packages/brainpool-key.asc");

    #[test]
    fn signatures_are_valid_and_deterministic() {
        let signer = OpenPgpSigner::parse(SECRET, None).unwrap();
        let at = signer.time(Timestamp::UNIX_EPOCH);
        assert!(at > Timestamp::UNIX_EPOCH, "not before the key was created");
        let text = "Suite: x\n- dash\nSHA256:\n a 1 b\n";
        let signed = signer.cleartext(text, at).unwrap();
        assert_eq!(
            signed,
            signer.cleartext(text, Timestamp::UNIX_EPOCH).unwrap()
        );
        let verified = |text: &str| {
            signer
                .public
                .verify(text, openpgp_rules::SignatureTime::Now)
        };
        let (read, _) = verified(&signed).unwrap();
        assert_eq!(read.trim_end(), text.trim_end());
        assert!(verified(&signed.replace("Suite: x", "Suite: y")).is_err());
        let beside = signer.detached(b"content", at).unwrap();
        assert_eq!(beside, signer.detached(b"content", at).unwrap());
        let detached = |content| {
            signer.public.verify_detached(
                beside.as_bytes(),
                openpgp_rules::SignatureTime::Now,
                || Ok(content),
            )
        };
        detached(&b"content"[..]).unwrap();
        assert!(detached(&b"other"[..]).is_err());
    }

    /// As if a repository also signed with algorithms that are new.
    #[test]
    fn the_hash_of_a_signature_by_another_key_need_not_be_named() {
        use base64::Engine as _;
        let signer = OpenPgpSigner::parse(SECRET, None).unwrap();
        let signed = signer.cleartext("Suite: x\n", Timestamp::now()).unwrap();
        let start = signed.find("-----BEGIN PGP SIGNATURE-----").unwrap();
        let (text, armor) = signed.split_at(start);
        let mut packets = packet_bytes::<DetachedSignature>(armor.as_bytes())
            .unwrap()
            .into_owned();
        // version 4, an unknown algorithm, SHA3-512, the time of creation, the issuer, and numbers
        let mut other = vec![4, 1, 30, 14, 0, 6, 5, 2, 0x60, 0, 0, 0, 0, 10, 9, 16];
        other.extend([0x22; 8]);
        other.extend([0x11; 66]);
        packets.extend([0xc2, other.len() as u8]);
        packets.extend(other);
        let encoded = base64::engine::general_purpose::STANDARD.encode(packets);
        let lines = encoded.as_bytes().chunks(64).map(String::from_utf8_lossy);
        let lines: Vec<_> = lines.collect();
        let both = format!(
            "{text}-----BEGIN PGP SIGNATURE-----\n\n{}\n-----END PGP SIGNATURE-----\n",
            lines.join("\n")
        );
        let verify = |text: &str| {
            let time = openpgp_rules::SignatureTime::Now;
            signer.public.verify(text, time)
        };
        verify(&both).unwrap();
        assert!(verify(&both.replacen("Hash: ", "Hash: SHA1,", 1)).is_ok());
        assert!(verify(&both.replacen("Hash: SHA", "Hash: RIPEMD", 1)).is_err());
    }

    #[test]
    fn an_exported_key_keeps_self_signatures_that_name_only_its_fingerprint() {
        let mut signer = OpenPgpSigner::parse(SECRET, None).unwrap();
        signer.subkey = None;
        let config = signer.config(SignatureType::CertPositive, Timestamp::now());
        let mut config = config.unwrap();
        config.unhashed_subpackets.clear();
        let mut keys = signer.public.clone();
        let certificate = &mut keys.0[0];
        let user = &mut certificate.details.users[0];
        let made = config.sign_certification(
            &signer.key.primary_key,
            &certificate.primary_key,
            &signer.passphrase,
            pgp::types::Tag::UserId,
            &user.id,
        );
        user.signatures = vec![made.unwrap()];
        let exported = OpenPgpKeys::parse(keys.certificates().unwrap().as_bytes()).unwrap();
        assert_eq!(exported.0[0].details.users[0].signatures.len(), 1);
    }

    #[test]
    fn unusable_signing_keys_are_reported() {
        let parse = |bytes: &[u8], passphrase| OpenPgpSigner::parse(bytes, passphrase).err();
        assert_eq!(parse(LOCKED, Some("secret")), None);
        assert_eq!(parse(LOCKED, None), Some(locked()));
        assert_eq!(parse(LOCKED, Some("other")), Some(locked()));
        assert_eq!(parse(STUB, Some("any")), Some(no_private()));
        assert_eq!(parse(BRAINPOOL, None), Some(cannot_sign()));
        assert!(
            OpenPgpSigner::public_half(LOCKED)
                .unwrap()
                .certificates()
                .unwrap()
                .contains("PUBLIC")
        );
        let public = OpenPgpSigner::parse(SECRET, None)
            .unwrap()
            .public
            .certificates()
            .unwrap();
        for bytes in [public.as_bytes(), b"", b"hello"] {
            assert_eq!(parse(bytes, None), Some(no_private()));
        }
    }
}
