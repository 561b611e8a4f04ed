//! Two fault registries and the library between them, in this process. Each run has its own
//! transport, like a separate process.

use super::content::Content;
use super::server::Faults;
use super::switch::Fault;
use crate::support::Place;
use crate::support::images::{noise, sha256, sha256_hex};
use crate::support::library::{
    BundleOptions, CachePolicy, Client, ClientBuilder, DestinationMap, Digest, Failure, ItemStatus,
    Limits, Lock, Locked, Omitted, PackOptions, PackPlan, Packaging, PinPolicy, Progress,
    PushOptions, Pushed, ReportItem, Store, load_manifests, pack, today,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whether all items are there.
pub fn done(items: &[ReportItem]) -> bool {
    items
        .iter()
        .all(|item| matches!(item.status, ItemStatus::Done | ItemStatus::Present))
}

/// The reason of the first item that failed.
pub fn reason(items: &[ReportItem]) -> String {
    let failed = items.iter().find(|item| item.status == ItemStatus::Failed);
    failed
        .and_then(|item| item.reason.clone())
        .unwrap_or_default()
}

/// Limits for fast tests: pauses of milliseconds, timeouts of less than a second.
pub fn quick() -> Limits {
    Limits {
        backoff: Duration::from_millis(4),
        backoff_most: Duration::from_millis(40),
        first_byte: Duration::from_millis(700),
        idle: Duration::from_millis(500),
        upload_answer: Duration::from_millis(900),
        chunks: [6000, 2500],
        progress: 1,
        jobs: 8,
        ..Limits::default()
    }
}

/// Like [`quick`], but blobs of 11,000 bytes and more are downloaded over several connections.
pub fn quick_and_wide() -> Limits {
    Limits {
        parallel_from: 11_000,
        parallel_share: 2000,
        journal_step: 1000,
        ..quick()
    }
}

/// Two registries: `up` with content, `down` without.
pub struct Rig {
    pub up: Faults,
    pub down: Faults,
    pub place: Place,
    pub limits: Limits,
    /// The options of `push` and `mirror`.
    pub delivery: PushOptions,
    /// The notes that runs reported as progress.
    pub notes: Arc<Notes>,
    runtime: tokio::runtime::Runtime,
    /// The lock of a run without faults.
    pub lock: Lock,
    /// The digest of the bundle of that run.
    pub bundle: Digest,
}

/// The notes of all runs, and the transferred and total bytes of the current phase.
#[derive(Default)]
pub struct Notes(Mutex<Vec<String>>, Mutex<Option<(u64, u64)>>);

impl Notes {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Progress for Notes {
    fn begin(&self, _what: &str, _items: u64, bytes: u64) {
        *self.1.lock().unwrap() = Some((0, bytes)).filter(|_| bytes > 0);
    }
    fn bytes(&self, count: u64) {
        let mut phase = self.1.lock().unwrap();
        let Some((done, total)) = phase.as_mut() else {
            return;
        };
        *done += count;
        if *done > *total {
            // a worker must not panic here, since its panic would count as a failed item
            self.note(&format!("{EXCEEDED}: {done} of {total} bytes"));
        }
    }
    fn more(&self, bytes: u64) {
        if let Some((_, total)) = self.1.lock().unwrap().as_mut() {
            *total += bytes;
        }
    }
    fn item(&self, _name: &str) {}
    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
    fn end(&self) {
        *self.1.lock().unwrap() = None;
    }
}

const EXCEEDED: &str = "the progress exceeds its total";

impl Notes {
    /// Asserts that progress never exceeds its total.
    fn check(&self) {
        let lines = self.lines();
        let exceeded = lines.iter().find(|line| line.starts_with(EXCEEDED));
        assert_eq!(exceeded, None);
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.notes.check();
        }
    }
}

/// Two images over one base, and a file; the largest blob is the base, of 40 KB times `scale`.
fn content(scale: usize) -> Content {
    let mut content = Content::default();
    let base = (1, 40_000 * scale);
    let app = [("linux/amd64", 2), ("linux/arm64", 3)]
        .map(|(platform, seed)| content.image("team/app", platform, &[base, (seed, 9000 * scale)]));
    let app = content.index("team/app", &app);
    content.tag("team/app", "v1", &app);
    let tool = content.image("team/tool", "linux/amd64", &[base, (4, 12_000 * scale)]);
    content.tag("team/tool", "v1", &tool);
    // the first image has a signature tag, the second has two referrers
    let signature = content.artifact("team/app", "signature", None);
    let tag = app["digest"].as_str().unwrap().replace(':', "-") + ".sig";
    content.tag("team/app", &tag, &signature);
    let mut subject = tool.clone();
    subject.as_object_mut().unwrap().remove("platform");
    for text in ["attestation", "bill of materials"] {
        content.artifact("team/tool", text, Some(&subject));
    }
    let file = noise(5, 30_000 * scale);
    let sum = sha256_hex(&file) + "  tool.bin\n";
    content
        .files
        .insert("/files/tool.bin".into(), Arc::new(file));
    content
        .files
        .insert("/files/tool.bin.sha256".into(), Arc::new(sum.into_bytes()));
    content
}

impl Rig {
    pub fn new() -> Rig {
        Rig::of(1)
    }

    /// Like `new`, with content that is larger by this factor.
    pub fn of(scale: usize) -> Rig {
        let manifest = "images: [HOST/team/app:v1, HOST/team/tool:v1]\nfiles:\n\
                        - {url: \"http://HOST/files/tool.bin\", checksum: \"${url}.sha256\"}\n";
        Rig::holding(content(scale), manifest)
    }

    /// Like `new`, with `images` images, each in its own repository and with two layers that no
    /// other image has.
    pub fn of_images(images: usize) -> Rig {
        let mut content = Content::default();
        let mut manifest = "images:\n".to_owned();
        for at in 0..images {
            let repository = format!("team/app{at}");
            let seed = 2 * at as u64;
            let image = content.image(
                &repository,
                "linux/amd64",
                &[(seed, 20_000), (seed + 1, 5000)],
            );
            content.tag(&repository, "v1", &image);
            manifest += &format!("- HOST/{repository}:v1\n");
        }
        Rig::holding(content, &manifest)
    }

    /// A rig with this content at the upstream, and a manifest with these sections, in which `HOST`
    /// is replaced by the address of the upstream.
    pub fn holding(content: Content, sections: &str) -> Rig {
        let up = Faults::new(content);
        let down = Faults::new(Content::default());
        let place = Place::new();
        let sections = sections.replace("HOST", &up.address);
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        place.write("m.yaml", format!("{head}{sections}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let mut rig = Rig {
            up,
            down,
            place,
            limits: quick(),
            delivery: PushOptions::default(),
            notes: Arc::default(),
            runtime: runtime.unwrap(),
            lock: Lock::default(),
            bundle: Digest::sha256(b""),
        };
        rig.lock = rig.resolve("first").lock;
        assert!(rig.lock.unresolved.is_empty(), "{:?}", rig.lock.unresolved);
        let items = rig.pull("first");
        assert!(
            items.iter().all(|item| item.status == ItemStatus::Done),
            "{items:?}"
        );
        rig.bundle = rig.pack("first");
        rig.place.write("landfall.lock", rig.lock.to_text());
        rig
    }

    /// Replaces the faults of the upstream, and removes those of the private registry.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.up.set_faults(faults);
        self.down.set_faults([]);
    }

    pub fn store(&self, name: &str) -> PathBuf {
        self.place.path(format!("stores/{name}"))
    }

    fn open(&self, store: &str) -> Store {
        Store::open(&self.store(store)).unwrap()
    }

    fn client(&self) -> Client {
        let builder = ClientBuilder::default()
            .without_environment()
            .limits(self.limits);
        let builder = builder.plain_http([&self.up.address, &self.down.address]);
        builder.progress(self.notes.clone()).build().unwrap()
    }

    /// `landfall lock` into a store.
    pub fn resolve(&self, store: &str) -> Locked {
        let wanted = load_manifests(&[self.place.path("m.yaml")]).unwrap();
        self.runtime.block_on(
            self.client()
                .lock(&wanted, None, PinPolicy::Keep, &self.open(store)),
        )
    }

    /// `landfall lock` with the lock of the last run.
    pub fn resolve_again(&self, store: &str) -> Locked {
        let wanted = load_manifests(&[self.place.path("m.yaml")]).unwrap();
        let old = Some(&self.lock);
        self.runtime.block_on(
            self.client()
                .lock(&wanted, old, PinPolicy::Keep, &self.open(store)),
        )
    }

    /// `landfall pull` into a store.
    pub fn pull(&self, store: &str) -> Vec<ReportItem> {
        self.runtime
            .block_on(self.client().pull(&self.lock, &self.open(store), false))
            .unwrap()
    }

    /// `landfall pull --bundle` without a store. Asserts that the bundle was completed if and only
    /// if no item failed.
    pub fn pull_bundle(&self, out: &Path) -> Vec<ReportItem> {
        let plan = Arc::new(PackPlan::of_complete_lock(
            &self.lock,
            jiff::civil::Date::MIN,
        ));
        let options = BundleOptions {
            pack: PackOptions { level: 1 },
            ..BundleOptions::default()
        };
        let pulled = self
            .runtime
            .block_on(self.client().pull_bundle(&self.lock, plan, out, options))
            .unwrap();
        let failed = pulled
            .items
            .iter()
            .any(|item| item.status == ItemStatus::Failed);
        assert_eq!(pulled.packed.is_none(), failed, "{:?}", pulled.items);
        pulled.items
    }

    /// `landfall pack` of a store. Returns the digest of the bundle.
    pub fn pack(&self, store: &str) -> Digest {
        let (store, out) = (self.open(store), self.place.path(format!("{store}.bundle")));
        let plan = PackPlan::new(&self.lock, &store, today()).unwrap();
        let options = PackOptions { level: 1 };
        pack(
            &plan,
            &store,
            &out,
            options,
            &Packaging::default(),
            &*self.notes,
        )
        .unwrap()
        .digest
    }

    /// `landfall push` of a store to the private registry.
    pub fn push(&self, store: &str) -> Result<Pushed, Failure> {
        let blobs = Arc::new(self.open(store));
        let omitted = Omitted::default();
        let client = self.client();
        let to = self.far_side();
        let pushing = client.push(&self.lock, blobs, &omitted, &to, self.delivery.clone());
        self.runtime.block_on(pushing)
    }

    /// `landfall mirror` from the upstream to the private registry.
    pub fn mirror(&self) -> Result<Pushed, Failure> {
        let dir = tempfile::tempdir().unwrap();
        self.mirror_by(&Store::open(dir.path()).unwrap(), CachePolicy::ReadOnly)
    }

    /// `landfall mirror` with a store that keeps the downloaded content.
    pub fn mirror_keeping(&self, store: &str) -> Result<Pushed, Failure> {
        self.mirror_by(&self.open(store), CachePolicy::ReadThrough)
    }

    fn mirror_by(&self, store: &Store, keep: CachePolicy) -> Result<Pushed, Failure> {
        let client = self.client();
        self.runtime.block_on(client.mirror(
            &self.lock,
            store,
            keep,
            &self.far_side(),
            self.delivery.clone(),
        ))
    }

    fn far_side(&self) -> DestinationMap {
        DestinationMap::to(self.down.address.parse().unwrap())
    }

    /// Deletes all content of the private registry.
    pub fn empty_far_side(&self) {
        self.down.content(|content| *content = Content::default());
    }

    /// Asserts that a store packs to the same bundle as the run without faults, and that it has no
    /// leftover files.
    pub fn assert_same(&self, store: &str, what: &str) {
        assert_eq!(self.pack(store), self.bundle, "{what}");
        assert_eq!(
            leftovers(&self.store(store)),
            Vec::<String>::new(),
            "{what}"
        );
    }

    /// Asserts that the private registry has every tag of the upstream, each blob and manifest of
    /// the upstream's repositories byte for byte, and the content of `tool.bin`.
    pub fn assert_arrived(&self, what: &str) {
        let here = self.up.content(|c| c.clone());
        let there = self.down.content(|c| c.clone());
        let repositories: BTreeSet<&String> =
            here.tags.keys().map(|(repository, _)| repository).collect();
        for repository in repositories {
            for (tag, digest) in here.tags.iter().filter(|((own, _), _)| own == repository) {
                assert_eq!(Some(digest), there.tags.get(tag), "{what}: {tag:?}");
            }
            let mine = |content: &Content| -> BTreeSet<(String, Vec<u8>)> {
                let blobs = content
                    .blobs
                    .iter()
                    .filter(|((own, _), _)| own == repository);
                let blobs = blobs.map(|((_, digest), bytes)| (digest.clone(), bytes.to_vec()));
                let manifests = content
                    .manifests
                    .iter()
                    .filter(|((own, _), _)| own == repository);
                let manifests =
                    manifests.map(|((_, digest), (_, bytes))| (digest.clone(), bytes.to_vec()));
                blobs.chain(manifests).collect()
            };
            // the private registry may have a list of referrers in addition
            let lacking: Vec<_> = mine(&here)
                .difference(&mine(&there))
                .map(|(digest, _)| digest.clone())
                .collect();
            assert_eq!(lacking, Vec::<String>::new(), "{what}: {repository}");
        }
        let Some(file) = here.files.get("/files/tool.bin") else {
            return;
        };
        assert!(
            there.any_blob(&sha256(file)).as_ref() == Some(file),
            "{what}: the file differs"
        );
    }
}

/// The partial and temporary files of a store, and the unknown files in its folder `.landfall`.
pub fn leftovers(store: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["partial", "temporary"] {
        let Ok(files) = std::fs::read_dir(store.join(".landfall").join(folder)) else {
            continue;
        };
        found.extend(
            files
                .flatten()
                .map(|file| format!("{folder}/{}", file.file_name().to_string_lossy())),
        );
    }
    let known = [
        "partial",
        "temporary",
        "verified",
        "lock",
        "in-use",
        "egress",
        "repositories",
    ];
    let own = std::fs::read_dir(store.join(".landfall"))
        .unwrap()
        .flatten();
    let own = own.map(|file| file.file_name().to_string_lossy().into_owned());
    found.extend(own.filter(|name| !known.contains(&name.as_str())));
    found
}
