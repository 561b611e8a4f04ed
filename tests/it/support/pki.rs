//! A certificate authority for one test, deleted with its folder, and keys of openssl.

use super::{Place, run};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::PathBuf;
use std::process::Command;

/// Writes the certificate `NAME.pem` of `subject` and its key `NAME.key` to `place`, made by
/// `openssl req -x509` with these further arguments. Returns both paths.
pub fn self_signed(place: &Place, name: &str, subject: &str, more: &[&str]) -> (PathBuf, PathBuf) {
    let [certificate, key] = ["pem", "key"].map(|end| place.path(format!("{name}.{end}")));
    run(Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"])
        .args(["-days", "2", "-subj", subject])
        .args(more)
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate));
    (certificate, key)
}

/// Writes the key pair `NAME.pem` and `NAME.pub` to `place`. The algorithm is a curve, such as
/// `P-256`, or `ed25519` or `RSA`. Needs `openssl`.
pub fn key_pair(place: &Place, name: &str, algorithm: &str) {
    let (key, public) = (format!("{name}.pem"), format!("{name}.pub"));
    let mut make = Command::new("openssl");
    match algorithm {
        "RSA" => make.args(["genrsa", "-out", &key, "2048"]),
        "ed25519" => make.args(["genpkey", "-algorithm", algorithm, "-out", &key]),
        curve => make
            .args(["genpkey", "-algorithm", "EC", "-pkeyopt"])
            .arg(format!("ec_paramgen_curve:{curve}"))
            .args(["-out", &key]),
    };
    run(make.current_dir(place.dir()));
    run(Command::new("openssl")
        .args(["pkey", "-in", &key, "-pubout", "-out", &public])
        .current_dir(place.dir()));
}

pub struct Authority {
    /// The path of the authority's certificate in PEM form.
    pub pem: PathBuf,
    name: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// An authority called `name`. Its files are in the folder `name` of `place`.
    pub fn new(place: &Place, name: &str) -> Authority {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let pem = place.write(&format!("{name}/ca.pem"), made.pem());
        Authority {
            pem,
            name: name.into(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate for these names and addresses. Returns the paths of the certificate and
    /// of its key, both in PEM form.
    pub fn issue(&self, place: &Place, names: &[&str]) -> (PathBuf, PathBuf) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let first = names.first().map_or("client", String::as_str).to_owned();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, first.as_str());
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| format!("{}/{first}.{end}", self.name);
        (
            place.write(&path("cert"), made.pem()),
            place.write(&path("key"), key.serialize_pem()),
        )
    }
}
