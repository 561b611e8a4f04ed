//! The few fields of an X.509 certificate that messages need: whose it is, who issued it, how long it is
//! good (RFC 5280, 4.1). Only for people: what is trusted is decided by webpki.

use jiff::Timestamp;

/// A certificate as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Subject, as `CN=…, O=…`.
    pub subject: String,
    /// Issuer in the same form.
    pub issuer: String,
    /// First moment of its validity.
    pub from: Timestamp,
    /// Last moment of its validity.
    pub until: Timestamp,
    /// Both names as encoded, to compare them.
    subject_der: Vec<u8>,
    issuer_der: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate in DER form; `None` where it is none.
    pub fn read(der: &[u8]) -> Option<Certificate> {
        let mut certificate = Der(Der(der).expect(SEQUENCE)?);
        let mut fields = Der(certificate.expect(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.next()?;
        }
        fields.next()?; // serial number
        fields.next()?; // algorithm
        let issuer = fields.expect(SEQUENCE)?;
        let mut validity = Der(fields.expect(SEQUENCE)?);
        let subject = fields.expect(SEQUENCE)?;
        let (from, until) = (time(validity.next()?)?, time(validity.next()?)?);
        Some(Certificate {
            subject: name(subject),
            issuer: name(issuer),
            from,
            until,
            subject_der: subject.to_vec(),
            issuer_der: issuer.to_vec(),
        })
    }

    /// Whether it names itself as its issuer.
    pub fn is_self_issued(&self) -> bool {
        self.subject_der == self.issuer_der
    }

    /// Whether `authority` has the name of this certificate's issuer.
    pub fn is_issued_by(&self, authority: &Certificate) -> bool {
        self.issuer_der == authority.subject_der
    }
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BMP_STRING: u8 = 0x1e;

/// A reader of DER: tag, length, content.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }
}

/// A name's attributes that people know, in the certificate's order; `(no name)` where there is none.
fn name(der: &[u8]) -> String {
    let mut parts = Vec::new();
    let mut sets = Der(der);
    while let Some(set) = sets.expect(SET) {
        let mut attributes = Der(set);
        while let Some(attribute) = attributes.expect(SEQUENCE) {
            let mut pair = Der(attribute);
            let (Some((_, kind)), Some((tag, value))) = (pair.next(), pair.next()) else { continue };
            // id-at, 2.5.4.N
            let word = match kind {
                [0x55, 0x04, 3] => "CN",
                [0x55, 0x04, 6] => "C",
                [0x55, 0x04, 10] => "O",
                [0x55, 0x04, 11] => "OU",
                _ => continue,
            };
            let value = if tag == BMP_STRING {
                let units: Vec<u16> =
                    value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
                String::from_utf16_lossy(&units)
            } else {
                String::from_utf8_lossy(value).into_owned()
            };
            parts.push(format!("{word}={value}"));
        }
    }
    if parts.is_empty() { "(no name)".into() } else { parts.join(", ") }
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ` (RFC 5280, 4.1.2.5).
fn time((tag, content): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok().filter(|text| text.is_ascii())?;
    let text = match tag {
        UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (date, clock) = (
        format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?),
        format!("{}:{}:{}Z", part(8, 10)?, part(10, 12)?, part(12, 14)?),
    );
    format!("{date}T{clock}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_times_are_read() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["reg.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, "Bücher Root");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Corp, Inc.");
        params.not_before = rcgen::date_time_ymd(2020, 1, 2);
        params.not_after = rcgen::date_time_ymd(2051, 3, 4);
        let made = params.self_signed(&key).unwrap();
        let read = Certificate::read(made.der()).unwrap();
        assert_eq!(read.subject, "CN=Bücher Root, O=Corp, Inc.");
        assert!(read.is_self_issued() && read.is_issued_by(&read));
        assert_eq!(read.from.to_string(), "2020-01-02T00:00:00Z");
        assert_eq!(read.until.to_string(), "2051-03-04T00:00:00Z");
        // cut anywhere, it is none
        for end in 0..made.der().len() {
            assert_eq!(Certificate::read(&made.der()[..end]), None, "{end}");
        }
    }
}
