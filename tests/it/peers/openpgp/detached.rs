//! Detached signatures.

use super::Case;
use super::crafted;
use super::keys::Key;
use super::revokers;
use crate::support::Place;

pub const CONTENT: &[u8] = b"the content\nof a file\n";

pub fn cases(place: &Place) -> Vec<Case> {
    let plain = Key::new(place, "plain", "ed25519", "sign", "never");
    let mut all = of_one_key(&plain);
    all.extend(of_forms(&plain));
    all.extend(of_ends(place));
    all.extend(of_subkeys(place));
    all.extend(of_revocations(place));
    all.extend(revokers::cases(place));
    all.extend(of_several(place, &plain));
    all.extend(of_algorithms(place));
    all.extend(crafted::cases(place, &plain));
    all
}

/// Signatures by a good key.
fn of_one_key(key: &Key) -> Vec<Case> {
    let public = key.public();
    let case = |name, good, ago, more: &[&str]| {
        Case::new(name, good, &public, &key.sign(ago, CONTENT, more))
    };
    let of_other = Case {
        content: b"other".to_vec(),
        ..case("of other content", false, 5, &[])
    };
    let crlf = Case {
        content: b"the content\r\nof a file\r\n".to_vec(),
        ..case("a text with other line ends", true, 5, &["--textmode"])
    };
    let binary_crlf = Case {
        content: crlf.content.clone(),
        ..case("a file with other line ends", false, 5, &[])
    };
    vec![
        case("good", true, 5, &[]),
        case("good, of a text", true, 5, &["--textmode"]),
        of_other,
        crlf,
        binary_crlf,
        case("SHA-512", true, 5, &["--digest-algo", "SHA512"]),
        case("SHA-224", true, 5, &["--digest-algo", "SHA224"])
            .stricter("Ed25519 signs 256 bits or more"),
        case("SHA-1", false, 5, &["--digest-algo", "SHA1"]),
        case("RIPEMD-160", false, 5, &["--digest-algo", "RIPEMD160"]),
        case("expired", false, 10, &["--default-sig-expire", "1d"]),
        case("will expire", true, 10, &["--default-sig-expire", "90d"]),
        case(
            "a critical notation",
            false,
            5,
            &["--sig-notation", "!policy@example.com=strict"],
        ),
        case(
            "a notation",
            true,
            5,
            &["--sig-notation", "policy@example.com=strict"],
        ),
        case(
            "a critical policy",
            true,
            5,
            &["--sig-policy-url", "!https://example.com/policy"],
        ),
        case(
            "a critical key server",
            true,
            5,
            &["--sig-keyserver-url", "!https://example.com/"],
        ),
        case("made tomorrow", true, -1, &[]),
        case(
            "older than its key",
            false,
            200,
            &["--ignore-time-conflict", "--ignore-valid-from"],
        ),
    ]
}

/// The encoding of a signature, and data before and after it.
fn of_forms(key: &Key) -> Vec<Case> {
    let public = key.public();
    let binary = key.sign(5, CONTENT, &[]);
    let text = String::from_utf8(key.sign(5, CONTENT, &["--armor"])).unwrap();
    let case = |name, good, text: String| Case::new(name, good, &public, text.as_bytes());
    let lines: Vec<&str> = text.lines().collect();
    let crc = lines.iter().position(|line| line.starts_with('=')).unwrap();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines.insert(at, line);
        lines.join("\n") + "\n"
    };
    let mut without_crc = lines.clone();
    without_crc.remove(crc);
    let mut wrong_crc = lines.clone();
    wrong_crc[crc] = "=AAAA";
    let mut cut = binary.clone();
    cut.truncate(binary.len() - 3);
    let garbage = [binary.as_slice(), b"garbage"].concat();
    vec![
        case("armored", true, text.clone()),
        case(
            "armored, with headers",
            true,
            with(1, "Comment: hello\nVersion: 1"),
        ),
        case(
            "armored, with CRLF line ends",
            true,
            text.replace('\n', "\r\n"),
        ),
        case(
            "armored, without a checksum",
            true,
            without_crc.join("\n") + "\n",
        ),
        case(
            "armored, with a wrong checksum",
            false,
            wrong_crc.join("\n") + "\n",
        ),
        case("armored, text before", true, format!("hello\n\n{text}"))
            .stricter("a signature must begin with its armor"),
        case("armored, text after", true, format!("{text}\nhello\n")),
        case(
            "armored, as a message",
            true,
            text.replace("PGP SIGNATURE", "PGP MESSAGE"),
        )
        .stricter("the armor must be that of a signature"),
        Case::new("cut short", false, &public, &cut),
        Case::new("garbage after", true, &public, &garbage)
            .stricter("no data may follow a signature"),
        Case::new("nothing", false, &public, b""),
        Case::new(
            "with content",
            false,
            &public,
            &key.gpg(5, &["--output", "-", "--sign", "/etc/hostname"]),
        ),
    ]
}

/// Cases with keys that expire, and with a key from the future.
fn of_ends(place: &Place) -> Vec<Case> {
    let case = |name, good, key: &Key, ago| {
        Case::new(name, good, &key.public(), &key.sign(ago, CONTENT, &[]))
    };
    let ended = Key::new(place, "ended", "ed25519", "sign", "20d");
    let mut all = vec![case("by a key that expired later", false, &ended, 90)];
    let extended = Key::new(place, "extended", "ed25519", "sign", "20d");
    let before = Case::new(
        "by a key that expired later, before it was extended",
        false,
        &extended.public(),
        &extended.sign(90, CONTENT, &[]),
    );
    extended.gpg(85, &["--quick-set-expire", &extended.fingerprint, "0"]);
    all.extend([
        before,
        case("by a key that was extended", true, &extended, 5),
    ]);
    let shortened = Key::new(place, "shortened", "ed25519", "sign", "never");
    let late = shortened.sign(5, CONTENT, &[]);
    shortened.gpg(90, &["--quick-set-expire", &shortened.fingerprint, "10d"]);
    all.push(Case::new(
        "by a key that had expired",
        false,
        &shortened.public(),
        &late,
    ));
    let future = Key::made(place, "future", "ed25519", "sign", "never", -5);
    all.push(case("by a key from the future", false, &future, -6));
    all
}

/// Cases with signatures by a subkey.
fn of_subkeys(place: &Place) -> Vec<Case> {
    let case = |name, good, key: &Key, ago| {
        Case::new(name, good, &key.public(), &key.sign(ago, CONTENT, &[]))
    };
    let key = Key::new(place, "sub", "ed25519", "cert", "never");
    let first = key.subkey(90, "ed25519", "sign", "never");
    let mut all = vec![case("by a subkey", true, &key, 80)];
    let late = key.sign(5, CONTENT, &["-u", &format!("{first}!")]);
    key.gpg(70, &["--quick-set-expire", &key.fingerprint, "10d", &first]);
    all.push(Case::new(
        "by a subkey that had expired",
        false,
        &key.public(),
        &late,
    ));
    let ended = Key::new(place, "sub-ended", "ed25519", "cert", "never");
    let sub = ended.subkey(90, "ed25519", "sign", "10d");
    let early = ended.sign(85, CONTENT, &[]);
    all.push(Case::new(
        "by a subkey that expired later",
        false,
        &ended.public(),
        &early,
    ));
    ended.gpg(82, &["--quick-set-expire", &ended.fingerprint, "0", &sub]);
    all.push(Case::new(
        "by a subkey that was extended",
        true,
        &ended.public(),
        &early,
    ));
    let second = ended.subkey(50, "ed25519", "sign", "never");
    let new = ended.sign(5, CONTENT, &["-u", &format!("{second}!")]);
    all.push(Case::new(
        "by the second subkey",
        true,
        &ended.public(),
        &new,
    ));
    // gpg writes a trust packet after each packet of this form
    all.push(Case::new(
        "by the second subkey, in a keyring of gpg",
        true,
        &ended.keyring(),
        &new,
    ));
    let primary = Key::new(place, "sub-primary", "ed25519", "cert", "20d");
    primary.subkey(90, "ed25519", "sign", "never");
    all.push(case(
        "by a subkey whose primary key has expired",
        false,
        &primary,
        85,
    ));
    all
}

/// Cases with revoked keys.
fn of_revocations(place: &Place) -> Vec<Case> {
    let revoked = Key::new(place, "revoked", "ed25519", "sign", "never");
    let signed = revoked.sign(90, CONTENT, &[]);
    revoked.revoke();
    let mut all = vec![Case::new(
        "by a key that was revoked",
        false,
        &revoked.public(),
        &signed,
    )];
    let key = Key::new(place, "revoked-sub", "ed25519", "sign", "never");
    let sub = key.subkey(90, "ed25519", "sign", "never");
    let by_sub = key.sign(80, CONTENT, &["-u", &format!("{sub}!")]);
    let by_primary = key.sign(80, CONTENT, &["-u", &format!("{}!", key.fingerprint)]);
    key.edit(10, &["key 1", "revkey", "y", "0", "", "y"]);
    all.push(Case::new(
        "by a subkey that was revoked",
        false,
        &key.public(),
        &by_sub,
    ));
    all.push(Case::new(
        "by a primary key with a revoked subkey",
        true,
        &key.public(),
        &by_primary,
    ));
    let user = Key::new(place, "revoked-user", "ed25519", "sign", "never");
    let signed = user.sign(80, CONTENT, &[]);
    user.gpg(
        70,
        &["--quick-add-uid", &user.fingerprint, "other@example.com"],
    );
    user.gpg(
        60,
        &[
            "--quick-revoke-uid",
            &user.fingerprint,
            "revoked-user@example.com",
        ],
    );
    all.push(Case::new(
        "by a key with a revoked user name",
        true,
        &user.public(),
        &signed,
    ));
    all
}

/// Several signatures of one file.
fn of_several(place: &Place, key: &Key) -> Vec<Case> {
    let other = Key::new(place, "other", "ed25519", "sign", "never");
    let public = key.public();
    let both = [public.clone(), other.public()].concat();
    let good = key.sign(5, CONTENT, &[]);
    let bad = key.sign(5, b"something else", &[]);
    let expired = key.sign(10, CONTENT, &["--default-sig-expire", "1d"]);
    let weak = key.sign(5, CONTENT, &["--digest-algo", "SHA1"]);
    let critical = key.sign(
        5,
        CONTENT,
        &["--sig-notation", "!policy@example.com=strict"],
    );
    let foreign = other.sign(5, CONTENT, &[]);
    let foreign_bad = other.sign(5, b"something else", &[]);
    let case = |name, verdict, parts: &[&[u8]]| Case::new(name, verdict, &public, &parts.concat());
    vec![
        Case::new("by an unknown key", false, &public, &foreign),
        Case::new("by the second key", true, &both, &foreign),
        case("good, and one by an unknown key", true, &[&good, &foreign]),
        case("one by an unknown key, and good", true, &[&foreign, &good]),
        case(
            "good, and a wrong one by another key",
            true,
            &[&good, &foreign_bad],
        ),
        Case::new(
            "good, and a wrong one by the second key",
            false,
            &both,
            &[&good[..], &foreign_bad].concat(),
        ),
        case("good, and a wrong one", false, &[&good, &bad]),
        case("a wrong one, and good", false, &[&bad, &good]),
        case("good, and an expired one", true, &[&good, &expired]),
        case("an expired one, and good", false, &[&expired, &good]),
        case("SHA-1, and good", true, &[&weak, &good]),
        case("critical, and good", false, &[&critical, &good]),
        case("the same twice", true, &[&good, &good]),
        case("33 good ones", true, &[good.as_slice(); 33])
            .stricter("at most 32 signatures are checked"),
    ]
}

/// Cases with RSA, ECDSA and DSA keys, and with MD5.
fn of_algorithms(place: &Place) -> Vec<Case> {
    let kinds = ["rsa2048", "rsa1024", "nistp256", "dsa2048"];
    let of = |kind: &&'static str| {
        let key = Key::new(place, kind, kind, "sign", "never");
        Case::new(
            kind,
            true,
            &key.public(),
            &key.sign(5, CONTENT, &["--digest-algo", "SHA256"]),
        )
    };
    let key = Key::new(place, "md5", "rsa2048", "sign", "never");
    let md5 = key.sign(
        5,
        CONTENT,
        &["--digest-algo", "MD5", "--allow-weak-digest-algos"],
    );
    let md5 = Case::new("MD5", false, &key.public(), &md5);
    kinds.iter().map(of).chain([md5]).collect()
}
