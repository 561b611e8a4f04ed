//! An image in a manifest, and how it expands to requests.

use super::request::{BundleImages, ImageRequest};
use crate::item_kind::{EntryContext, EntryFields, EntryReader, ManifestResult, digest_of};
use crate::local::local_place;
use crate::text::{check_ref_digest, update_rule};
use crate::version_selector::{
    SelectKeys, SelectRule, VersionSelector, VersionSource, check_select,
};
use crate::{EntryPathStep, ManifestEntry, MovableVersion};
use landfall_content::LocalForm;
use landfall_model::document::{SourceSpan, UpdateRule};
use landfall_model::{Digest, ImageRef, PlatformRequest, ReferenceError, text_or_mapping};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::num::NonZeroUsize;

/// A container image in a manifest.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum ImageEntry {
    /// A reference with a tag, a digest or both.
    Short(String),
    /// A mapping with more fields.
    Full(Box<FullImage>),
}

/// An image with more fields.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["ref"]}, {"required": ["repo", "select"]}]))]
pub struct FullImage {
    /// A reference with a tag, a digest or both.
    pub r#ref: Option<String>,
    /// In place of `ref`: the repository whose tags `select` selects.
    pub repo: Option<String>,
    /// With `repo`: a rule by which `landfall update` selects versions: a range as in `">=1.8 <2"`,
    /// or a pattern. Or a mapping with one of these as `policy` and, optionally, `minAge`.
    pub select: Option<UpdateRule>,
    /// How many of the newest selected versions are mirrored. Without it, all of them.
    pub newest: Option<NonZeroUsize>,
    /// Versions that are not selected, or patterns of such versions with a leading `^`.
    pub except: Vec<String>,
    /// With `repo`: the selected tags. `landfall update` writes them.
    pub tags: Vec<String>,
    /// An archive next to the manifest that has the image: a docker archive, an OCI archive or an
    /// OCI layout.
    pub archive: Option<String>,
    /// The digest that the image must have. `lock` fails if upstream has another digest.
    pub digest: Option<String>,
    /// The platforms. Overrides those of the manifest.
    pub platforms: Option<Vec<String>>,
    /// The versions that `landfall update` may move to: `patch`, `minor`, a range as in `~1.9`, a
    /// pattern, `digest`, or `never`. Or a mapping with one of these as `policy` and, optionally,
    /// `minAge` and `keep`.
    pub update: Option<UpdateRule>,
    /// Whether its signatures, attestations, SBOMs and other referrers are carried. Overrides the
    /// manifest's setting.
    pub referrers: Option<bool>,
    /// Whether the images that it lists are carried too. It must be a bundle of Carvel's imgpkg.
    pub listed: bool,
}

impl ImageEntry {
    /// The image reference as it is written.
    pub(crate) fn reference(&self) -> &str {
        match self {
            ImageEntry::Short(text) => text,
            ImageEntry::Full(image) => image.r#ref.as_deref().unwrap_or_default(),
        }
    }
}

impl<'de> Deserialize<'de> for ImageEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ImageEntry, D::Error> {
        let expected = "an image reference, or a mapping with `ref` or `repo`";
        let full = |full| ImageEntry::Full(Box::new(full));
        text_or_mapping(deserializer, expected, ImageEntry::Short, full)
    }
}

impl ManifestEntry for ImageEntry {
    type Request = ImageRequest;

    fn check(&self, reader: EntryReader<'_>) -> ManifestResult<()> {
        let ImageEntry::Full(image) = self else {
            return Ok(());
        };
        if image.r#ref.is_some() == image.repo.is_some()
            || image.repo.is_some() && image.select.is_none()
        {
            let help = "write `ref: quay.io/team/app:v1.2.3`, or `repo: quay.io/team/app` and \
                        `select: \">=1.2 <2\"`";
            return Err(reader
                .here()
                .fault("an image needs `ref`, or `repo` and `select`", Some(help)));
        }
        check_select(image.select.as_ref(), SELECT_KEYS, reader)
    }

    fn selector(&self, reader: EntryReader<'_>) -> ManifestResult<Option<VersionSelector>> {
        let ImageEntry::Full(image) = self else {
            return Ok(None);
        };
        let (Some(repo), Some(rule)) = (&image.repo, &image.select) else {
            return Ok(None);
        };
        let at = reader.at("repo");
        let repository = repository_of(repo, &at)?;
        let rule = SelectRule {
            rule,
            newest: image.newest,
            except: &image.except,
            versions: &image.tags,
        };
        let source = VersionSource::tags(repository.clone());
        let name = repository.to_string();
        rule.selector(name, source, SELECT_KEYS.versions, reader)
            .map(Some)
    }

    fn add_fields<'e>(&'e mut self, fields: &mut EntryFields<'_, 'e>) {
        match self {
            ImageEntry::Short(text) => fields.add_at(fields.node, [text]),
            ImageEntry::Full(image) => {
                fields.add("ref", &mut image.r#ref);
                fields.add("repo", &mut image.repo);
                fields.add("archive", &mut image.archive);
                fields.add("digest", &mut image.digest);
                fields.add_policy("update", &mut image.update);
                fields.add_policy("select", &mut image.select);
                fields.add_list("platforms", image.platforms.iter_mut().flatten());
            }
        }
    }

    fn requests(
        &self,
        written: &ImageEntry,
        reader: EntryReader<'_>,
    ) -> ManifestResult<Vec<(ImageRequest, SourceSpan)>> {
        let image = match self {
            ImageEntry::Short(text) => {
                let at = reader.here();
                return Ok(vec![(listed(text, &at, reader.context)?, at)]);
            }
            ImageEntry::Full(image) => image,
        };
        let platforms = match &image.platforms {
            None => reader.context.platforms.clone(),
            Some(texts) => platforms(texts, |index| reader.item_at("platforms", index))?,
        };
        let referrers = image.referrers.unwrap_or(reader.context.referrers);
        let listed = if image.listed {
            BundleImages::Carried
        } else {
            BundleImages::Omitted
        };
        let Some(reference) = &image.r#ref else {
            let repository = image.repo.as_deref().unwrap_or_default();
            let selected = image.tags.iter().enumerate().map(|(index, tag)| {
                let at = reader.item_at("tags", index);
                let (name, pin) = reference_of(&format!("{repository}:{tag}"), &at)?;
                let request = ImageRequest {
                    listed,
                    ..ImageRequest::new(name, pin, platforms.clone(), referrers, at.location())
                };
                Ok((request, at))
            });
            return selected.collect();
        };
        let at = reader.at("ref");
        let digest_at = reader.at("digest");
        let digest = image.digest.as_ref();
        let digest = digest.map(|text| digest_of(text, &digest_at)).transpose()?;
        let (name, pin) = pinned(reference, digest, &at, &digest_at)?;
        // the tag as it is written: the policy of an entry cannot update a variable in the tag
        let version = tag_of(written.reference()).filter(|_| name.tag.is_some());
        let rule = image.update.as_ref();
        let update = update_rule(rule, version, "an image", reader.below("update"))?;
        let archive_at = reader.at("archive");
        let archive = image.archive.as_ref();
        let archive = archive
            .map(|text| local_place(text, LocalForm::Image(name.clone()), &archive_at, reader))
            .transpose()?
            .map(|(_, place)| place);
        if archive.is_some() && (update.is_some() || name.tag.is_none()) {
            let help = "write a tag in `ref`, and remove `update`";
            let message = "an image of an archive needs a tag, and has no newer versions";
            return Err(archive_at.fault(message, Some(help)));
        }
        let request = ImageRequest {
            archive,
            update,
            listed,
            ..ImageRequest::new(name, pin, platforms, referrers, at.location())
        };
        Ok(vec![(request, at)])
    }

    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        movable_tag(self).into_iter().collect()
    }
}

/// The tag of `entry`, if it has an update policy.
fn movable_tag(entry: &ImageEntry) -> Option<MovableVersion<'_>> {
    let ImageEntry::Full(image) = entry else {
        return None;
    };
    let rule = image.update.as_ref()?;
    let text = image.r#ref.as_deref()?;
    let version = tag_of(text)?;
    // `version` is a slice of `text`, so the difference of the pointers is its offset
    let start = version.as_ptr() as usize - text.as_ptr() as usize;
    let version = start..start + version.len();
    let name = text[..start - 1].to_owned();
    Some(MovableVersion {
        rule,
        name,
        item_key: "ref",
        path: vec![EntryPathStep::Key("ref")],
        text,
        version,
    })
}

/// The keys of an image with `select`.
const SELECT_KEYS: SelectKeys = SelectKeys {
    versions: "tags",
    others: &["ref", "digest", "update", "archive"],
};

/// Parses the repository of a selector, which has neither tag nor digest.
fn repository_of(text: &str, at: &SourceSpan) -> ManifestResult<ImageRef> {
    let repository: ImageRef = text
        .parse()
        .map_err(|error: ReferenceError| at.fault(error.to_string(), None))?;
    if repository.is_pinned() {
        return Err(at.fault(
            format!("`{text}` is not a repository: it has a tag or a digest"),
            Some("remove it, as in quay.io/team/app; or write `ref` in place of `repo`"),
        ));
    }
    Ok(repository)
}

/// The tag in a reference. The reference may contain variables and is therefore not parsed as a
/// whole.
pub fn tag_of(reference: &str) -> Option<&str> {
    let path = reference.split('@').next().unwrap_or(reference);
    // a colon before the last slash belongs to the port of the registry
    let (_, tag) = path.rsplit('/').next().unwrap_or(path).rsplit_once(':')?;
    Some(tag)
}

/// A request for an image in another tool's list.
///
/// # Errors
/// If `reference` is not valid, or has neither a tag nor a digest.
pub fn listed(
    reference: &str,
    span: &SourceSpan,
    reader: &EntryContext<'_>,
) -> ManifestResult<ImageRequest> {
    let (name, pin) = reference_of(reference, span)?;
    let platforms = reader.platforms.clone();
    let at = span.location();
    Ok(ImageRequest::new(
        name,
        pin,
        platforms,
        reader.referrers,
        at,
    ))
}

/// Name and pin of a reference without a `digest` key.
pub(crate) fn reference_of(
    text: &str,
    span: &SourceSpan,
) -> ManifestResult<(ImageRef, Option<Digest>)> {
    pinned(text, None, span, span)
}

/// The reference in a line of a list that has something around it: a bullet, quotes, a scheme, or
/// the command that pulls the image. `None` if there is no reference with a path or tag, or nothing
/// around it.
pub(crate) fn undecorated(line: &str) -> Option<&str> {
    let around = ["- ", "* ", "docker pull ", "docker://"];
    let bare = around.iter().fold(line.trim(), |rest, prefix| {
        rest.strip_prefix(prefix).unwrap_or(rest).trim_start()
    });
    let bare = bare.trim_matches(['"', '\'', '`', ',']);
    let is_reference = bare.contains(['/', ':']) && bare.parse::<ImageRef>().is_ok();
    (bare != line && is_reference).then_some(bare)
}

/// Name and pin of a reference with the value of the `digest` key, if there is one.
fn pinned(
    text: &str,
    digest: Option<Digest>,
    at: &SourceSpan,
    digest_at: &SourceSpan,
) -> ManifestResult<(ImageRef, Option<Digest>)> {
    let reference: ImageRef = text.parse().map_err(|error: ReferenceError| {
        let help = match undecorated(text) {
            Some(reference) => format!("write `{reference}`"),
            None if text.contains("://") => {
                "write an image without a scheme, as in registry.k8s.io/pause:3.10.1".into()
            }
            None => "write registry/repository:tag, as in registry.k8s.io/pause:3.10.1".into(),
        };
        at.fault(error.to_string(), Some(&help))
    })?;
    check_ref_digest(reference.digest.as_ref(), digest.as_ref(), digest_at)?;
    // With a tag, the digest is a requirement that `lock` checks; without a tag, it is a part of
    // the name.
    match (reference.tag.is_some(), reference.digest.clone().or(digest)) {
        (true, pin) => Ok((
            ImageRef {
                digest: None,
                ..reference
            },
            pin,
        )),
        (false, Some(digest)) => Ok((reference.at_digest(&digest), None)),
        (false, None) => {
            let help = format!("add the tag or digest, as in {text}:v1.2.3");
            Err(at.fault(format!("`{text}` names no version"), Some(&help)))
        }
    }
}

/// Parses and sorts platforms. `span` returns the position of the text with the given index.
///
/// # Errors
/// If one of them is not a valid platform.
pub fn platforms(
    texts: &[String],
    span: impl Fn(usize) -> SourceSpan,
) -> ManifestResult<Vec<PlatformRequest>> {
    let mut platforms = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let platform = text
            .parse::<PlatformRequest>()
            .map_err(|error| span(index).fault(error, None))?;
        platforms.push(platform);
    }
    // the order has no meaning, and the lock must not change with it; a platform that is listed
    // with and without a question mark is required
    platforms.sort();
    platforms.dedup_by(|second, first| first.platform == second.platform);
    Ok(platforms)
}
