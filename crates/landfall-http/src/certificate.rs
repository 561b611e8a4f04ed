//! The few fields of an X.509 certificate that messages show: its subject, its issuer, its
//! validity. They are for people; webpki decides what is trusted.

use jiff::Timestamp;
use landfall_model::report::one_line;
use x509_parser::asn1_rs::Tag;
use x509_parser::certificate::X509CertificateParser;
use x509_parser::extensions::GeneralName;
use x509_parser::nom::Parser;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_ORGANIZATION_NAME,
    OID_X509_ORGANIZATIONAL_UNIT,
};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

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
        // what an extension holds does not matter here, and must not hide the rest
        let (_, read) = X509CertificateParser::new()
            .with_deep_parse_extensions(false)
            .parse(der)
            .ok()?;
        let (subject, issuer, validity) = (read.subject(), read.issuer(), read.validity());
        Some(Certificate {
            subject: shown(subject),
            issuer: shown(issuer),
            from: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            until: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            subject_der: subject.as_raw().into(),
            issuer_der: issuer.as_raw().into(),
        })
    }

    /// The names that a certificate in DER form is for.
    pub fn names(der: &[u8]) -> Vec<String> {
        let Ok((_, read)) = X509CertificateParser::new().parse(der) else {
            return Vec::new();
        };
        let Ok(Some(names)) = read.subject_alternative_name() else {
            return Vec::new();
        };
        let shown = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match **bytes {
                [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
                _ => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            },
            _ => None,
        };
        names.value.general_names.iter().filter_map(shown).collect()
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

/// A name's attributes that people know, in the certificate's order; `(no name)` where there is
/// none.
fn shown(name: &X509Name<'_>) -> String {
    let words = [
        (OID_X509_COMMON_NAME, "CN"),
        (OID_X509_COUNTRY_NAME, "C"),
        (OID_X509_ORGANIZATION_NAME, "O"),
        (OID_X509_ORGANIZATIONAL_UNIT, "OU"),
    ];
    let part = |attribute: &AttributeTypeAndValue<'_>| {
        let (_, word) = words.iter().find(|(oid, _)| oid == attribute.attr_type())?;
        Some(format!("{word}={}", one_line(&text(attribute))))
    };
    let parts: Vec<String> = name.iter_attributes().filter_map(part).collect();
    if parts.is_empty() {
        "(no name)".into()
    } else {
        parts.join(", ")
    }
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> String {
    let bytes = attribute.as_slice();
    if attribute.attr_value().tag() == Tag::BmpString {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect();
        return String::from_utf16_lossy(&units);
    }
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_times_are_read() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["reg.test".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "Bücher Root");
        params
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, "Corp, Inc.");
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
