//! A store in an object store: the complete workflow with `--store s3://`, resumption, faults, and
//! the objects in it.

use crate::support::faults::Rig;
use crate::support::http::{get, request};
use crate::support::images::sha256;
use crate::support::object_store::{Fault, ObjectStore, RecordedRequest};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

pub const STORE: &str = "s3://mirror/air/gap";

/// A rig and an object store. At a scale of 250, a blob and a file are uploaded in several parts.
pub struct Case {
    pub rig: Rig,
    pub store: ObjectStore,
    /// The bundle packed from a store on disk.
    wanted: Vec<u8>,
}

impl Case {
    pub fn new(scale: usize) -> Case {
        let rig = Rig::of(scale);
        let store = ObjectStore::start();
        store.introduce_to(&rig.place);
        rig.place
            .ok(&["pack", "--store", "stores/first", "-o", "wanted.tar.zst"]);
        let wanted = fs::read(rig.place.path("wanted.tar.zst")).unwrap();
        Case { rig, store, wanted }
    }

    pub fn pull(&self, exit: i32) -> Value {
        self.rig.place.json(exit, &["pull", "--store", STORE])
    }

    pub fn assert_packs(&self) {
        self.rig
            .place
            .ok(&["pack", "--store", STORE, "-o", "made.tar.zst"]);
        assert!(
            fs::read(self.rig.place.path("made.tar.zst")).unwrap() == self.wanted,
            "the bytes differ from those of a store on disk"
        );
    }
}

#[test]
fn pull_pack_and_push_use_an_object_store_and_give_the_same_bundle() {
    let case = Case::new(250);
    let rig = &case.rig;
    let store = &case.store;
    let pulled = case.pull(0);
    assert_eq!(pulled["totals"]["done"], 3, "{pulled}");
    assert!(
        pulled["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|host| host["why"] == "object-store"),
        "{pulled}"
    );
    let is_blob = |method: &'static str| {
        move |request: &RecordedRequest| request.method == method && request.key.contains("/blobs/")
    };
    // large blobs are uploaded in parts, and no unfinished upload is left
    assert!(
        store.count(|request| request.method == "PUT" && request.query.contains("partNumber=2"))
            >= 1
    );
    assert_eq!(store.keys("air/gap/uploads"), Vec::<String>::new());
    assert_eq!(
        (
            store.keys("air/gap/index").len(),
            store.keys("air/gap/claims").len()
        ),
        (1, 1)
    );
    for key in store.keys("air/gap/blobs") {
        let hex = key.rsplit('/').next().unwrap();
        assert_eq!(
            sha256(&fs::read(store.file(&key)).unwrap()),
            format!("sha256:{hex}")
        );
    }
    // a second pull sends no request upstream, and looks up no blob: the list below `index`
    // contains all of them
    store.reset();
    let before = rig.up.seen().len();
    let again = case.pull(0);
    assert_eq!(
        (again["totals"]["present"].as_u64(), rig.up.seen().len()),
        (Some(3), before),
        "{again}"
    );
    assert_eq!(
        (store.count(is_blob("PUT")), store.count(is_blob("HEAD"))),
        (0, 0),
        "{:?}",
        store.requests()
    );
    case.assert_packs();
    // without the lists, each blob is looked up, and then added to a list
    for key in store.keys("air/gap/index") {
        fs::remove_file(store.file(&key)).unwrap();
    }
    store.reset();
    case.pull(0);
    assert_eq!(store.count(is_blob("PUT")), 0);
    assert!(store.count(is_blob("HEAD")) > 10 && store.keys("air/gap/index").len() == 1);
    // `push` reads from the object store as from a store on disk
    let pushed = rig.place.json(
        0,
        &[
            "push",
            "--store",
            STORE,
            "--to",
            &rig.down.address,
            "--plain-http",
            &rig.down.address,
        ],
    );
    assert_eq!(pushed["totals"]["done"], 3, "{pushed}");
    assert!(
        pushed["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|host| host["why"] == "object-store"),
        "{pushed}"
    );
    // wrong bytes under a digest are detected when `pack` reads them, and the next pull repairs
    // them; a pull with --rehash detects them itself
    for repair in [
        &["pull", "--store", STORE][..],
        &["pull", "--store", STORE, "--rehash"],
    ] {
        // lists are named by the second in which they are written
        std::thread::sleep(Duration::from_millis(1100));
        let size = |key: &String| fs::metadata(store.file(key)).unwrap().len();
        let largest = store
            .keys("air/gap/blobs")
            .into_iter()
            .max_by_key(size)
            .unwrap();
        let mut bytes = fs::read(store.file(&largest)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(store.file(&largest), &bytes).unwrap();
        if repair.len() == 3 {
            let packed = rig
                .place
                .json(1, &["pack", "--store", STORE, "-o", "bad.tar.zst"]);
            assert!(
                packed["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("run `landfall pull` again"),
                "{packed}"
            );
            assert!(!rig.place.path("bad.tar.zst").exists());
        }
        let repaired = rig.place.json(0, repair);
        assert!(repaired["totals"]["done"].as_u64() >= Some(1), "{repaired}");
        case.assert_packs();
    }
}

#[test]
fn another_process_resumes_an_upload_after_its_first_part() {
    let case = Case::new(250);
    let rig = &case.rig;
    let store = &case.store;
    let part = |request: &RecordedRequest| {
        let mut words = request.query.split('&').filter(|_| request.method == "PUT");
        words.find_map(|word| word.strip_prefix("partNumber=")?.parse::<usize>().ok())
    };
    // the command is killed when a part is recorded, before the upload can be completed
    store.judge(|request| {
        (request.method == "POST" && request.query.contains("uploadId")).then_some(Fault::SlowDown)
    });
    let mut command = rig.place.command();
    command
        .args(["pull", "--store", STORE, "--progress", "none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while records(store).is_empty() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the command ended before it was killed: {:?}",
            store.requests()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = records(store);
    assert!(!resumed.is_empty(), "the command was killed too late");
    assert!(store.keys("air/gap/blobs").iter().all(|key| {
        let name = key.rsplit('/').next().unwrap();
        sha256(&fs::read(store.file(key)).unwrap()).ends_with(name)
    }));
    store.reset();
    // each fault affects the first requests of one kind
    let mut slow = 2;
    let mut cut = 2;
    let mut part_lost = 1;
    let mut whole_lost = 2;
    store.judge(move |request| {
        let strike = |left: &mut i32, fault: Fault| {
            *left -= 1;
            (*left >= 0).then_some(fault)
        };
        match (request.method.as_str(), request.query.as_str()) {
            ("GET", _) if request.key.contains("/uploads/") => strike(&mut slow, Fault::SlowDown),
            ("PUT", query) if query.contains("partNumber") => {
                strike(&mut cut, Fault::Cut).or_else(|| strike(&mut part_lost, Fault::LostAnswer))
            }
            ("POST", query) if query.contains("uploadId") => {
                strike(&mut whole_lost, Fault::LostAnswer)
            }
            _ => None,
        }
    });
    let pulled = case.pull(0);
    assert_eq!(pulled["totals"]["failed"], 0, "{pulled}");
    for (key, count) in resumed {
        let again = store.count(|request| {
            part(request).is_some_and(|number| number <= count) && request.key.ends_with(&key)
        });
        assert_eq!(again, 0, "one of the {count} parts of {key} was sent again");
    }
    assert_eq!(store.keys("air/gap/uploads"), Vec::<String>::new());
    store.reset();
    case.assert_packs();
    // a wrong clock and a missing bucket are explained
    store.judge(|_| Some(Fault::Skewed));
    let refused = case.pull(1);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("clock"),
        "{refused}"
    );
    store.reset();
    let refused = rig.place.json(1, &["pull", "--store", "s3://other/air"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the bucket does not exist"),
        "{refused}"
    );
    let refused = rig.place.json(2, &["pull", "--store", "s3://mirror//air"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("s3://BUCKET/PREFIX"),
        "{refused}"
    );
}

/// The blobs for which a record says that parts were uploaded, and how many parts each has.
fn records(store: &ObjectStore) -> Vec<(String, usize)> {
    let parts = |key: String| {
        let record: Value = serde_json::from_slice(&fs::read(store.file(&key)).unwrap_or_default())
            .unwrap_or_default();
        let count = record["parts"].as_array().map_or(0, Vec::len);
        (count > 0).then(|| (key.rsplit('/').next().unwrap().to_owned(), count))
    };
    let keys = store.keys("air/gap/uploads").into_iter();
    keys.filter_map(parts).collect()
}

#[test]
fn gc_of_an_object_store_deletes_only_unclaimed_blobs_that_were_condemned_before() {
    let case = Case::new(1);
    let rig = &case.rig;
    let store = &case.store;
    case.pull(0);
    let before = store.keys("air/gap/blobs");
    let gc = |more: &[&str]| {
        rig.place.json(
            0,
            &[&["gc", "--store", STORE, "--lock", "one.lock"][..], more].concat(),
        )
    };
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [{}/team/tool:v1]\n",
        rig.up.address
    );
    rig.place.write("one.yaml", manifest);
    let plain = ["--plain-http", &rig.up.address];
    rig.place.ok(&[
        &["lock", "-f", "one.yaml", "--lock", "one.lock"][..],
        &plain,
    ]
    .concat());
    // the claim of the pull keeps everything
    let swept = gc(&[]);
    assert_eq!(
        (
            swept["condemned"].as_array().unwrap().len(),
            swept["claims"].as_u64()
        ),
        (0, Some(1)),
        "{swept}"
    );
    assert_eq!(store.keys("air/gap/blobs"), before);
    // with a grace period of one second, one gc condemns blobs, and a gc two seconds later deletes
    // them
    std::thread::sleep(Duration::from_millis(2100));
    let dry = gc(&["--grace", "1s", "--dry-run"]);
    let condemned = dry["condemned"].as_array().unwrap().len();
    assert!(
        condemned > 0 && store.keys("air/gap/condemned").is_empty(),
        "{dry}"
    );
    assert_eq!(
        gc(&["--grace", "1s"])["condemned"]
            .as_array()
            .unwrap()
            .len(),
        condemned
    );
    assert_eq!(
        store.keys("air/gap/blobs"),
        before,
        "nothing is deleted at once"
    );
    std::thread::sleep(Duration::from_millis(2100));
    let swept = gc(&["--grace", "1s"]);
    assert_eq!(
        swept["removed"].as_array().unwrap().len(),
        condemned,
        "{swept}"
    );
    assert_eq!(store.keys("air/gap/blobs").len(), before.len() - condemned);
    rig.place.ok(&[
        "pack",
        "--store",
        STORE,
        "--lock",
        "one.lock",
        "-o",
        "one.tar.zst",
    ]);
    let lacking = rig
        .place
        .json(3, &["pack", "--store", STORE, "-o", "all.tar.zst"]);
    assert!(
        lacking["error"]["message"]
            .as_str()
            .unwrap()
            .contains("team/app"),
        "{lacking}"
    );
    case.pull(0);
    case.assert_packs();
    // a refresh uses the object store, and writes the bundle to the same bucket
    let refresh = [
        "refresh",
        "-f",
        "one.yaml",
        "--lock",
        "fresh.lock",
        "-o",
        "s3://mirror/bundles/one.tar.zst",
        "--store",
        STORE,
    ];
    let refreshed = rig.place.json(0, &[&refresh[..], &plain].concat());
    assert_eq!(
        refreshed["bundle"]["path"], "s3://mirror/bundles/one.tar.zst",
        "{refreshed}"
    );
    rig.place.ok(&["verify", "s3://mirror/bundles/one.tar.zst"]);
    let again = rig.place.ok(&[&refresh[..], &plain].concat());
    assert!(again.contains("unchanged"), "{again}");
}

#[test]
fn gc_names_the_setting_for_a_store_that_deletes_single_objects_only() {
    let case = Case::new(1);
    case.store
        .judge(|request| (request.query == "delete").then_some(Fault::NotImplemented));
    case.pull(0);
    // the claim of the pull is then older than the grace period
    std::thread::sleep(Duration::from_millis(2100));
    let gc = [
        "gc",
        "--store",
        STORE,
        "--lock",
        "landfall.lock",
        "--grace",
        "1s",
    ];
    let refused = case.rig.place.json(1, &gc);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("AWS_DISABLE_BULK_DELETE=true"),
        "{refused}"
    );
    case.rig.place.set("AWS_DISABLE_BULK_DELETE", "true");
    case.rig.place.json(0, &gc);
    assert_eq!(case.store.keys("air/gap/claims"), Vec::<String>::new());
}

#[test]
fn google_cloud_storage_gets_its_own_conditional_headers() {
    let rig = Rig::of(250);
    let store = ObjectStore::start_google();
    let place = &rig.place;
    store.introduce_to(place);
    let at = "gs://mirror/air";
    assert_eq!(place.json(0, &["pull", "--store", at])["totals"]["done"], 3);
    assert!(
        store.count(|request| request.method == "PUT" && request.query.contains("partNumber=2"))
            >= 1
    );
    assert_eq!(
        place.json(0, &["pull", "--store", at])["totals"]["present"],
        3
    );
    place.ok(&["pack", "--store", "stores/first", "-o", "wanted.tar.zst"]);
    place.ok(&["pack", "--store", at, "-o", "gs://mirror/out/b.tar.zst"]);
    assert!(fs::read(store.file("out/b.tar.zst")).unwrap() == place.read_bytes("wanted.tar.zst"));
    place.ok(&["verify", "gs://mirror/out/b.tar.zst"]);
    // each replacement of the pointer `current` names the generation that was read
    place.write("empty.lock", "version: 1\n");
    for lock in ["landfall.lock", "empty.lock", "landfall.lock"] {
        place.ok(&["publish", "--store", at, "--lock", lock]);
    }
    let pointer: Value =
        serde_json::from_slice(&fs::read(store.file("air/current")).unwrap()).unwrap();
    assert!(
        pointer["previous"].is_string() && pointer["previous"] != pointer["lock"],
        "{pointer}"
    );
    let requests = store.requests().into_iter();
    let conditions: Vec<Option<String>> = requests
        // the client encodes the slash
        .filter(|request| request.method == "PUT" && request.key == "air%2Fcurrent")
        .map(|request| request.generation)
        .collect();
    assert_eq!(conditions.len(), 3);
    assert_eq!(conditions[0].as_deref(), Some("0"), "{conditions:?}");
    assert!(
        conditions[1..]
            .iter()
            .all(|one| one.as_ref().is_some_and(|generation| generation != "0")),
        "{conditions:?}"
    );
}

/// Otherwise, the emulator would accept requests without a condition or with those of S3.
#[test]
fn the_emulator_of_google_cloud_storage_checks_generations_only() {
    let store = ObjectStore::start_google();
    let address = store.address.to_string();
    let send = |method: &str, name: &str, value: &str, body: &[u8]| {
        request(method, &address, "/mirror/object", &[(name, value)], body).status
    };
    let only = "x-goog-if-generation-match";
    let live = || {
        let found = get(&address, "/mirror/object");
        found.header("x-goog-generation").unwrap().to_owned()
    };
    assert_eq!(send("PUT", only, "0", b"one"), 200);
    assert_eq!(send("PUT", only, "0", b"two"), 412);
    let first = live();
    assert_eq!(send("PUT", "if-none-match", "*", b"two"), 200);
    assert_eq!(send("PUT", only, &first, b"three"), 412);
    assert_eq!(send("DELETE", only, &first, b""), 412);
    let second = live();
    assert_ne!(first, second);
    assert_eq!(send("PUT", only, &second, b"three"), 200);
    assert_eq!(send("DELETE", only, &live(), b""), 204);
    assert_eq!(send("PUT", only, &second, b"four"), 412);
}
