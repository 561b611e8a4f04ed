//! The signatures of commits and annotated tags, and the bytes that they sign.

/// A signed commit or annotated tag, split into the signed bytes and the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedObject {
    /// The bytes that are signed: the object without its signature.
    pub payload: Vec<u8>,
    /// The armored signature.
    pub signature: Vec<u8>,
}

/// The lines with which signatures of tags begin (gitformat-signature).
const SIGNATURE_LINES: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
];

/// The beginning of the header that contains the signature of a commit.
const SIGNATURE_HEADER: &[u8] = b"gpgsig ";

/// The part of a commit to which a line of its head belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitPart {
    Payload,
    Signature,
    /// The signature of the same commit in another object format. It is not among the signed bytes.
    OtherSignature,
}

impl SignedObject {
    /// Splits a commit. `None` if it has no signature.
    pub fn of_commit(content: &[u8]) -> Option<SignedObject> {
        let mut payload = Vec::new();
        let mut signature = Vec::new();
        let mut part = CommitPart::Payload;
        let mut rest = content;
        while let Some(line) = first_line(rest) {
            // an empty line ends the head; the message may contain anything
            if line == b"\n" {
                break;
            }
            rest = &rest[line.len()..];
            if !line.starts_with(b" ") {
                part = if line.starts_with(SIGNATURE_HEADER) {
                    CommitPart::Signature
                } else if line.starts_with(b"gpgsig") {
                    CommitPart::OtherSignature
                } else {
                    CommitPart::Payload
                };
            }
            match part {
                CommitPart::Payload => payload.extend(line),
                CommitPart::OtherSignature => {}
                // further lines of a header are indented by a space
                CommitPart::Signature => {
                    let text = line.strip_prefix(SIGNATURE_HEADER);
                    signature.extend(text.unwrap_or_else(|| &line[1..]));
                }
            }
        }
        payload.extend(rest);
        (!signature.is_empty()).then_some(SignedObject { payload, signature })
    }

    /// Splits an annotated tag. `None` if it has no signature.
    pub fn of_tag(content: &[u8]) -> Option<SignedObject> {
        let mut at = 0;
        let mut start = None;
        while let Some(line) = first_line(&content[at..]) {
            if SIGNATURE_LINES.iter().any(|begin| line.starts_with(begin)) {
                // as in git, the last one counts: the message may quote a signature
                start = Some(at);
            }
            at += line.len();
        }
        let (payload, signature) = content.split_at(start?);
        Some(SignedObject {
            payload: payload.to_vec(),
            signature: signature.to_vec(),
        })
    }

    /// The time of the commit or tag in seconds since 1970, as its signer wrote it.
    pub fn time(&self) -> Option<i64> {
        let mut rest = &self.payload[..];
        while let Some(line) = first_line(rest).filter(|line| *line != b"\n") {
            if line.starts_with(b"committer ") || line.starts_with(b"tagger ") {
                let text = std::str::from_utf8(line).ok()?;
                let (_, time) = text.rsplit_once("> ")?;
                return time.split(' ').next()?.parse().ok();
            }
            rest = &rest[line.len()..];
        }
        None
    }
}

/// The first line of `bytes` with its line break. `None` if there are no bytes.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let line = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "tree e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\nauthor A <a> 1 +0000\n\
                        committer C <c> 1700000000 +0100\n";

    #[test]
    fn the_signature_of_a_commit_is_a_header() {
        let commit = format!(
            "{HEAD}gpgsig -----BEGIN SSH SIGNATURE-----\n U1NI\n \n -----END SSH SIGNATURE-----\n\
             gpgsig-sha256 x\n y\nencoding UTF-8\n\ngpgsig in the message\n"
        );
        let signed = SignedObject::of_commit(commit.as_bytes()).unwrap();
        assert_eq!(
            String::from_utf8(signed.payload.clone()).unwrap(),
            format!("{HEAD}encoding UTF-8\n\ngpgsig in the message\n")
        );
        assert_eq!(
            signed.signature,
            b"-----BEGIN SSH SIGNATURE-----\nU1NI\n\n-----END SSH SIGNATURE-----\n"
        );
        assert_eq!(signed.time(), Some(1_700_000_000));
        let unsigned = format!("{HEAD}\n-----BEGIN SSH SIGNATURE-----\n");
        assert_eq!(SignedObject::of_commit(unsigned.as_bytes()), None);
    }

    #[test]
    fn the_signature_of_a_tag_follows_its_message() {
        let payload = "object e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\ntype commit\ntag v1\n\
                       tagger T <t> 5 +0000\n\n-----BEGIN PGP SIGNATURE-----\nquoted\n";
        let signature = "-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n";
        let signed = SignedObject::of_tag(format!("{payload}{signature}").as_bytes()).unwrap();
        assert_eq!(signed.payload, payload.as_bytes());
        assert_eq!(signed.signature, signature.as_bytes());
        assert_eq!(signed.time(), Some(5));
        assert_eq!(SignedObject::of_tag(b"object x\n\n ----- no\n"), None);
    }
}
