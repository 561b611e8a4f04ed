//! Verifies the signature of an `.rpm` file, and reads its identity and its changelog.
//!
//! The format, according to RPM's manual ("RPM V4 package format"): a lead of 96 bytes; a header
//! with signatures, padded to a multiple of 8 bytes; the main header; and the payload. A signature
//! covers the main header, which contains the digest of the payload. In packages without such a
//! digest, an older kind of signature covers the main header and the payload.

use super::metadata::unreadable;
use crate::{PackageIdentity, first_lines};
use landfall_model::sign::{OpenPgpKeys, SignatureTime};
use landfall_model::{Algorithm, Failure, Limits, digest_of};
use std::cell::Cell;
use std::io::{self, Read};

const LEAD: usize = 96;
const LEAD_MAGIC: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const HEADER_MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
/// The size in bytes of the start of a header, before its index: magic, number of entries, and
/// number of data bytes.
const HEADER_START: usize = 16;

/// Tags in the signature header: signatures of the main header by DSA or Ed25519, and by RSA.
const SIGNATURES_OF_HEADER: [u32; 2] = [267, 268];
/// Tag in the signature header: any number of signatures of the main header in base64 (RPM 6).
const OPENPGP: u32 = 278;
/// The maximum number of signatures of a package: verifying each one reads the whole main header.
const MAX_SIGNATURES: usize = 32;
/// Tags in the signature header: signatures by RSA and by DSA of main header and payload together.
/// RPM also makes one for packages that have no digest of their payload.
const SIGNATURES_OF_PACKAGE: [u32; 2] = [1002, 1005];
/// Tag in the main header: the digest of the payload as it is stored, in hex. Packages that were
/// built with RPM before 4.14, or with some other tools, lack it.
const PAYLOAD_DIGEST: u32 = 5092;
/// Tag in the main header: the algorithm of the payload digest; 8 is SHA-256, and 10 is SHA-512.
/// Packages in the format of RPM 6 lack it, since theirs is always SHA-256.
const PAYLOAD_DIGEST_KIND: u32 = 5093;
/// Tags in the main header: the identity of the package.
const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const EPOCH: u32 = 1003;
const ARCHITECTURE: u32 = 1022;
/// Tag in the main header: the source package. Source packages themselves do not have it.
const BUILT_FROM: u32 = 1044;
/// Tag in the main header: the texts of the changelog, the newest first.
const CHANGELOG_TEXT: u32 = 1082;

/// Verifies that one of `keys` signed the header of `package`, and that its payload has the digest
/// in the header or is covered by a signature too. Returns the identity in the header. The
/// signature must be valid at `time`.
///
/// # Errors
/// If none of the keys signed the package, or its content does not match the digest in its header,
/// or it cannot be read.
pub fn verify_package(
    mut package: impl Read,
    keys: &OpenPgpKeys,
    time: SignatureTime,
    limits: &Limits,
) -> Result<PackageIdentity, Failure> {
    let (signatures, header) = headers(&mut package, limits)?;
    let mut found = SIGNATURES_OF_HEADER
        .iter()
        .filter_map(|tag| signatures.binary(*tag))
        .map(<[u8]>::to_vec)
        .collect::<Vec<_>>();
    found.extend(signatures.texts(OPENPGP).iter().filter_map(|text| {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.decode(text).ok()
    }));
    if found.len() > MAX_SIGNATURES {
        return Err(Failure::failed(format!(
            "it has more than {MAX_SIGNATURES} signatures"
        )));
    }
    let mut outcome = Err(Failure::failed(NOT_SIGNED));
    // one valid signature is enough
    for signature in found {
        let verified = keys.verify_detached(&signature, time, || Ok(header.bytes.as_slice()));
        outcome = verified.map(drop);
        if outcome.is_ok() {
            break;
        }
    }
    let whole = SIGNATURES_OF_PACKAGE
        .iter()
        .find_map(|tag| signatures.binary(*tag));
    match whole {
        Some(signature) if outcome.is_err() || header.data(PAYLOAD_DIGEST).is_none() => {
            // the payload can be read only once
            let content = Cell::new(Some(header.bytes.as_slice().chain(package)));
            keys.verify_detached(signature, time, || {
                content
                    .take()
                    .ok_or_else(|| io::Error::other("several signatures cover the payload"))
            })?;
        }
        _ => {
            outcome?;
            header.check_payload(package)?;
        }
    }
    header.identity().ok_or_else(no_package)
}

/// Returns the first lines of the newest changelog entry of a package, or an empty list if the
/// package has no changelog.
///
/// # Errors
/// If `package` is not an RPM package, or cannot be read.
pub fn changelog(mut package: impl Read, limits: &Limits) -> Result<Vec<String>, Failure> {
    let (_, header) = headers(&mut package, limits)?;
    Ok(first_lines(
        header
            .texts(CHANGELOG_TEXT)
            .first()
            .into_iter()
            .flat_map(|text| text.lines()),
    ))
}

/// Reads the signature header and the main header of `package`, up to the payload.
fn headers(package: &mut impl Read, limits: &Limits) -> Result<(RpmHeader, RpmHeader), Failure> {
    let mut lead = [0; LEAD];
    package.read_exact(&mut lead).map_err(short)?;
    if lead[..4] != LEAD_MAGIC {
        return Err(no_package());
    }
    let signatures = RpmHeader::read(package, limits)?;
    let padding = signatures.bytes.len().next_multiple_of(8) - signatures.bytes.len();
    package.read_exact(&mut [0; 8][..padding]).map_err(short)?;
    let header = RpmHeader::read(package, limits)?;
    Ok((signatures, header))
}

/// A header of a package: 16 bytes with the magic, the entries of its index with 16 bytes each, and
/// the data.
struct RpmHeader {
    bytes: Vec<u8>,
    entries: usize,
}

impl RpmHeader {
    fn read(reader: &mut impl Read, limits: &Limits) -> Result<RpmHeader, Failure> {
        let mut start = [0; HEADER_START];
        reader.read_exact(&mut start).map_err(short)?;
        let [entries, data] = [&start[8..12], &start[12..16]].map(number);
        // both numbers come from the file: the size is checked before anything is allocated
        let size = entries as u64 * 16 + data as u64;
        if start[..8] != HEADER_MAGIC || size > limits.archive_bytes {
            return Err(no_package());
        }
        // grows with the bytes that are read, not with the size that the header claims
        let mut bytes = start.to_vec();
        reader
            .take(size)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 != HEADER_START as u64 + size {
            return Err(no_package());
        }
        Ok(RpmHeader { bytes, entries })
    }

    /// Returns the data from the first value of `tag` to the end of the header, and the number of
    /// its values.
    fn data(&self, tag: u32) -> Option<(&[u8], usize)> {
        let index = &self.bytes[HEADER_START..HEADER_START + self.entries * 16];
        let entry = index
            .chunks_exact(16)
            .find(|entry| number(&entry[..4]) == tag as usize)?;
        let [offset, count] = [&entry[8..12], &entry[12..16]].map(number);
        Some((
            self.bytes
                .get(HEADER_START + self.entries * 16 + offset..)?,
            count,
        ))
    }

    fn binary(&self, tag: u32) -> Option<&[u8]> {
        let (data, count) = self.data(tag)?;
        data.get(..count)
    }

    fn texts(&self, tag: u32) -> Vec<&str> {
        let Some((data, count)) = self.data(tag) else {
            return Vec::new();
        };
        // each text ends with a zero byte
        let texts = data.split(|byte| *byte == 0).take(count);
        texts
            .filter_map(|text| std::str::from_utf8(text).ok())
            .collect()
    }

    fn first_text(&self, tag: u32) -> Option<String> {
        self.texts(tag).first().map(|text| (*text).to_owned())
    }

    fn number(&self, tag: u32) -> Option<usize> {
        self.data(tag)
            .and_then(|(data, _)| data.get(..4))
            .map(number)
    }

    fn identity(&self) -> Option<PackageIdentity> {
        // an epoch of 0 is omitted, as for packages of an index: both must give the same text
        let epoch = self.number(EPOCH).filter(|epoch| *epoch > 0);
        let epoch = epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        let arch = if self.data(BUILT_FROM).is_some() {
            self.first_text(ARCHITECTURE)?
        } else {
            "src".into()
        };
        let version = format!(
            "{epoch}{}-{}",
            self.first_text(VERSION)?,
            self.first_text(RELEASE)?
        );
        Some(PackageIdentity {
            name: self.first_text(NAME)?,
            version,
            arch,
        })
    }

    /// Compares the rest of the package with the digest of the payload in the header.
    fn check_payload(&self, mut payload: impl Read) -> Result<(), Failure> {
        let algorithm = match self.number(PAYLOAD_DIGEST_KIND) {
            Some(8) | None => Algorithm::Sha256,
            Some(10) => Algorithm::Sha512,
            _ => return Err(no_payload_digest()),
        };
        let digests = self.texts(PAYLOAD_DIGEST);
        let expected = digests.first().ok_or_else(no_payload_digest)?;
        let found = digest_of(&mut payload, algorithm).map_err(unreadable)?;
        if found.hex() != *expected {
            return Err(Failure::failed(OTHER_PAYLOAD));
        }
        Ok(())
    }
}

/// Returns the big-endian number in at most four bytes.
fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

const NOT_SIGNED: &str = "it is not signed; ask its vendor for signed packages, or sign it with \
                          rpmsign and use your key as `key`";
const OTHER_PAYLOAD: &str = "its content does not match the digest in its signed header";

fn no_package() -> Failure {
    Failure::failed("it is not an RPM package, or it is damaged")
}

fn no_payload_digest() -> Failure {
    Failure::failed(
        "its signed header has no SHA-256 or SHA-512 digest of the content, and no signature \
         covers the content",
    )
}

fn short(error: io::Error) -> Failure {
    match error.kind() {
        // a truncated file is not a read error: retrying does not help
        io::ErrorKind::UnexpectedEof => no_package(),
        _ => unreadable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use landfall_model::sign::OpenPgpSigner;

    const WHAT: &str = "hello 1.0-1 noarch";

    /// Reads a test file. rpmbuild and rpmsign 4.18 made the packages: one is signed by RSA, one by
    /// Ed25519, and one is not signed.
    fn file(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/packages/");
        std::fs::read(format!("{folder}{name}")).unwrap()
    }

    fn verified(package: &[u8], key: &str) -> Result<PackageIdentity, Failure> {
        let keys = OpenPgpKeys::parse(&file(key)).unwrap();
        verify_package(package, &keys, SignatureTime::Now, &Limits::default())
    }

    #[test]
    fn the_identity_of_a_signed_package_is_returned() {
        for (package, key, other) in [
            ("signed.rpm", "key.asc", "other.asc"),
            ("signed-ed25519.rpm", "other.asc", "key.asc"),
        ] {
            let found = verified(&file(package), key).unwrap().to_string();
            assert_eq!(found, WHAT, "{package}");
            let error = verified(&file(package), other).unwrap_err();
            assert!(error.message.starts_with("it has no valid signature by "));
        }
        let error = verified(&file("unsigned.rpm"), "key.asc").unwrap_err();
        assert_eq!(error.message, NOT_SIGNED);
    }

    /// RPM 6 writes no algorithm of the payload digest into packages of its own format.
    #[test]
    fn a_payload_digest_without_an_algorithm_is_sha256() {
        let header = |entries: &[[u32; 4]], data: &[u8]| {
            let mut bytes = HEADER_MAGIC.to_vec();
            bytes.extend((entries.len() as u32).to_be_bytes());
            bytes.extend((data.len() as u32).to_be_bytes());
            for number in entries.iter().flatten() {
                bytes.extend(number.to_be_bytes());
            }
            bytes.extend(data);
            RpmHeader::read(&mut bytes.as_slice(), &Limits::default()).unwrap()
        };
        let digest = digest_of(&mut b"payload".as_slice(), Algorithm::Sha256).unwrap();
        let data = format!("{}\0", digest.hex()).into_bytes();
        let alone = header(&[[PAYLOAD_DIGEST, 8, 0, 1]], &data);
        alone.check_payload(b"payload".as_slice()).unwrap();
        let error = alone.check_payload(b"other".as_slice()).unwrap_err();
        assert_eq!(error.message, OTHER_PAYLOAD);
        // MD5 has the number 1
        let weak = header(
            &[[PAYLOAD_DIGEST, 8, 4, 1], [PAYLOAD_DIGEST_KIND, 4, 0, 1]],
            &[[0, 0, 0, 1_u8].as_slice(), data.as_slice()].concat(),
        );
        let error = weak.check_payload(b"payload".as_slice()).unwrap_err();
        assert_eq!(error, no_payload_digest());
        let none = header(&[], b"").check_payload(b"payload".as_slice());
        assert_eq!(none, Err(no_payload_digest()));
    }

    /// A package without a digest of its payload, as RPM made them before 4.14.
    #[test]
    fn a_signature_of_header_and_payload_is_enough() {
        let signer = OpenPgpSigner::parse(&file("site-key.asc"), None).unwrap();
        let keys = OpenPgpSigner::public_half(&file("site-key.asc")).unwrap();
        let signature = |content: &[u8]| {
            let armored = signer.detached(content, Timestamp::now()).unwrap();
            armored.into_bytes()
        };
        let header = |tags: &[(u32, u32, &[u8])]| {
            let (mut index, mut data) = (Vec::<u8>::new(), Vec::<u8>::new());
            for (tag, count, value) in tags {
                for number in [*tag, 7, data.len() as u32, *count] {
                    index.extend(number.to_be_bytes());
                }
                data.extend_from_slice(value);
            }
            let counts = [tags.len() as u32, data.len() as u32].map(u32::to_be_bytes);
            [&HEADER_MAGIC[..], &counts.concat(), &index, &data].concat()
        };
        let texts = [
            (NAME, "old\0"),
            (VERSION, "1\0"),
            (RELEASE, "2\0"),
            (ARCHITECTURE, "noarch\0"),
            (BUILT_FROM, "old.src.rpm\0"),
        ];
        let main = header(&texts.map(|(tag, text)| (tag, 1, text.as_bytes())));
        let signed = [&main[..], b"payload"].concat();
        let checked = |signatures: &[(u32, &[u8])], content: &[u8]| {
            let tags: Vec<(u32, u32, &[u8])> = signatures
                .iter()
                .map(|(tag, bytes)| (*tag, bytes.len() as u32, *bytes))
                .collect();
            let mut package = file("signed.rpm")[..LEAD].to_vec();
            package.extend(header(&tags));
            package.resize(package.len().next_multiple_of(8), 0);
            package.extend_from_slice(content);
            let time = SignatureTime::Now;
            verify_package(&*package, &keys, time, &Limits::default()).map(|it| it.to_string())
        };
        let (of_header, of_all) = (signature(&main), signature(&signed));
        let found = Ok("old 1-2 noarch".to_owned());
        assert_eq!(checked(&[(1002, &of_all[..])], &signed), found);
        let both = [(268, &of_header[..]), (1005, &of_all[..])];
        assert_eq!(checked(&both, &signed), found);
        for at in [20, main.len() - 1, signed.len() - 1] {
            let mut changed = signed.clone();
            changed[at] ^= 1;
            assert!(checked(&both, &changed).is_err(), "byte {at}");
        }
        let more = [&signed[..], b"x"].concat();
        assert!(checked(&both, &more).is_err());
        // a signature of the header alone says nothing about the payload
        let alone = [(268, &of_header[..])];
        assert_eq!(checked(&alone, &signed), Err(no_payload_digest()));
        let as_whole = [(268, &of_header[..]), (1002, &of_header[..])];
        assert!(checked(&as_whole, &signed).is_err());
    }

    /// The signature and the payload digest cover every byte after the signature header. They do
    /// not cover the lead and the signature header.
    #[test]
    fn a_changed_package_is_rejected() {
        let whole = file("signed.rpm");
        let signatures = RpmHeader::read(&mut &whole[LEAD..], &Limits::default())
            .unwrap()
            .bytes
            .len();
        let covered = LEAD + signatures.next_multiple_of(8);
        for at in (covered..whole.len())
            .step_by(37)
            .chain([covered, whole.len() - 1])
        {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(verified(&changed, "key.asc").is_err(), "byte {at}");
        }
        let more = [whole.as_slice(), b"x"].concat();
        let error = verified(&more, "key.asc").unwrap_err();
        assert_eq!(error.message, OTHER_PAYLOAD);
    }

    #[test]
    fn the_number_of_signatures_is_limited() {
        let signed = file("signed.rpm");
        let signatures = RpmHeader::read(&mut &signed[LEAD..], &Limits::default()).unwrap();
        let rest = &signed[LEAD + signatures.bytes.len().next_multiple_of(8)..];
        // a signature header that has only `count` texts `AA==`
        let with_texts = |count: usize| {
            let mut package = signed[..LEAD].to_vec();
            package.extend(HEADER_MAGIC);
            for number in [1, 5 * count as u32, OPENPGP, 8, 0, count as u32] {
                package.extend(number.to_be_bytes());
            }
            package.extend(b"AA==\0".repeat(count));
            package.resize(LEAD + (package.len() - LEAD).next_multiple_of(8), 0);
            [package.as_slice(), rest].concat()
        };
        let error = |count| {
            verified(&with_texts(count), "key.asc")
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(0), NOT_SIGNED);
        assert!(!error(32).contains("more than"), "{}", error(32));
        assert_eq!(error(33), "it has more than 32 signatures");
    }

    #[test]
    fn truncated_and_hostile_packages_are_rejected() {
        let whole = file("signed.rpm");
        for length in [0, 10, LEAD, LEAD + 8, LEAD + 100, whole.len() - 1] {
            assert!(
                verified(&whole[..length], "key.asc").is_err(),
                "{length} bytes"
            );
        }
        let mut large = whole.clone();
        large[LEAD + 12..LEAD + 16].copy_from_slice(&[0xff; 4]);
        assert_eq!(verified(&large, "key.asc"), Err(no_package()));
        // offsets beyond the header
        let mut beyond = whole;
        for entry in 0..8 {
            beyond[LEAD + HEADER_START + entry * 16 + 8] = 0x7f;
        }
        let error = verified(&beyond, "key.asc").unwrap_err();
        assert_eq!(error.message, NOT_SIGNED);
    }
}
