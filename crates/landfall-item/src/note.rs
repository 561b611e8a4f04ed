//! A note: a text that is written in the manifest. Only tests have this kind; it shows everything
//! that a new kind needs.

use super::{
    AuditedItem, EntryContext, Exclusion, FieldConflict, ItemIdentity, ItemKind, ItemRequest,
    LockedItem, ManifestEntry, ManifestResult, PinPolicy, PushedItem, ResolvableRequest,
    ResolveOutcome, Resolver, ServedItem, UpdatableRequest, UrlFile,
};
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::document::{SourceSpan, TemplateField, YamlNode};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Destination, DestinationMap, Digest, ImageRef, media_type};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt;

/// A note in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedNote {
    /// The name, as in `note://<host>/<path>:<tag>`.
    pub name: String,
    /// SHA-256 of the note's text.
    pub digest: Digest,
    /// Size of the text in bytes.
    pub size: u64,
    /// The name without `note://`, as an image reference.
    reference: ImageRef,
    /// The URL at which clients find the text.
    url: String,
}

/// A request for a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRequest {
    name: String,
    reference: ImageRef,
    text: String,
}

/// A note in a manifest.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteEntry {
    name: String,
    text: String,
}

const SCHEME: &str = "note://";
const EMPTY: &[u8] = b"{}";

impl ItemIdentity for LockedNote {
    fn kind(&self) -> EntryKind {
        LockedNote::KIND
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.reference.name()
    }
}

impl PushedItem for LockedNote {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        mapping.destinations(&self.reference)
    }

    fn tag(&self) -> String {
        self.reference.tag.clone().unwrap_or_default()
    }
}

impl AuditedItem for LockedNote {
    fn reference(&self) -> Option<&ImageRef> {
        Some(&self.reference)
    }
}

impl ServedItem for LockedNote {
    fn own_repository(&self) -> String {
        self.reference.name()
    }

    fn files(&self) -> Vec<UrlFile<'_>> {
        vec![UrlFile::plain(
            LockedNote::KIND,
            &self.url,
            &self.digest,
            self.size,
        )]
    }
}

impl LockedItem for LockedNote {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let LockedNote {
            name,
            digest,
            size,
            reference,
            url,
        } = self;
        writeln!(
            out,
            "- name: {name}\n  digest: {digest}\n  size: {size}\n  reference: {reference}\n  \
             url: {url}"
        )
    }

    fn implausibility(&self) -> Option<String> {
        (!self.name.starts_with(SCHEME)).then(|| format!("'{}' is not a note", self.name))
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
            kind: LockedNote::KIND,
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
            referrer_blobs: std::collections::BTreeSet::new(),
        }
    }
}

impl ItemKind for LockedNote {
    const KIND: EntryKind = EntryKind::Note;
    const SECTION: &'static str = "notes";
    const HAS_FILES: bool = true;
    type Name = String;
    type Request = NoteRequest;
    type Entry = NoteEntry;

    fn is_name(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    fn key(&self) -> &String {
        &self.name
    }

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        match text
            .strip_prefix(SCHEME)
            .and_then(|name| name.parse::<ImageRef>().ok())
        {
            Some(ImageRef { tag: Some(_), .. }) => Ok(text.to_owned()),
            _ => Err(span.fault(
                "this is not a note",
                Some("write note://<host>/<path>:<tag>".into()),
            )),
        }
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        LockedNote::parse_name(text, span).map(Exclusion::Url)
    }
}

impl ManifestEntry for NoteEntry {
    type Request = NoteRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryContext<'_>,
    ) -> ManifestResult<Vec<(NoteRequest, SourceSpan)>> {
        let at = reader.here(node.get("name"));
        let fields = [
            TemplateField::new(&self.name, at.clone()),
            TemplateField::new(&self.text, reader.here(node.get("text"))),
        ];
        let mut notes = Vec::new();
        for binding in reader.vars.bindings(&fields)? {
            let name = LockedNote::parse_name(&binding.fill(&self.name), &at)?;
            let reference = name[SCHEME.len()..]
                .parse()
                .map_err(|_| at.fault("this is not a note", None))?;
            notes.push((
                NoteRequest {
                    name,
                    reference,
                    text: binding.fill(&self.text),
                },
                at.clone(),
            ));
        }
        Ok(notes)
    }
}

impl ItemRequest for NoteRequest {
    type Name = String;

    fn name(&self) -> &String {
        &self.name
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        exclusion.matches_url(&self.name)
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        matches!(exclusion, Exclusion::Url(_)).then(|| self.name.clone())
    }

    fn merge(&mut self, other: &NoteRequest) -> Result<(), FieldConflict> {
        FieldConflict::check_equal("text", &self.text, &other.text, String::clone)
    }
}

impl ResolvableRequest for NoteRequest {
    type Item = LockedNote;

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedNote>,
        _pins: PinPolicy,
    ) -> ResolveOutcome<LockedNote> {
        let digest = Digest::sha256(self.text.as_bytes());
        let size = self.text.len() as u64;
        resolver
            .keep(text_of(&digest, size), self.text.clone().into())
            .await;
        let reference = self.reference.clone();
        let url = format!(
            "https://{}/{}.txt",
            reference.name(),
            reference.tag.as_deref().unwrap_or_default()
        );
        let note = LockedNote {
            name: self.name.clone(),
            digest,
            size,
            reference,
            url,
        };
        match old {
            Some(old) if *old == note => ResolveOutcome::Kept(note),
            _ => ResolveOutcome::New(note),
        }
    }
}

impl UpdatableRequest for NoteRequest {}

fn text_of(digest: &Digest, size: u64) -> Descriptor {
    Descriptor {
        digest: digest.clone(),
        size,
        media_type: "text/plain".into(),
    }
}

fn computed(bytes: Vec<u8>, media_type: &'static str) -> EntryPart {
    let digest = Digest::sha256(&bytes);
    let size = bytes.len() as u64;
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
