//! Timestamps, certificate transparency, ended trust and several signatures: compares
//! landfall's verdicts with those of `cosign verify` on the same images and trust roots.

use super::cosign::COSIGN;
use crate::support::certificate_log::CertificateLog;
use crate::support::peers::own_registry;
use crate::support::programs::go_install;
use crate::support::signed_files::decoded;
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, certificate_params, lock, pae, push_bundles, push_image,
    sign_statement,
};
use crate::support::tiled_log::TiledLog;
use crate::support::timestamps::{TimestampAuthority, add_timestamp};
use crate::support::{Images, Place, need};
use serde_json::{Value, json};

const ISSUER: &str = "https://token.actions.test";
const IDENTITY: &str = "https://git.test/org/app/.github/workflows/release.yml@refs/heads/main";

/// The services, and a signer whose certificate is valid on 1 January 2026.
struct Services {
    sigstore: Sigstore,
    other: Sigstore,
    tiled: TiledLog,
    certificates: CertificateLog,
    timestamps: TimestampAuthority,
    signer: ImageSigner,
}

/// The trust root of a row, which contains only the parts that the row tests.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    /// The log alone.
    Log,
    /// The timestamp authority alone.
    Timestamps,
    /// The log and a log of certificates.
    Certificates,
    /// A log of Rekor version 2 and the timestamp authority.
    Tiled,
    /// The log; the certificate authority was trusted until this day.
    AuthorityUntil(&'static str),
    /// The log, which was trusted until this day.
    LogUntil(&'static str),
    /// The timestamp authority, which was trusted until this day.
    TimestampsUntil(&'static str),
}

/// A row: the bundles of the image, the trust root, and whether the image is accepted.
struct Row {
    name: &'static str,
    root: Root,
    bundles: Vec<Value>,
    is_accepted: bool,
}

impl Services {
    fn new() -> Services {
        let sigstore = Sigstore::new();
        let signer = sigstore.signer(ISSUER, IDENTITY);
        Services {
            sigstore,
            other: Sigstore::new(),
            tiled: TiledLog::new(),
            certificates: CertificateLog::new(),
            timestamps: TimestampAuthority::new(),
            signer,
        }
    }

    fn root(&self, root: Root) -> Value {
        let mut json: Value = serde_json::from_str(&self.sigstore.trusted_root()).unwrap();
        let end = |day: &str| json!(format!("{day}T00:00:00Z"));
        match root {
            Root::Log => {}
            Root::Certificates => json["ctlogs"] = json!([self.certificates.trusted()]),
            Root::Timestamps => {
                json["tlogs"] = json!([]);
                json["timestampAuthorities"] = json!([self.timestamps.trusted()]);
            }
            Root::Tiled => {
                json["tlogs"] = json!([self.tiled.trusted()]);
                json["timestampAuthorities"] = json!([self.timestamps.trusted()]);
            }
            Root::AuthorityUntil(day) => {
                json["certificateAuthorities"][0]["validFor"]["end"] = end(day);
            }
            Root::LogUntil(day) => json["tlogs"][0]["publicKey"]["validFor"]["end"] = end(day),
            Root::TimestampsUntil(day) => {
                json["tlogs"] = json!([]);
                json["timestampAuthorities"] = json!([self.timestamps.trusted()]);
                json["timestampAuthorities"][0]["validFor"]["end"] = end(day);
            }
        }
        json
    }

    fn logged(&self, signer: &ImageSigner, statement: &[u8]) -> Value {
        self.sigstore.bundle(signer, statement, Tampering::None)
    }

    /// A bundle without a log entry, with a timestamp by `authority`.
    fn stamped(&self, authority: &TimestampAuthority, statement: &[u8], time: &str) -> Value {
        let mut bundle = self.unlogged(statement);
        let signature = bundle["dsseEnvelope"]["signatures"][0]["sig"].as_str();
        let stamp = authority.stamp(&decoded(signature.unwrap()), time);
        add_timestamp(&mut bundle, &stamp);
        bundle
    }

    fn unlogged(&self, statement: &[u8]) -> Value {
        self.sigstore
            .bundle(&self.signer, statement, Tampering::Missing)
    }

    /// The rows about one image. `statement` is about this image, and `foreign` about another one.
    fn rows(&self, statement: &[u8], foreign: &[u8]) -> Vec<Row> {
        let good = "20260101120000Z";
        let strange = TimestampAuthority::new();
        let logged = self.logged(&self.signer, statement);
        let mut borrowed = self.unlogged(statement);
        add_timestamp(&mut borrowed, &self.timestamps.stamp(b"other", good));
        let in_certificate_log = self
            .certificates
            .signer(&self.sigstore, certificate_params(ISSUER, IDENTITY, 2));
        let in_other_log =
            CertificateLog::new().signer(&self.sigstore, certificate_params(ISSUER, IDENTITY, 2));
        let mut tiled = self.stamped(&self.timestamps, statement, good);
        self.tiled.log(&mut tiled, &self.signer, &pae(statement));
        let mut tiled_without_time = self.unlogged(statement);
        self.tiled
            .log(&mut tiled_without_time, &self.signer, &pae(statement));
        let mut tiled_of_another = self.stamped(&self.timestamps, statement, good);
        self.tiled
            .log(&mut tiled_of_another, &self.signer, &pae(foreign));
        let mut tiled_by_another = self.stamped(&self.timestamps, statement, good);
        TiledLog::new().log(&mut tiled_by_another, &self.signer, &pae(statement));
        let by_another = self.other.signer(ISSUER, IDENTITY);
        let by_another = self.other.bundle(&by_another, statement, Tampering::None);
        let row = |name, root, bundles: &[&Value], is_accepted| Row {
            name,
            root,
            bundles: bundles.iter().copied().cloned().collect(),
            is_accepted,
        };
        let stamped = |time| self.stamped(&self.timestamps, statement, time);
        let of_another = self.logged(&self.signer, foreign);
        vec![
            row("logged", Root::Log, &[&logged], true),
            // without a log, a timestamp must prove the signing time: the certificate has expired
            row("stamped", Root::Timestamps, &[&stamped(good)], true),
            row(
                "stamped-late",
                Root::Timestamps,
                &[&stamped("20260201120000Z")],
                false,
            ),
            row(
                "stamped-early",
                Root::Timestamps,
                &[&stamped("20251101120000Z")],
                false,
            ),
            row(
                "unstamped",
                Root::Timestamps,
                &[&self.unlogged(statement)],
                false,
            ),
            row("stamp-of-another", Root::Timestamps, &[&borrowed], false),
            row(
                "stamp-by-another",
                Root::Timestamps,
                &[&self.stamped(&strange, statement, good)],
                false,
            ),
            // certificate transparency
            row(
                "promised",
                Root::Certificates,
                &[&self.logged(&in_certificate_log, statement)],
                true,
            ),
            row("unpromised", Root::Certificates, &[&logged], false),
            row(
                "promise-of-another",
                Root::Certificates,
                &[&self.logged(&in_other_log, statement)],
                false,
            ),
            // trust that has ended
            row(
                "authority-ended-later",
                Root::AuthorityUntil("2026-02-01"),
                &[&logged],
                true,
            ),
            row(
                "authority-ended",
                Root::AuthorityUntil("2025-12-31"),
                &[&logged],
                false,
            ),
            row(
                "log-ended-later",
                Root::LogUntil("2026-02-01"),
                &[&logged],
                true,
            ),
            row("log-ended", Root::LogUntil("2025-12-31"), &[&logged], false),
            row(
                "stamps-ended-later",
                Root::TimestampsUntil("2026-02-01"),
                &[&stamped(good)],
                true,
            ),
            row(
                "stamps-ended",
                Root::TimestampsUntil("2025-12-31"),
                &[&stamped(good)],
                false,
            ),
            // version 2 of Rekor
            row("tiled", Root::Tiled, &[&tiled], true),
            row(
                "tiled-without-time",
                Root::Tiled,
                &[&tiled_without_time],
                false,
            ),
            row("tiled-of-another", Root::Tiled, &[&tiled_of_another], false),
            row("tiled-by-another", Root::Tiled, &[&tiled_by_another], false),
            // several signatures, and a signature of another image
            row("one-of-two", Root::Log, &[&by_another, &logged], true),
            row("none-of-two", Root::Log, &[&by_another, &of_another], false),
            row("another-image", Root::Log, &[&of_another], false),
        ]
    }
}

#[test]
fn landfall_and_cosign_agree_on_timestamps_logs_and_ended_trust() {
    if !need(&["gzip", "openssl"]) {
        return;
    }
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let upstream = own_registry();
    let address = &upstream.address;
    // if cosign cannot be built, only the comparison with it is skipped
    let cosign = go_install(COSIGN);
    let services = Services::new();
    let image = push_image(&images, address, "image");
    let foreign = push_image(&images, address, "foreign");
    let mut differing = Vec::new();
    for row in services.rows(&sign_statement(&image), &sign_statement(&foreign)) {
        let name = row.name;
        images.push(address, name, "v1", &image);
        push_bundles(&images, address, name, &image, &row.bundles);
        place.write("root.json", services.root(row.root).to_string());
        let manifest = format!(
            "images: [{address}/{name}:v1]\nverify:\n- match: \"*\"\n  keyless: {{issuer: \
             \"{ISSUER}\", identity: \"https://git.test/org/*\"}}\n  trustedRoot: root.json\n"
        );
        let (exit, report, _) = lock(&place, name, &manifest);
        let reason = &report["items"][0]["reason"];
        let accepted = exit == 0;
        let expected = cosign.as_ref().map(|cosign| {
            let reference = format!("{address}/{name}:v1");
            let mut verify = vec![
                "verify",
                "--trusted-root=root.json",
                "--certificate-oidc-issuer",
                ISSUER,
                "--certificate-identity-regexp=^https://git[.]test/org/.*$",
                "--new-bundle-format=true",
            ];
            if row.root != Root::Certificates {
                verify.push("--insecure-ignore-sct=true");
            }
            if matches!(row.root, Root::Timestamps | Root::TimestampsUntil(_)) {
                verify.push("--insecure-ignore-tlog=true");
            }
            if matches!(
                row.root,
                Root::Timestamps | Root::TimestampsUntil(_) | Root::Tiled
            ) {
                verify.push("--use-signed-timestamps=true");
            }
            verify.push(&reference);
            let run = place
                .clean(cosign)
                .args(verify)
                .current_dir(place.dir())
                .output()
                .unwrap();
            println!("{}", String::from_utf8_lossy(&run.stderr).trim_end());
            run.status.success()
        });
        println!("{name}: landfall {accepted}, cosign {expected:?}: {reason}");
        if accepted != row.is_accepted || expected.is_some_and(|expected| expected != accepted) {
            differing.push(format!(
                "{name}: landfall {accepted}, cosign {expected:?}: {reason}"
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
