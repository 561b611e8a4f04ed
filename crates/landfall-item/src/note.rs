//! A note: a text that stands in the manifest. Tests alone have this kind; it shows all that a new
//! kind takes.

use super::{
    Checked, Contradiction, EntryReader, Exclude, FileForm, Found, ItemKind, LockedItem, Pins,
    Resolver,
};
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::document::{Field, Node, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Destination, DestinationMap, Digest, ImageRef, media_type};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt;

/// A locked note.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// `note://<host>/<path>:<tag>`.
    pub name: String,
    /// SHA-256 of the text.
    pub digest: Digest,
    /// Size of the text in bytes.
    pub size: u64,
    /// The name without `note://`, as registries have it.
    reference: ImageRef,
    /// The URL at which the text is found.
    url: String,
}

/// A note as a manifest asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedNote {
    name: String,
    reference: ImageRef,
    text: String,
}

/// A note as people write it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteEntry {
    name: String,
    text: String,
}

const SCHEME: &str = "note://";
const EMPTY: &[u8] = b"{}";

impl LockedItem for Note {
    fn kind(&self) -> EntryKind {
        Note::KIND
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let Note {
            name,
            digest,
            size,
            reference,
            url,
        } = self;
        writeln!(
            out,
            "- name: {name}\n  digest: {digest}\n  size: {size}\n  reference: {reference}\n  url: {url}"
        )
    }

    fn fault(&self) -> Option<String> {
        (!self.name.starts_with(SCHEME)).then(|| format!("'{}' is no note", self.name))
    }

    fn entry(&self) -> LockEntry {
        let text = text_of(&self.digest, self.size);
        let config = computed(EMPTY.into(), media_type::OCI_EMPTY);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "artifactType": "text/x-note",
            "config": config.descriptor, "layers": [text],
        });
        let manifest = computed(manifest.to_string().into_bytes(), media_type::OCI_MANIFEST);
        LockEntry {
            kind: Note::KIND,
            name: self.name.clone(),
            digest: self.digest.clone(),
            layout_name: self.name.clone(),
            top: manifest.descriptor.clone(),
            artifact_type: Some("text/x-note"),
            parts: vec![
                config,
                EntryPart {
                    descriptor: text,
                    origin: PartOrigin::Url(self.url.clone()),
                },
                manifest,
            ],
            referrers: Vec::new(),
        }
    }

    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        mapping.destinations(&self.reference)
    }

    fn tag(&self) -> String {
        self.reference.tag.clone().unwrap_or_default()
    }

    fn own_repository(&self) -> String {
        self.reference.name()
    }

    fn reference(&self) -> Option<&ImageRef> {
        Some(&self.reference)
    }

    fn files(&self) -> Vec<FileForm<'_>> {
        vec![FileForm::plain(
            Note::KIND,
            &self.url,
            &self.digest,
            self.size,
        )]
    }
}

impl ItemKind for Note {
    const KIND: EntryKind = EntryKind::Note;
    const HAS_FILES: bool = true;
    type Name = String;
    type Wish = WantedNote;
    type Written = NoteEntry;

    fn is_named(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn wished(wish: &WantedNote) -> &String {
        &wish.name
    }

    fn read(
        entry: &NoteEntry,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(WantedNote, SourceSpan)>> {
        let at = reader.here(node.get("name"));
        let fields = [
            Field::new(&entry.name, at.clone()),
            Field::new(&entry.text, reader.here(node.get("text"))),
        ];
        let mut notes = Vec::new();
        for binding in reader.vars.bindings(&fields)? {
            let name = Note::name_of(&binding.fill(&entry.name), &at)?;
            let reference = name[SCHEME.len()..]
                .parse()
                .map_err(|_| at.fault("this is no note", None))?;
            notes.push((
                WantedNote {
                    name,
                    reference,
                    text: binding.fill(&entry.text),
                },
                at.clone(),
            ));
        }
        Ok(notes)
    }

    fn name_of(text: &str, span: &SourceSpan) -> Checked<String> {
        match text
            .strip_prefix(SCHEME)
            .and_then(|name| name.parse::<ImageRef>().ok())
        {
            Some(ImageRef { tag: Some(_), .. }) => Ok(text.to_owned()),
            _ => Err(span.fault(
                "this is no note",
                Some("write note://<host>/<path>:<tag>".into()),
            )),
        }
    }

    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
        Note::name_of(text, span).map(Exclude::Url)
    }

    fn is_excluded(wish: &WantedNote, exclude: &Exclude) -> bool {
        matches!(exclude, Exclude::Url(url) if *url == wish.name)
    }

    fn alike(wish: &WantedNote, exclude: &Exclude) -> Option<String> {
        matches!(exclude, Exclude::Url(_)).then(|| wish.name.clone())
    }

    fn join(first: &mut WantedNote, second: &WantedNote) -> Result<(), Contradiction> {
        Contradiction::unless_equal("text", &first.text, &second.text, String::clone)
    }

    async fn resolve(
        resolver: &Resolver,
        wish: &WantedNote,
        old: Option<&Note>,
        _: Pins,
    ) -> Found<Note> {
        let (digest, size) = (Digest::sha256(wish.text.as_bytes()), wish.text.len() as u64);
        resolver
            .keep(text_of(&digest, size), wish.text.clone().into())
            .await;
        let reference = wish.reference.clone();
        let url = format!(
            "https://{}/{}.txt",
            reference.name(),
            reference.tag.as_deref().unwrap_or_default()
        );
        let note = Note {
            name: wish.name.clone(),
            digest,
            size,
            reference,
            url,
        };
        match old {
            Some(old) if *old == note => Found::Kept(note),
            _ => Found::New(note),
        }
    }
}

fn text_of(digest: &Digest, size: u64) -> Descriptor {
    Descriptor {
        digest: digest.clone(),
        size,
        media_type: "text/plain".into(),
    }
}

fn computed(bytes: Vec<u8>, media_type: &'static str) -> EntryPart {
    let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
    let descriptor = Descriptor {
        digest,
        size,
        media_type: media_type.into(),
    };
    EntryPart {
        descriptor,
        origin: PartOrigin::Computed(bytes),
    }
}
