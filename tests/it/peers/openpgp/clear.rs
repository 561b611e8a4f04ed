//! Clear-signed texts: each is the provenance of a chart.

use super::keys::Key;
use super::{Case, file};
use crate::support::Place;
use crate::support::charts::Chart;

/// Changes the signed text of one chart.
type Change = fn(&str) -> String;

/// A chart for each case, with its provenance, and the cases.
pub fn cases(place: &Place) -> (Vec<Chart>, Vec<Case>) {
    let key = Key::new(place, "plain", "ed25519", "sign", "never");
    let public = key.public();
    let mut all: Vec<(Chart, Case)> = Vec::new();
    let mut add = |name, good, stricter, signed: &dyn Fn(&str) -> Vec<u8>, keys: &[u8]| {
        let chart = Chart::new(&file(all.len()), "1.0.0", "", &[]);
        let sums = format!("\n...\nfiles:\n  {}: {}\n", chart.file(), chart.digest());
        let provenance = signed(&sums);
        let case = Case {
            content: Vec::new(),
            stricter,
            ..Case::new(name, good, keys, &provenance)
        };
        all.push((
            Chart {
                provenance: Some(provenance),
                ..chart
            },
            case,
        ));
    };
    // texts
    for (name, head) in [
        ("plain", "name: x\n"),
        (
            "dashes",
            "- a\n-b\n--- c\n-----BEGIN PGP SIGNED MESSAGE-----\n- - d\n",
        ),
        ("blanks at the ends of lines", "a  \nb\t \n \t\n"),
        ("empty lines", "\n\n\na\n\n"),
        ("letters beyond ASCII", "größe: ✓\n"),
        ("a long line", "LONG"),
        ("CRLF line ends", "a\r\nb\r\n"),
        ("form feeds", "a \x0c\nb\x0b\n"),
        ("From at the start of a line", "From here\n"),
    ] {
        let head = head.replace("LONG", &"x".repeat(15000));
        add(
            name,
            true,
            None,
            &|sums| key.clear(5, format!("{head}{sums}").as_bytes(), &[]),
            &public,
        );
    }
    // changes in a text, and around it
    let changes: [(&str, bool, Option<&str>, Change); 19] = [
        ("changed", false, None, |text| {
            text.replace("name: x", "name: y")
        }),
        ("an added line", false, None, |text| {
            text.replace("name: x", "name: x\nmore: y")
        }),
        ("blanks added at the end of a line", true, None, |text| {
            text.replace("name: x", "name: x \t")
        }),
        ("blanks added at the start of a line", false, None, |text| {
            text.replace("name: x", " name: x")
        }),
        ("all line ends changed to CRLF", true, None, |text| {
            text.replace('\n', "\r\n")
        }),
        ("a dash that is escaped unnecessarily", true, None, |text| {
            text.replace("name: x", "- name: x")
        }),
        ("a dash that is not escaped", true, None, |text| {
            text.replace("- -dash", "-dash")
        }),
        ("no Hash header", false, None, |text| {
            text.replacen("Hash: SHA256\n", "", 1)
        }),
        (
            "a Hash header with another algorithm",
            false,
            None,
            |text| text.replacen("SHA256", "SHA512", 1),
        ),
        ("a Hash header with two algorithms", true, None, |text| {
            text.replacen("SHA256", "SHA512,SHA256", 1)
        }),
        ("an unknown header", false, None, |text| {
            text.replacen("Hash:", "Comment: x\nHash:", 1)
        }),
        ("no dashes are escaped", false, None, |text| {
            text.replacen("Hash:", "NotDashEscaped: You need GnuPG\nHash:", 1)
        }),
        (
            "text before",
            true,
            Some("no other text may surround the signed one"),
            |text| format!("hello\n{text}"),
        ),
        (
            "text after the signature",
            true,
            Some("no other text may surround the signed one"),
            |text| format!("{text}hello\n"),
        ),
        (
            "blanks around",
            true,
            Some("no other text may surround the signed one"),
            |text| format!("\n \n{text}\n \n"),
        ),
        (
            "twice",
            true,
            Some("no other text may surround the signed one"),
            |text| format!("{text}{text}"),
        ),
        ("no signature", false, None, |text| {
            text.split("-----BEGIN PGP SIGNATURE")
                .next()
                .unwrap_or_default()
                .to_owned()
        }),
        ("cut short", false, None, |text| {
            text[..text.len() - 60].to_owned()
        }),
        ("a comment in the signature", true, None, |text| {
            text.replace(
                "PGP SIGNATURE-----\n\n",
                "PGP SIGNATURE-----\nComment: x\n\n",
            )
        }),
    ];
    for (name, good, stricter, change) in changes {
        let text = |sums: &str| {
            let signed = key.clear(
                5,
                format!("name: x\n-dash\n{sums}").as_bytes(),
                &["--digest-algo", "SHA256"],
            );
            change(&String::from_utf8(signed).unwrap()).into_bytes()
        };
        add(name, good, stricter, &text, &public);
    }
    // signatures
    let signatures: &[(&str, bool, i64, &[&str])] = &[
        ("expired", false, 10, &["--default-sig-expire", "1d"]),
        (
            "a critical notation",
            false,
            5,
            &["--sig-notation", "!policy@example.com=strict"],
        ),
        ("SHA-1", false, 5, &["--digest-algo", "SHA1"]),
        ("SHA-512", true, 5, &["--digest-algo", "SHA512"]),
        ("made tomorrow", true, -1, &[]),
    ];
    for (name, good, ago, more) in signatures {
        add(
            name,
            *good,
            None,
            &|sums| key.clear(*ago, sums.as_bytes(), more),
            &public,
        );
    }
    let ended = Key::new(place, "ended", "ed25519", "sign", "20d");
    add(
        "by a key that expired later",
        false,
        None,
        &|sums| ended.clear(90, sums.as_bytes(), &[]),
        &ended.public(),
    );
    let subkey = Key::new(place, "sub", "ed25519", "cert", "never");
    subkey.subkey(90, "ed25519", "sign", "never");
    add(
        "by a subkey",
        true,
        None,
        &|sums| subkey.clear(5, sums.as_bytes(), &[]),
        &subkey.public(),
    );
    let ended = Key::new(place, "sub-ended", "ed25519", "cert", "never");
    ended.subkey(90, "ed25519", "sign", "10d");
    let keys = ended.public();
    add(
        "by a subkey that expired later",
        false,
        None,
        &|sums| ended.clear(85, sums.as_bytes(), &[]),
        &keys,
    );
    all.into_iter().unzip()
}
