//! The fields of an X.509 certificate that messages show: subject, issuer and validity. webpki
//! verifies certificates. The validity that is read here is used for verification only if the
//! settings contain the server certificate itself.

use jiff::Timestamp;
use landfall_model::report::one_line;
use std::net::{Ipv4Addr, Ipv6Addr};
use x509_parser::asn1_rs::Tag;
use x509_parser::certificate::X509CertificateParser;
use x509_parser::extensions::GeneralName;
use x509_parser::nom::Parser;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_ORGANIZATION_NAME,
    OID_X509_ORGANIZATIONAL_UNIT,
};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The fields of a certificate that are shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The subject, as `CN=…, O=…`.
    pub subject: String,
    /// The issuer, in the same form.
    pub issuer: String,
    /// The first moment of its validity.
    pub not_before: Timestamp,
    /// The last moment of its validity.
    pub not_after: Timestamp,
    // The DER forms are compared: different names can have the same text.
    subject_der: Vec<u8>,
    issuer_der: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate in DER form; `None` if it cannot be parsed.
    pub fn read(der: &[u8]) -> Option<Certificate> {
        // Extensions are not shown: a bad one must not hide the other fields.
        let (_, read) = X509CertificateParser::new()
            .with_deep_parse_extensions(false)
            .parse(der)
            .ok()?;
        let subject = read.subject();
        let issuer = read.issuer();
        let validity = read.validity();
        Some(Certificate {
            subject: name_text(subject),
            issuer: name_text(issuer),
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
            subject_der: subject.as_raw().into(),
            issuer_der: issuer.as_raw().into(),
        })
    }

    /// The DNS names and addresses that a certificate in DER form is valid for.
    pub fn names(der: &[u8]) -> Vec<String> {
        let Ok((_, read)) = X509CertificateParser::new().parse(der) else {
            return Vec::new();
        };
        let Ok(Some(names)) = read.subject_alternative_name() else {
            return Vec::new();
        };
        let names = &names.value.general_names;
        names.iter().filter_map(subject_name).collect()
    }

    /// Whether the subject of the certificate is also its issuer.
    pub fn is_self_issued(&self) -> bool {
        self.subject_der == self.issuer_der
    }

    /// Whether `authority` has the name of this certificate's issuer.
    pub fn is_issued_by(&self, authority: &Certificate) -> bool {
        self.issuer_der == authority.subject_der
    }
}

/// Returns the DNS name or address in a subject alternative name.
fn subject_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        // the text comes from the server and is printed in messages
        GeneralName::DNSName(name) => Some(one_line(name)),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(Ipv4Addr::new(a, b, c, d).to_string()),
            _ => Some(Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        // other kinds, such as email addresses, name no host
        _ => None,
    }
}

/// Returns the common attributes of a name, in the certificate's order; `(no name)` if it has none.
fn name_text(name: &X509Name<'_>) -> String {
    let labels = [
        (OID_X509_COMMON_NAME, "CN"),
        (OID_X509_COUNTRY_NAME, "C"),
        (OID_X509_ORGANIZATION_NAME, "O"),
        (OID_X509_ORGANIZATIONAL_UNIT, "OU"),
    ];
    let parts: Vec<String> = name
        .iter_attributes()
        .filter_map(|attribute| {
            let (_, label) = labels
                .iter()
                .find(|(oid, _)| oid == attribute.attr_type())?;
            // the text comes from the server and is printed in messages
            Some(format!("{label}={}", one_line(&attribute_text(attribute))))
        })
        .collect();
    if parts.is_empty() {
        "(no name)".into()
    } else {
        parts.join(", ")
    }
}

/// Returns the text of an attribute, which is UTF-16 in a `BMPString`.
fn attribute_text(attribute: &AttributeTypeAndValue<'_>) -> String {
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
    fn line_breaks_in_dns_names_are_escaped() {
        let key = rcgen::KeyPair::generate().unwrap();
        let name = "a.test\nok: trusted".to_owned();
        let made = rcgen::CertificateParams::new(vec![name])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        assert_eq!(Certificate::names(made.der()), ["a.test\\nok: trusted"]);
    }

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
        assert_eq!(read.not_before.to_string(), "2020-01-02T00:00:00Z");
        assert_eq!(read.not_after.to_string(), "2051-03-04T00:00:00Z");
        // truncated anywhere, it cannot be parsed
        for end in 0..made.der().len() {
            assert_eq!(Certificate::read(&made.der()[..end]), None, "{end}");
        }
    }
}
