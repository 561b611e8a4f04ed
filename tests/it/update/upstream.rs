//! An upstream whose tags are added, moved and removed, and a folder with a manifest.

use crate::support::Place;
use crate::support::faults::{Content, Faults, RequestKind};
use crate::support::images::{noise, sha256_hex};
use serde_json::Value;
use std::sync::Arc;

pub(super) struct Upstream {
    pub(super) place: Place,
    pub(super) faults: Faults,
}

impl Upstream {
    pub(super) fn new() -> Upstream {
        Upstream {
            place: Place::new(),
            faults: Faults::new(Content::default()),
        }
    }

    /// Sets a tag to an index of one image with a layer of its own, and returns the index's digest.
    pub(super) fn put(&self, repository: &str, tag: &str, seed: u64) -> String {
        self.put_platforms(repository, tag, seed, &["linux/amd64"])
    }

    /// Like `put`, for several platforms.
    pub(super) fn put_platforms(
        &self,
        repository: &str,
        tag: &str,
        seed: u64,
        platforms: &[&str],
    ) -> String {
        self.faults.content(|content| {
            let images = platforms.iter().zip(seed * 100..).map(|(platform, seed)| {
                content.image(repository, platform, &[(7, 20_000), (seed, 9000)])
            });
            let images: Vec<Value> = images.collect();
            let index = content.index(repository, &images);
            content.tag(repository, tag, &index);
            index["digest"].as_str().unwrap().to_owned()
        })
    }

    /// Removes a tag and its manifest.
    pub(super) fn remove(&self, repository: &str, tag: &str) {
        self.faults.content(|content| {
            let digest = content.tags[&(repository.to_owned(), tag.to_owned())].clone();
            content.forget(repository, &digest);
        });
    }

    /// Adds a signature of a tag's manifest, under cosign's tag.
    pub(super) fn sign(&self, repository: &str, tag: &str) {
        self.faults.content(|content| {
            let digest = content.tags[&(repository.to_owned(), tag.to_owned())].clone();
            let signature = content.artifact(repository, "signature", None);
            content.tag(repository, &(digest.replace(':', "-") + ".sig"), &signature);
        });
    }

    /// Adds a file below `/files/`.
    pub(super) fn file(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        let bytes = Arc::new(bytes.into());
        self.faults
            .content(|content| content.files.insert(format!("/files/{name}"), bytes));
    }

    /// Adds a file of noise, and its checksum file.
    pub(super) fn checked_file(&self, name: &str, seed: u64) {
        let content = noise(seed, 12_000);
        let sum = sha256_hex(&content);
        self.file(name, content);
        self.file(&format!("{name}.sha256"), sum + "\n");
    }

    /// Writes a manifest with this body; `REG` is replaced by the registry, `URL` by the web
    /// server.
    pub(super) fn manifest(&self, body: &str) -> String {
        let text =
            format!("apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\n{body}");
        let text = self.here(&text);
        self.place.write("m.yaml", &text);
        text
    }

    /// Replaces `REG` and `URL` in `text` by the addresses of this upstream.
    pub(super) fn here(&self, text: &str) -> String {
        text.replace("REG", &self.faults.address)
            .replace("URL", &format!("http://{}/files", self.faults.address))
    }

    /// Removes all faults, runs the command `verb` on the manifest, and returns its report.
    pub(super) fn run(&self, exit: i32, verb: &str, more: &[&str]) -> Value {
        self.faults.set_faults([]);
        self.place.json(exit, &self.args(verb, more))
    }

    /// The arguments of [`Upstream::run`].
    pub(super) fn args<'a>(&'a self, verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let common = [
            "-f",
            "m.yaml",
            "--store",
            "store",
            "--plain-http",
            &self.faults.address,
        ];
        [&[verb], &common[..], more].concat()
    }

    /// The number of requests of a kind since the last run began, without those that confirm by GET
    /// that upstream lacks something.
    pub(super) fn found(&self, on: RequestKind) -> usize {
        let seen = self.faults.seen();
        let found = seen
            .iter()
            .filter(|seen| seen.on == Some(on) && seen.status != 404);
        found.count()
    }

    /// The number of requests of a kind since the last run began.
    pub(super) fn count(&self, on: RequestKind) -> usize {
        self.faults
            .seen()
            .iter()
            .filter(|seen| seen.on == Some(on))
            .count()
    }
}
