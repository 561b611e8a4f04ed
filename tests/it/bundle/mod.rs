//! `landfall pack`, `verify` and `ls` as a user runs them, and the bundle as other tools read it.

mod frozen;
mod huge;
mod site;
use crate::support::library::{
    AcceptedLoss, BlobRead, Bundle, Digest, EntryKind, Lock, UnresolvedItem,
};
use crate::support::{code, need, position_of, rounds, shown, skip, test_name, which};
use serde_json::{Value, json};
use site::Site;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Incompressible bytes that depend only on `seed` and `len`.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len.div_ceil(8))
        .flat_map(|_| next().to_le_bytes())
        .take(len)
        .collect()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a tool of the system; `None` if it is not installed.
fn tool(test: &str, name: &str, args: &[&str]) -> Option<Output> {
    match Command::new(name).args(args).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip(test, &format!("{name} is not installed"));
            None
        }
        output => Some(output.unwrap()),
    }
}

#[test]
fn the_same_lock_gives_the_same_bytes() {
    let site = Site::new();
    let first = fs::read(site.pack()).unwrap();
    let zones = ["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"];
    let locales = ["C", "C.UTF-8", "tr_TR.UTF-8", "de_DE@euro"];
    // a process that is limited to one core uses one thread
    let one_core = which("taskset").is_some();
    if !one_core {
        skip(
            &test_name(),
            "this machine has no taskset, so every run uses all threads",
        );
    }
    for round in 0..rounds(20) {
        let store = format!("store-{round}");
        let out = format!("{round}.tar.zst");
        site.fill(&store, round as u64 + 1);
        let mut command = match round % 2 {
            0 if one_core => {
                let mut command = Command::new("taskset");
                command
                    .args(["-c", "0"])
                    .arg(env!("CARGO_BIN_EXE_landfall"));
                command
            }
            _ => Command::new(env!("CARGO_BIN_EXE_landfall")),
        };
        let jobs = (1 + round % 16).to_string();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let command = command
            .args(["pack", "--store", &store, "--out", &out, "--jobs", &jobs])
            .env_clear()
            .env("PATH", path)
            .env("TZ", zones[round % zones.len()])
            .env("LC_ALL", locales[round / 4 % locales.len()])
            .current_dir(site.dir.path());
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{}", shown(&output));
        assert!(fs::read(site.path(&out)).unwrap() == first, "round {round}");
        fs::remove_file(site.path(&out)).unwrap();
        fs::remove_dir_all(site.path(&store)).unwrap();
    }
    let names: Vec<_> = fs::read_dir(site.dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".partial")),
        "{names:?}"
    );

    let output = site.run(&["pack", "-o", "D.tar.zst", "--level", "9"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(!shown(&output).contains(&digest_of(&site.run(&["verify", "B.tar.zst"]))));
}

/// The bundle digest that a command prints.
fn digest_of(output: &Output) -> String {
    let text = shown(output);
    let line = text
        .lines()
        .find(|line| line.contains("bundle digest"))
        .unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().last().unwrap().to_owned()
}

#[test]
fn pack_verify_and_ls_agree() {
    let site = Site::new();
    let packed = site.run(&["pack", "-o", "B", "--output", "json"]);
    let packed = report(&packed);
    assert_eq!(
        (&packed["command"], &packed["status"]),
        (&json!("pack"), &json!("done"))
    );
    assert_eq!(packed["totals"]["done"], 4);
    let size = fs::metadata(site.path("B")).unwrap().len();
    assert_eq!(packed["bundle"]["bytes"], size);

    let verified = report(&site.run(&["verify", "B", "--output", "json"]));
    let listed = report(&site.run(&["ls", "B", "--output", "json"]));
    for report in [&verified, &listed] {
        assert_eq!(report["bundle"]["digest"], packed["bundle"]["digest"]);
        assert_eq!(report["bundle"]["bytes"], size);
        assert_eq!(report["bundle"]["partial"], json!([]));
        assert_eq!(report["totals"]["present"], 4);
    }
    assert_eq!(verified["bundle"]["lock"], json!(site.lock.fingerprint()));
    let text = shown(&site.run(&["verify", "B"]));
    assert!(
        text.contains("consistent, origin not proven") && text.contains("2 images and 2 files"),
        "{text}"
    );

    let text = shown(&site.run(&["ls", "B"]));
    let line = text
        .lines()
        .find(|line| line.contains("quay.io/example/app:v1"))
        .unwrap();
    assert!(
        line.contains("linux/amd64,linux/arm64") && line.starts_with("image"),
        "{text}"
    );
    assert!(
        !text.contains("partial") && text.contains("kubelet"),
        "{text}"
    );
    let locks = shown(&site.run(&["ls", "landfall.lock"]));
    assert!(
        locks.contains(line) && locks.contains(&site.lock.fingerprint().to_string()),
        "{locks}"
    );
}

#[test]
fn verify_compares_expected_digest_and_lock() {
    let site = Site::new();
    site.pack();
    let digest = digest_of(&site.run(&["verify", "B.tar.zst"]));
    let fingerprint = site.lock.fingerprint().to_string();
    for expect in [&digest, &fingerprint] {
        assert_eq!(
            code(&site.run(&["verify", "B.tar.zst", "--expect", expect])),
            0
        );
    }
    let other = Digest::sha256(b"other").to_string();
    let output = site.run(&["verify", "B.tar.zst", "--expect", &other]);
    assert_eq!(code(&output), 4);
    assert!(
        shown(&output).contains(&other) && shown(&output).contains(&digest),
        "{}",
        shown(&output)
    );
    assert_eq!(
        code(&site.run(&["verify", "B.tar.zst", "--lock", "landfall.lock"])),
        0
    );
    let shorter = Lock {
        images: vec![],
        ..site.lock.clone()
    };
    fs::write(site.path("other.lock"), shorter.to_text()).unwrap();
    let output = site.run(&["verify", "B.tar.zst", "--lock", "other.lock"]);
    assert_eq!(code(&output), 4);
    assert!(
        shown(&output).contains(&shorter.fingerprint().to_string()),
        "{}",
        shown(&output)
    );
    assert_eq!(
        code(&site.run(&["verify", "B.tar.zst", "--expect", "sha256:1"])),
        2
    );
    assert_eq!(code(&site.run(&["verify", "absent.tar.zst"])), 2);
    assert_eq!(code(&site.run(&["ls", "absent.tar.zst"])), 2);
}

#[test]
fn tar_and_zstd_read_a_bundle() {
    if !need(&["tar", "zstd"]) {
        return;
    }
    let site = Site::new();
    let bundle = site.pack();
    let bundle = bundle.to_str().unwrap();
    let Some(listed) = tool(
        "tar_and_zstd_read_a_bundle",
        "tar",
        &["--zstd", "-tf", bundle],
    ) else {
        return;
    };
    let names = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<&str> = names.lines().collect();
    assert_eq!(names[..3], ["oci-layout", "index.json", "landfall.lock"]);
    assert_eq!(names.last(), Some(&"landfall-contents.json"));
    let out = site.path("out");
    fs::create_dir(&out).unwrap();
    let args = ["--zstd", "-xf", bundle, "-C", out.to_str().unwrap()];
    let Some(unpacked) = tool("tar_and_zstd_read_a_bundle", "tar", &args) else {
        return;
    };
    assert!(
        unpacked.status.success() && unpacked.stderr.is_empty(),
        "{}",
        shown(&unpacked)
    );
    let mut found = 0;
    for (digest, bytes) in &site.blobs {
        if let Ok(there) = fs::read(out.join(digest.layout_path())) {
            assert!(there == *bytes, "{digest}");
            found += 1;
        }
    }
    assert_eq!(
        found,
        site.blobs.len() - 3,
        "the three blobs of the platform that was trimmed are omitted"
    );
    assert_eq!(
        fs::read_to_string(out.join("landfall.lock")).unwrap(),
        site.lock.to_text()
    );
    let trimmed = site
        .lock
        .images
        .iter()
        .find_map(|image| image.trimmed.as_ref())
        .unwrap();
    let trimmed_bytes = fs::read(out.join(trimmed.digest.layout_path())).unwrap();
    assert!(trimmed.digest.matches(&trimmed_bytes));

    let Some(tested) = tool("tar_and_zstd_read_a_bundle", "zstd", &["-t", bundle]) else {
        return;
    };
    assert!(tested.status.success(), "{}", shown(&tested));
    // the checksums in stored frames are real: zstd detects a flipped bit in a stored frame
    let mut bytes = fs::read(bundle).unwrap();
    let at = position_of(&bytes, &noise(4, 70_000)[1000..1064]);
    bytes[at] ^= 4;
    fs::write(site.path("flipped.zst"), bytes).unwrap();
    let flipped = tool(
        "tar_and_zstd_read_a_bundle",
        "zstd",
        &["-t", site.path("flipped.zst").to_str().unwrap()],
    );
    assert!(!flipped.unwrap().status.success());
}

#[test]
fn a_bundle_can_be_written_to_a_pipe() {
    if !need(&["sh", "cat"]) {
        return;
    }
    let site = Site::new();
    let whole = fs::read(site.pack()).unwrap();
    let landfall = env!("CARGO_BIN_EXE_landfall");
    let script = format!("{landfall} pack -o - --progress none --report report.json | cat > piped");
    let mut command = Command::new("sh");
    command
        .args(["-ec", &script])
        .current_dir(site.dir.path())
        .env("LANDFALL_STORE", site.path("store"));
    let output = command.output().unwrap();
    assert_eq!(code(&output), 0, "{}", shown(&output));
    assert!(fs::read(site.path("piped")).unwrap() == whole);
    assert!(
        output.stdout.is_empty() && shown(&output).contains("bundle digest"),
        "{}",
        shown(&output)
    );
    let report: Value =
        serde_json::from_slice(&fs::read(site.path("report.json")).unwrap()).unwrap();
    assert_eq!(report["bundle"]["bytes"], whole.len());
    assert!(!site.path("-").exists());
    for bad in [
        &["--output", "json"][..],
        &["--volume-size", "2M"],
        &["--include-self"],
    ] {
        assert_eq!(
            code(&site.run(&[&["pack", "-o", "-"], bad].concat())),
            2,
            "{bad:?}"
        );
    }
}

#[test]
fn skopeo_reads_a_bundle_as_an_oci_archive() {
    let site = Site::new();
    let bundle = site.pack();
    let source = format!("oci-archive:{}:quay.io/example/app:v1", bundle.display());
    let test = "skopeo_reads_a_bundle_as_an_oci_archive";
    let Some(raw) = tool(test, "skopeo", &["inspect", "--raw", &source]) else {
        return;
    };
    let image = site
        .lock
        .images
        .iter()
        .find(|image| image.name.repository == "example/app")
        .unwrap();
    assert!(image.digest.matches(&raw.stdout), "{}", shown(&raw));
    let out = site.path("dir");
    let target = format!("dir:{}", out.display());
    // skopeo's dir: cannot keep a sha512 layer; this image has none
    let policy = [
        "--insecure-policy",
        "copy",
        "--all",
        "--preserve-digests",
        &source,
        &target,
    ];
    let copied = tool(test, "skopeo", &policy).unwrap();
    assert!(copied.status.success(), "{}", shown(&copied));
    let manifest = fs::read(out.join("manifest.json")).unwrap();
    assert!(image.digest.matches(&manifest));
    for blob in &image.blobs {
        assert!(
            blob.digest
                .matches(&fs::read(out.join(blob.digest.hex())).unwrap()),
            "{}",
            blob.digest
        );
    }
    let file = site.lock.entries().pop().unwrap();
    let source = format!("oci-archive:{}:{}", bundle.display(), file.layout_name);
    let raw = tool(test, "skopeo", &["inspect", "--raw", &source]).unwrap();
    assert!(file.top.digest.matches(&raw.stdout), "{}", shown(&raw));
}

#[test]
fn flipped_bits_and_truncations_are_detected() {
    let site = Site::new();
    let bundle = site.pack();
    let good = fs::read(&bundle).unwrap();
    let rounds = std::env::var("LANDFALL_TEST_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let places = noise(99, 40 * rounds * 8);
    for place in places.chunks_exact(8) {
        let place = u64::from_le_bytes(place.try_into().unwrap()) as usize % (good.len() * 8);
        let mut bad = good.clone();
        bad[place / 8] ^= 1 << (place % 8);
        fs::write(&bundle, &bad).unwrap();
        let output = site.run(&["verify", "B.tar.zst"]);
        assert_eq!(code(&output), 4, "bit {place}: {}", shown(&output));
        assert!(shown(&output).contains(" at byte "), "{}", shown(&output));
    }
    for cut in [0, 1, 100, 529, good.len() / 3, good.len() - 1] {
        fs::write(&bundle, &good[..cut]).unwrap();
        assert_eq!(code(&site.run(&["verify", "B.tar.zst"])), 4, "{cut}");
    }
    fs::write(&bundle, [&good[..], b"\0"].concat()).unwrap();
    assert_eq!(code(&site.run(&["verify", "B.tar.zst"])), 4);
}

#[test]
fn a_damaged_blob_is_named() {
    let site = Site::new();
    let bundle = site.pack();
    let mut bytes = fs::read(&bundle).unwrap();
    let at = position_of(&bytes, &noise(4, 70_000)[1000..1064]);
    bytes[at] ^= 4;
    fs::write(&bundle, bytes).unwrap();
    let output = site.run(&["verify", "B.tar.zst", "--output", "json"]);
    assert_eq!(code(&output), 4);
    let report = report(&output);
    assert_eq!(report["status"], "refused");
    let message = report["error"]["message"].as_str().unwrap();
    let digest = Digest::sha256(&noise(4, 70_000));
    assert!(message.contains(&digest.layout_path()), "{message}");
}

#[test]
fn an_incomplete_store_is_refused_without_allow_partial() {
    let site = Site::new();
    let kubelet = site
        .lock
        .files
        .iter()
        .find(|file| file.name.ends_with("kubelet"))
        .unwrap();
    site.without(&kubelet.digest);
    let output = site.run(&["pack", "-o", "B", "--output", "json"]);
    assert_eq!(code(&output), 3);
    let refused = report(&output);
    assert_eq!(
        (&refused["totals"]["missing"], &refused["totals"]["present"]),
        (&json!(1), &json!(3))
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains(&kubelet.name),
        "{refused}"
    );
    assert!(!site.path("B").exists() && !site.path("B.partial").exists());

    let output = site.run(&["pack", "-o", "B", "--allow-partial"]);
    assert_eq!(code(&output), 3, "{}", shown(&output));
    assert!(shown(&output).contains(&kubelet.name));
    let output = site.run(&["verify", "B"]);
    assert_eq!(code(&output), 4);
    assert!(shown(&output).contains("partial") && shown(&output).contains(&kubelet.name));
    let output = site.run(&["verify", "B", "--allow-partial"]);
    assert_eq!(code(&output), 0, "{}", shown(&output));
    let listed = report(&site.run(&["ls", "B", "--output", "json"]));
    assert_eq!(
        listed["bundle"]["partial"],
        json!([{"kind": "file", "name": kubelet.name}])
    );
    assert_eq!(listed["totals"]["present"], 3);
    // only the file and its sidecar are missing
    let bundle = Bundle::open(&site.path("B")).unwrap();
    assert_eq!(bundle.stat(&kubelet.sidecars[0].digest).unwrap(), None);
    assert_eq!(
        bundle.stat(&site.lock.files[1].digest).unwrap(),
        Some(70_000)
    );
}

#[test]
fn a_bundle_is_partial_if_its_lock_has_missing_items_that_are_not_accepted() {
    let mut site = Site::new();
    let accepted = |name: &str, until: &str| AcceptedLoss {
        kind: EntryKind::Image,
        name: name.into(),
        reason: "removed upstream".into(),
        until: until.into(),
    };
    site.lock.missing = vec![accepted("quay.io/gone/app:v1", "9999-12-31")];
    site.lock();
    let output = site.run(&["pack", "-o", "B", "--output", "json"]);
    assert_eq!(
        (code(&output), &report(&output)["totals"]["skipped"]),
        (0, &json!(1))
    );
    // the accepted item does not make the bundle partial, but `verify` and `ls` report it
    for verb in ["verify", "ls"] {
        let output = site.run(&[verb, "B", "--output", "json"]);
        assert_eq!(
            (code(&output), &report(&output)["totals"]["skipped"]),
            (0, &json!(1))
        );
        let text = shown(&site.run(&[verb, "B"]));
        let line =
            "accepted image quay.io/gone/app:v1: removed upstream (accepted until 9999-12-31)";
        assert!(
            text.contains(line) && !text.contains("partial"),
            "{verb}: {text}"
        );
    }

    site.lock
        .missing
        .push(accepted("quay.io/gone/other:v1", "2020-01-01"));
    site.lock.unresolved = vec![UnresolvedItem {
        kind: EntryKind::File,
        name: "https://h/f".into(),
        cause: "404".into(),
    }];
    site.lock();
    let output = site.run(&["pack", "-o", "C"]);
    assert_eq!(code(&output), 3);
    let text = shown(&output);
    assert!(
        text.contains("other:v1") && text.contains("https://h/f") && !text.contains("gone/app"),
        "{text}"
    );
    assert_eq!(code(&site.run(&["pack", "-o", "C", "--allow-partial"])), 3);
    assert_eq!(code(&site.run(&["verify", "C"])), 4);
    let output = site.run(&["verify", "C", "--allow-partial", "--output", "json"]);
    assert_eq!(
        (code(&output), &report(&output)["totals"]["missing"]),
        (0, &json!(2))
    );
    let text = shown(&site.run(&["ls", "C"]));
    for lost in [
        "missing  image quay.io/gone/other:v1: ",
        "missing  file https://h/f: 404",
    ] {
        assert!(
            text.contains("partial; it lacks") && text.contains(lost),
            "{text}"
        );
    }
    // `push` and `serve` accept a partial bundle only with the flag
    for verb in [
        &["push", "C", "--to", "127.0.0.1:1"][..],
        &["serve", "C", "--listen", "127.0.0.1:0"],
    ] {
        let output = site.run(verb);
        assert!(
            code(&output) == 4 && shown(&output).contains("--allow-partial"),
            "{}",
            shown(&output)
        );
    }
}

#[test]
fn nothing_is_packed_from_a_damaged_store() {
    let site = Site::new();
    let file = site
        .lock
        .files
        .iter()
        .find(|file| file.name.ends_with("kubelet"))
        .unwrap();
    let path = site.path("store").join(file.digest.layout_path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[500_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fs::write(site.path("B"), "the old file is kept").unwrap();
    let output = site.run(&["pack", "-o", "B"]);
    assert_eq!(code(&output), 3);
    assert!(
        shown(&output).contains(&file.name)
            && shown(&output).contains("refused: 1 item would be missing"),
        "{}",
        shown(&output)
    );
    assert_eq!(
        fs::read_to_string(site.path("B")).unwrap(),
        "the old file is kept"
    );
    assert!(!site.path("B.partial").exists());
}

#[test]
fn a_dry_run_and_an_unwritable_destination_write_nothing() {
    let site = Site::new();
    let output = site.run(&["pack", "-o", "B", "--dry-run", "--output", "json"]);
    assert_eq!(code(&output), 0);
    let needed = report(&output)["needed_bytes"].as_u64().unwrap();
    assert!(!site.path("B").exists() && !site.path("B.partial").exists());
    assert!(fs::metadata(site.pack()).unwrap().len() <= needed);
    let output = site.run(&["pack", "-o", "no/such/folder/B"]);
    assert_eq!(code(&output), 1);
    assert!(
        shown(&output).contains("no/such/folder/B"),
        "{}",
        shown(&output)
    );
    assert_eq!(
        code(&site.run(&["pack", "-o", "B", "--lock", "absent.lock"])),
        2
    );
    assert_eq!(code(&site.run(&["pack", "-o", "B", "--level", "20"])), 2);
}

#[test]
fn blobs_are_read_from_any_offset() {
    let site = Site::new();
    let bundle = Bundle::open(&site.pack()).unwrap();
    for seed_and_len in [(1, (2 << 20) + 4321), (2, 5000), (4, 70_000)] {
        let bytes = noise(seed_and_len.0, seed_and_len.1);
        let (digest, _) = site.blobs.iter().find(|(_, blob)| *blob == bytes).unwrap();
        let odd = [
            0,
            1,
            4097,
            (1 << 20) - 1,
            1 << 20,
            (1 << 20) + 1,
            bytes.len() - 1,
            bytes.len(),
        ];
        for offset in odd.into_iter().filter(|offset| *offset <= bytes.len()) {
            let mut rest = Vec::new();
            bundle
                .open(digest, offset as u64)
                .unwrap()
                .read_to_end(&mut rest)
                .unwrap();
            assert!(rest == bytes[offset..], "{digest} from {offset}");
        }
    }
    assert!(bundle.open(&Digest::sha256(b"nowhere"), 0).is_err());
    assert_eq!(bundle.entries().unwrap().len(), 4);
}

#[test]
fn a_reader_written_from_the_documentation_reads_a_bundle() {
    let test = "a_reader_written_from_the_documentation_reads_a_bundle";
    let site = Site::new();
    let bundle = site.pack();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/read-bundle.py");
    let script = script.to_str().unwrap();
    let bundle = bundle.to_str().unwrap();
    if tool(test, "zstd", &["--version"]).is_none() {
        return;
    }
    let Some(listed) = tool(test, "python3", &[script, bundle]) else {
        return;
    };
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        text.contains(&digest_of(&site.run(&["verify", bundle]))),
        "{}",
        shown(&listed)
    );
    let listed: Vec<_> = site
        .blobs
        .iter()
        .filter(|(digest, _)| text.contains(&digest.hex()))
        .collect();
    // the other blobs are the trimmed index, the manifests of two files, and their empty config
    let lines = text.lines().filter(|line| line.contains(" blobs/"));
    assert_eq!(listed.len() + 4, lines.count(), "{text}");
    for (digest, bytes) in listed {
        let read = tool(test, "python3", &[script, bundle, &digest.to_string()]).unwrap();
        assert!(
            read.stdout == *bytes,
            "{digest}: {}",
            String::from_utf8_lossy(&read.stderr)
        );
    }
}
