//! Finds the versions that `landfall update` may change in the variables of a manifest.

use super::entry_versions::{by_position, image_versions, package_versions, position};
use super::kept_versions::KeptVersions;
use super::load::ParsedManifest;
use super::updatable_version::{PackageVersions, UpdatableVersion, VersionSource, moving_policy};
use super::version_location::VersionLocation;
use crate::{ItemKind, LockedImage, LockedPackageSet, tag_of};
use landfall_model::document::{MovingVar, VersionsFrom};
use landfall_model::report::EntryKind;
use serde_yaml::Value;

pub(super) fn versions_in_variables(read: &ParsedManifest) -> Vec<UpdatableVersion> {
    let mut found = Vec::new();
    let default = read.document.min_age.as_ref();
    for (name, value) in &read.document.vars {
        let Ok(var) = serde_yaml::from_value::<MovingVar>(value.clone()) else {
            continue;
        };
        let Some(policy) = moving_policy(&var.update.policy) else {
            continue;
        };
        let texts: Vec<(Option<usize>, String)> = match &var.value {
            Value::Sequence(values) => {
                let texts = values
                    .iter()
                    .map(|value| value.as_str().unwrap_or_default().to_owned());
                texts
                    .enumerate()
                    .map(|(at, text)| (Some(at), text))
                    .collect()
            }
            value => vec![(None, value.as_str().unwrap_or_default().to_owned())],
        };
        let versions = match var.from {
            Some(VersionsFrom::Text(text)) if !text.contains("://") => tags_of_repository(&text),
            Some(from) => Ok(VersionSource::Document(from)),
            None => source_of_variable(read, name).ok_or_else(|| {
                format!(
                    "`{name}` has no source of versions: it is not the version of an image or \
                     package; add `from:`"
                )
            }),
        };
        if let Some(count) = var.update.keep {
            let values: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
            let versions = match versions {
                Ok(VersionSource::Packages(_)) => Err(format!(
                    "a variable for packages cannot have several versions: add `from:` to `{name}`"
                )),
                versions => versions,
            };
            let key = VersionLocation::Var(name.clone(), None);
            found.push(UpdatableVersion {
                name: name.clone(),
                kind: EntryKind::Variable,
                file: read.path.clone(),
                at: key.position(read),
                policy,
                written: var.update.policy.clone(),
                min_age: var.update.min_age.as_ref().or(default).cloned(),
                current: values.join(", "),
                others: Vec::new(),
                kept: Some(KeptVersions {
                    count: count.get(),
                    values,
                    entries: Vec::new(),
                }),
                versions,
                key,
                text: String::new(),
                version: 0..0,
            });
            continue;
        }
        for (index, current) in &texts {
            let key = VersionLocation::Var(name.clone(), *index);
            let others = texts
                .iter()
                .filter(|(at, _)| at != index)
                .map(|(_, text)| text.clone());
            found.push(UpdatableVersion {
                name: name.clone(),
                kind: EntryKind::Variable,
                file: read.path.clone(),
                at: key.position(read),
                policy: policy.clone(),
                written: var.update.policy.clone(),
                min_age: var.update.min_age.as_ref().or(default).cloned(),
                current: current.clone(),
                others: others.collect(),
                kept: None,
                versions: versions.clone(),
                key,
                text: current.clone(),
                version: 0..current.len(),
            });
        }
    }
    found.sort_by_key(|slot| slot.key.node(&read.text.root).span().start);
    found
}

/// The tags of the repository `text`, the `from:` of a variable.
fn tags_of_repository(text: &str) -> Result<VersionSource, String> {
    text.parse()
        .map(VersionSource::tags)
        .map_err(|error| format!("`from: {text}` is neither a URL nor a repository: {error}"))
}

/// Where the versions of the variable `name` are listed: in the repository of the first image whose
/// tag contains this variable and no other variable. If there is no such image, in the package
/// repositories of the first package whose version contains the variable.
fn source_of_variable(manifest: &ParsedManifest, name: &str) -> Option<VersionSource> {
    let variable = format!("${{{name}}}");
    image_with_variable(manifest, &variable).or_else(|| package_with_variable(manifest, &variable))
}

fn image_with_variable(manifest: &ParsedManifest, variable: &str) -> Option<VersionSource> {
    let mut sources = by_position(&manifest.requests.images, image_versions);
    let section = manifest.text.root.get(LockedImage::SECTION);
    for (index, entry) in manifest.document.images.iter().enumerate() {
        let Some((before, after)) =
            tag_of(entry.reference()).and_then(|tag| tag.split_once(variable))
        else {
            continue;
        };
        if before.contains("${") || after.contains("${") {
            continue;
        }
        let node = section.item(index).get("ref");
        if let Some(VersionSource::Tags { image, .. }) = sources.remove(&position(manifest, node)) {
            return Some(VersionSource::Tags {
                image,
                before: before.into(),
                after: after.into(),
            });
        }
    }
    None
}

fn package_with_variable(manifest: &ParsedManifest, variable: &str) -> Option<VersionSource> {
    let mut sources = by_position(&manifest.requests.packages, package_versions);
    let section = manifest.text.root.get(LockedPackageSet::SECTION);
    for (index, entry) in manifest.document.packages.iter().enumerate() {
        let Some(pin) = entry.pin_with_variable(variable) else {
            continue;
        };
        let node = section.item(index).get(pin.item_key);
        if let Some(VersionSource::Packages(source)) = sources.remove(&position(manifest, node)) {
            return Some(VersionSource::Packages(Box::new(PackageVersions {
                package: pin.package,
                before: pin.before,
                after: pin.after,
                ..*source
            })));
        }
    }
    None
}
