//! Signatures that OpenSSH made, and files of allowed signers.

use super::public_key::strings;
use super::*;
use crate::Failure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

const NAMESPACE: &str = "landfall-bundle-v1";
const MESSAGE: &[u8] = b"landfall\n";

/// `ssh-keygen -Y sign -n landfall-bundle-v1` (OpenSSH 9.2) over [`MESSAGE`], by throw-away keys.
const ED25519: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgMZQqGKBtWqaDDxJIvuQ8hYjx5k
b6/re+BlmecQUoltgAAAASbGFuZGZhbGwtYnVuZGxlLXYxAAAAAAAAAAZzaGE1MTIAAABT
AAAAC3NzaC1lZDI1NTE5AAAAQM2IlBu/ixZxJS3aSCaEcMCWx4dwRZ3oYgABGsudMitPiy
KChp6rg6R+ncU/kciZFV+YoDmVqS+CoBjI4qEKDg8=
-----END SSH SIGNATURE-----
";
const ED25519_SHA256: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgMZQqGKBtWqaDDxJIvuQ8hYjx5k
b6/re+BlmecQUoltgAAAASbGFuZGZhbGwtYnVuZGxlLXYxAAAAAAAAAAZzaGEyNTYAAABT
AAAAC3NzaC1lZDI1NTE5AAAAQJU4yKJu4aHN/pfkOlFXd1K+CteEd64sWsiBEYYkxXm1L4
CE/ekqvTBXZXtYl+1HCJmjQio8DS0Q3WkH9R6Uow8=
-----END SSH SIGNATURE-----
";
const P256: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAGgAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAE
EEzW7ga6FBvTuf7+amatD7IpTRQ7T/OXcIy1m8g2vwHdXfXqBLeEULnQv7kN5yRf5+jByd
vbu83TSMuJyuPAL2sAAAABJsYW5kZmFsbC1idW5kbGUtdjEAAAAAAAAABnNoYTUxMgAAAG
QAAAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAEkAAAAhAKmPVaR92qHRVcFk18pj44s0VCaX
UFSnaHTUO0tXm9rwAAAAIE/GP5d+X74/uAQ5hKPtd17eo6p2whKgga10L8SkvTkZ
-----END SSH SIGNATURE-----
";
const P384: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAIgAAAATZWNkc2Etc2hhMi1uaXN0cDM4NAAAAAhuaXN0cDM4NAAAAG
EE69bdTJpJVNR46t8iMTUEpEv8V9rIj38K8Mmi8YfNKMSMeqxahieUXoOXp3Ha/u0uVjYC
3mU0BqTGnTHTuhCLPKWbdwphuTQhP0EDmfy4pMwgE9ElRBmf5/xXzURW7dO5AAAAEmxhbm
RmYWxsLWJ1bmRsZS12MQAAAAAAAAAGc2hhNTEyAAAAhAAAABNlY2RzYS1zaGEyLW5pc3Rw
Mzg0AAAAaQAAADEAxspa6dnGCdW1Q1+Z2nto1V6X2AN2oB73BvCxYsVN2oh84aAXzmQiVo
N23KV22PryAAAAMHpWMVp5ZHMYoYBny2hsvuDPTzb139VJ2dZUswniG1Kjm3es0bMjeL/0
p5JYffZr6Q==
-----END SSH SIGNATURE-----
";
const P521: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAAKwAAAATZWNkc2Etc2hhMi1uaXN0cDUyMQAAAAhuaXN0cDUyMQAAAI
UEANn+cMctLt2sdkO4k8YX7mftEhPdoUgxbaRm+oX+QUTNPDVeeoF+jM1Ryd9lRKnUWohy
41id4kC1zAyaYWMoh/kbAKWWhXRBNcaGWJFIOlNMgo5rBdZA0GiNAeLj0h69zaE9OeLxGE
LWB779nZCV05yC42Q59P7bpb43USbPZcSqMX2/AAAAEmxhbmRmYWxsLWJ1bmRsZS12MQAA
AAAAAAAGc2hhMjU2AAAApwAAABNlY2RzYS1zaGEyLW5pc3RwNTIxAAAAjAAAAEIBKUcXpl
RXXwF+XVKdwpN/KL1IdnP3PnNIKK0lfG/5bOQMWbsQHnhGr7NZ+6yvk9d8nN+Hq5J7kXHB
t1/O8Q01wmsAAABCAXljKfssCyhV/WaJgBA5prrDxBC2vk6oHHf4vmqLnFoTVNbSKiz2Az
6nKNp3Jb0uG7dxPyLIIlCJNFvbPRSDUn5N
-----END SSH SIGNATURE-----
";
const RSA: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAARcAAAAHc3NoLXJzYQAAAAMBAAEAAAEBAMbmeD2jnNZYIVK+7hM40Z
xY8fanAMM5N1WBbknOFElEON1jHoXzPRR8h2RyypEX2+fDzeyHZ9Mp6ruyOkT59RCt9DQ/
sIILXFkoZk3FfGoqWo/l6vcMKk6uhbVArLESH7KHL4DSisUwSOjf7FLWPHgjTvGY2/xoYY
/923J4TK3Zdml3Q5IwQR4ZNjht1CMIofVXhrPMw8rg4E++cHlPLaTs8nucASP9+9mn16kk
GcmMIXGvFb0mILWRtA14qvi/hVjg+bP/yYgXoWkaH6LYltKKdk/oj9qVhyG5XGRKgJ5QBw
8Dhau3mzLbHJH9mcWnAc3cKOaVAEPW51TPJxk5CcUAAAASbGFuZGZhbGwtYnVuZGxlLXYx
AAAAAAAAAAZzaGE1MTIAAAEUAAAADHJzYS1zaGEyLTUxMgAAAQBiWoldTgFMDpFjGQc0kH
zyKvA1LeGDLBImGIe5nKiPqcASjajlbpgyKZvkXL0b9GbLhyYTWzubAZDUcLpE5yNa4Ump
cX0RwcKrv6qdcoXIt8V03r4JY93GMpAi5qzr//5B/RhsnVguM8R6/cFfHwm2n+4N9TdROq
ft+z2o9kFInTXWOjOVnkF8F70Nt7hL1gDxHD659owJnQ22Z0B0nwrjMKB41FZluIJn7X+R
FfnHbbwF+V4xqlenswEmaau5dn3kHgXRNb+A1KYT6MDB0Dr9zWdaAyyPLhval+N1zsI7UI
jvBAhJGSc1n8X1SQtpjYJ92Lf51okdZCkItj8PBRSL
-----END SSH SIGNATURE-----
";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDGUKhigbVqmgw8SSL7kPIWI8eZG+v63vgZZnnEFKJbY";

fn check(text: &str, message: &[u8]) -> Result<(), Failure> {
    Signature::parse(text.as_bytes())
        .unwrap()
        .check(NAMESPACE, message)
}

#[test]
fn signatures_of_openssh_are_valid_only_for_their_content() {
    for text in [ED25519, ED25519_SHA256, P256, P384, RSA] {
        check(text, MESSAGE).unwrap();
        assert!(
            check(text, b"landfall")
                .is_err_and(|error| error.message.contains(" did not make it for this content")),
            "{text}"
        );
        let other = Signature::parse(text.as_bytes())
            .unwrap()
            .check("file", MESSAGE);
        assert!(
            other.is_err_and(|error| error.message.starts_with("it was made for ")),
            "{text}"
        );
        assert!(
            Signature::parse(&text.as_bytes()[..200])
                .is_err_and(|error| error.message.starts_with("it is not an SSH signature"))
        );
    }
    assert_eq!(
        Signature::parse(ED25519.as_bytes()).unwrap().to_text(),
        ED25519
    );
    let error = check(P521, MESSAGE).unwrap_err().to_string();
    assert!(
        error.contains("cannot verify ecdsa-sha2-nistp521 signatures"),
        "{error}"
    );
}

#[test]
fn a_signature_with_a_changed_byte_is_rejected() {
    let bytes = super::public_key::dearmor("SSH SIGNATURE", ED25519).unwrap();
    let key = PublicKey::from_line(KEY).unwrap();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        let text = super::armor("SSH SIGNATURE", &bad, 70);
        let Ok(signature) = Signature::parse(text.as_bytes()) else {
            continue;
        };
        let good = signature.check(NAMESPACE, MESSAGE).is_ok() && *signature.key() == key;
        // only the reserved field may have any value, and it is empty here
        assert!(!good, "{at}");
    }
}

#[test]
fn rsa_keys_have_from_2048_to_8192_bits() {
    let signed_by = |first: u8, bytes: usize| {
        let mut modulus = vec![0xff; bytes];
        modulus[0] = first;
        let number = super::public_key::number;
        let blob = [strings(&[b"ssh-rsa"]), number(&[1, 0, 1]), number(&modulus)].concat();
        let key = PublicKey::from_blob(&blob).unwrap();
        key.has_signed(&strings(&[b"rsa-sha2-512", b"x"]), MESSAGE)
    };
    let refused = |first: u8, bytes: usize, why: &str| {
        let failure = signed_by(first, bytes).unwrap_err();
        assert!(failure.message.contains(why), "{failure}");
    };
    refused(0x7f, 256, "has fewer than 2048 bits");
    assert_eq!(signed_by(0x80, 256), Ok(false));
    assert_eq!(signed_by(0xff, 1024), Ok(false));
    refused(0x01, 1025, "has more than 8192 bits");
}

#[test]
fn a_tokens_signature_covers_its_flags_and_counter() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let kind = b"sk-ssh-ed25519@openssh.com";
    let key = PublicKey::from_blob(&strings(&[kind, pair.public_key().as_ref(), b"ssh:"])).unwrap();
    let flags_and_counter = [1, 0, 0, 0, 42];
    let message = [
        &Sha256::digest(b"ssh:")[..],
        &flags_and_counter,
        &Sha256::digest(b"data"),
    ]
    .concat();
    let value = pair.sign(&message);
    let signature =
        |flags_and_counter: &[u8]| [&strings(&[kind, value.as_ref()]), flags_and_counter].concat();
    assert!(
        key.has_signed(&signature(&flags_and_counter), b"data")
            .unwrap()
    );
    assert!(
        !key.has_signed(&signature(&[1, 0, 0, 0, 43]), b"data")
            .unwrap()
    );
    assert!(
        !key.has_signed(&signature(&flags_and_counter), b"date")
            .unwrap()
    );
    assert!(
        !key.has_signed(&signature(&flags_and_counter[..4]), b"data")
            .unwrap()
    );
}

fn allowed(options: &str) -> Result<String, String> {
    let text = format!("# who may sign\n\nboard@example.com {options} {KEY} a comment\n");
    let signers = AllowedSigners::parse("allowed", &text, &TimeZone::fixed(jiff::tz::offset(2)));
    let signers = signers.map_err(|fault| fault.to_string())?;
    let now: Timestamp = "2026-11-20T11:00:00Z".parse().unwrap();
    let key = PublicKey::from_line(KEY).unwrap();
    signers
        .principals(&key, NAMESPACE, now)
        .map(str::to_owned)
        .map_err(|error| error.to_string())
}

#[test]
fn a_key_is_accepted_only_for_its_namespaces_and_within_its_validity() {
    for good in [
        "",
        "namespaces=\"landfall-bundle-v1\"",
        "namespaces=\"git,landfall-*\"",
        "NAMESPACES=\"l?ndfall*v1\"",
        "namespaces=landfall-bundle-v1",
        "valid-after=\"20261120\"",
        "valid-after=20261120125959,valid-before=20261120130000",
        "valid-before=\"202611201100Z\"",
        "valid-after=\"20260101\",valid-before=\"20270101\",namespaces=\"*\"",
    ] {
        assert_eq!(allowed(good), Ok("board@example.com".into()), "{good}");
    }
    for (bad, why) in [
        (
            "namespaces=\"git,file\"",
            "for the namespaces \"git,file\" only",
        ),
        ("namespaces=\"*,!landfall-*\"", "only"),
        ("namespaces=\"landfall\"", "only"),
        (
            "valid-after=\"20261121\"",
            "line 3 allows it from 2026-11-20T22:00:00Z on",
        ),
        (
            "valid-before=\"202611201100\"",
            "line 3 allowed it until 2026-11-20T09:00:00Z",
        ),
        ("valid-before=\"20261120105959Z\"", "until"),
        ("cert-authority", "certificates"),
    ] {
        let error = allowed(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn a_key_file_with_allowed_signers_respects_their_options() {
    let now: Timestamp = "2026-11-20T11:00:00Z".parse().unwrap();
    let verify = |line: &str, time| {
        let key = FileKey::parse("allowed", format!("a {line} {KEY}\n").as_bytes()).unwrap();
        assert!(key.may_check(ED25519.as_bytes()) && key.signature_endings() == [".sig"]);
        let signer = key.verify_in(NAMESPACE, ED25519.as_bytes(), time, now, || Ok(MESSAGE));
        let has_signer = signer.as_ref().map(|name| key.has_in(NAMESPACE, name));
        has_signer.map_err(ToString::to_string)
    };
    let good = "namespaces=\"landfall-*\",valid-after=\"20261119\",valid-before=\"202611201100\"";
    // the signature contains no time
    for time in [SignatureTime::Now, SignatureTime::Made] {
        for good in ["", good] {
            assert_eq!(verify(good, time), Ok(true), "{good}");
        }
        for (bad, why) in [
            ("namespaces=\"file\"", "for the namespaces \"file\" only"),
            (
                "valid-before=\"202611201059\"",
                "allowed does not allow that: line 1 allowed it until 2026-11-20T10:59:00Z",
            ),
            ("valid-after=\"20261121\"", "from 2026-11-21T00:00:00Z on"),
            ("cert-authority", "certificates"),
        ] {
            let refused = verify(bad, time).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
    let mixed = format!("{KEY}\na {KEY}\n");
    let error = FileKey::parse("allowed", mixed.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: the principal is missing: write the name of the signer before the key"
    );
}

#[test]
fn one_valid_line_is_enough_and_quotes_keep_words_together() {
    let expired = format!("old@example.com valid-before=\"20200101\" {KEY}");
    let text = format!("{expired}\r\n\"Change Board,*@example.com\"\t{KEY}\n");
    let now = "2026-11-20T11:00:00Z".parse().unwrap();
    let key = PublicKey::from_line(KEY).unwrap();
    let signers = AllowedSigners::parse("f", &text, &TimeZone::UTC).unwrap();
    assert_eq!(
        signers.principals(&key, NAMESPACE, now).unwrap(),
        "Change Board,*@example.com"
    );
    let other = Signature::parse(P256.as_bytes()).unwrap();
    let error = signers
        .principals(other.key(), NAMESPACE, now)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no line has this key") && error.contains("SHA256:"),
        "{error}"
    );
    assert!(signers.warnings().is_empty());
    let authority =
        AllowedSigners::parse("f", &format!("a cert-authority {KEY}"), &TimeZone::UTC).unwrap();
    assert_eq!(
        authority.warnings(),
        ["f:1: cert-authority is not supported; this line is ignored"]
    );
}

#[test]
fn malformed_lines_are_reported_with_their_position() {
    let (kind, base64) = KEY.split_once(' ').unwrap();
    for (line, place, why) in [
        ("a".to_owned(), "f:2:2", "expected a key"),
        (format!("a {kind}"), "f:2:3", "not an OpenSSH key"),
        (
            format!("{KEY} me@here"),
            "f:2:1",
            "the principal is missing",
        ),
        (
            format!("a {kind} {}", &base64[..40]),
            "f:2:3",
            "not an OpenSSH key",
        ),
        (format!("a ssh-rsa {base64}"), "f:2:3", "not an OpenSSH key"),
        (
            format!("a namespace=\"x\" {KEY}"),
            "f:2:3",
            "neither a key nor a known option",
        ),
        (
            format!("a cert-authority,valid-after=\"2026\" {KEY}"),
            "f:2:18",
            "this is not a time",
        ),
        (
            format!("a valid-after=20261399 {KEY}"),
            "f:2:3",
            "this is not a time",
        ),
        (
            format!("a namespaces=x,namespaces=y {KEY}"),
            "f:2:16",
            "repeated",
        ),
        (
            format!("a valid-after=20270101,valid-before=20260101 {KEY}"),
            "f:2:1",
            "valid-before is not later",
        ),
        (
            format!("a \"é {KEY}"),
            "f:2:3",
            "neither a key nor a known option",
        ),
    ] {
        let error =
            AllowedSigners::parse("f", &format!("#\n{line}\n"), &TimeZone::UTC).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with(&format!("{place}: ")) && error.contains(why),
            "{line}: {error}"
        );
    }
}
