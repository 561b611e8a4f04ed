//! What several manifests ask for, put together: exclusions taken out, equal items made one,
//! contradictions refused.

use super::items::{Exclude, Item, Items};
use super::source_text::SourceSpan;
use super::{Endpoint, Wanted, WantedFile, WantedImage};
use crate::document::{Diagnostic, nearest};
use crate::lockfile::Accepted;
use crate::model::Platform;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;

type Merged<T> = Result<T, Box<Diagnostic>>;

/// Puts together what `all` ask for.
pub(super) fn merge(all: Vec<Items>) -> Merged<Wanted> {
    let mut sum = Items::default();
    for items in all {
        sum.images.extend(items.images);
        sum.files.extend(items.files);
        sum.missing.extend(items.missing);
        sum.endpoints.extend(items.endpoints);
        sum.exclude.extend(items.exclude);
    }
    sum.exclude.iter().try_for_each(|exclude| must_match(exclude, &sum))?;
    sum.images.retain(|item| !sum.exclude.iter().any(|exclude| exclude.value.matches_image(&item.value)));
    sum.files.retain(|item| !sum.exclude.iter().any(|exclude| exclude.value.matches_file(&item.value)));

    let images = unite(sum.images, |image| image.name.clone(), join_images)?;
    let files = unite(sum.files, |file| file.url.clone(), join_files)?;
    one_file_a_url(&files)?;
    let missing = unite(sum.missing, |lost| (lost.kind, lost.name.clone()), join_missing)?;
    let endpoints = unite(sum.endpoints, |end| (end.host.clone(), end.port), join_endpoints)?;
    Ok(Wanted {
        images: images.into_iter().map(|item| item.value).collect(),
        files: files.into_iter().map(|item| item.value).collect(),
        missing: missing.into_iter().map(|item| item.value).collect(),
        endpoints: endpoints.into_iter().map(|item| item.value).collect(),
    })
}

impl Exclude {
    fn matches_image(&self, image: &WantedImage) -> bool {
        let Exclude::Image(exclude) = self else { return false };
        let digest = image.name.digest.as_ref().or(image.pin.as_ref());
        exclude.registry == image.name.registry
            && exclude.repository == image.name.repository
            && (exclude.tag.is_none() || exclude.tag == image.name.tag)
            && (exclude.digest.is_none() || exclude.digest.as_ref() == digest)
    }

    fn matches_file(&self, file: &WantedFile) -> bool {
        matches!(self, Exclude::Url(url) if *url == file.url)
    }
}

/// An exclusion that leaves nothing out is a mistake, or was overtaken by its list.
fn must_match(exclude: &Item<Exclude>, sum: &Items) -> Merged<()> {
    if sum.images.iter().any(|item| exclude.value.matches_image(&item.value))
        || sum.files.iter().any(|item| exclude.value.matches_file(&item.value))
    {
        return Ok(());
    }
    let (what, known): (String, Vec<String>) = match &exclude.value {
        Exclude::Image(wanted) if wanted.is_pinned() => {
            (wanted.to_string(), sum.images.iter().map(|item| item.value.name.to_string()).collect())
        }
        Exclude::Image(wanted) => {
            (wanted.name(), sum.images.iter().map(|item| item.value.name.name()).collect())
        }
        Exclude::Url(url) => (url.clone(), sum.files.iter().map(|item| item.value.url.clone()).collect()),
    };
    let below = format!("{what}/");
    let help = if known.iter().any(|name| name.starts_with(&below)) {
        "name each repository: a prefix is not enough".into()
    } else {
        match nearest(&what, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}? Else take it out"),
            None => "take it out".into(),
        }
    };
    Err(exclude.span.fault(format!("nothing here is named {what}, so this leaves nothing out"), Some(help)))
}

/// Makes items of one key one, by `join`, which keeps the first and takes from the second what the
/// first lacks. The result is sorted by key.
fn unite<T, K: Ord>(
    items: Vec<Item<T>>,
    key: impl Fn(&T) -> K,
    join: impl Fn(&mut Item<T>, &Item<T>) -> Merged<()>,
) -> Merged<Vec<Item<T>>>
where
    T: Named,
{
    // with each item stands where its key was met last: the items of one file come in a row
    let mut united: BTreeMap<K, (Item<T>, SourceSpan)> = BTreeMap::new();
    for item in items {
        match united.entry(key(&item.value)) {
            Entry::Vacant(entry) => {
                let last = item.span.clone();
                entry.insert((item, last));
            }
            Entry::Occupied(mut entry) => {
                let (first, last) = entry.get_mut();
                if last.same_file(&item.span) && !item.listed {
                    return Err(twice(last, &item));
                }
                join(first, &item)?;
                *last = item.span;
            }
        }
    }
    Ok(united.into_values().map(|(item, _)| item).collect())
}

fn twice<T: Named>(first: &SourceSpan, second: &Item<T>) -> Box<Diagnostic> {
    let name = second.value.shown();
    let place = first.location();
    if place == second.span.location() {
        let help = "a list variable of another field must stand here too".into();
        return second.span.fault(format!("this entry gives {name} more than once"), Some(help));
    }
    let message = format!("{name} stands in this file twice; first at {place}");
    second.span.fault(message, Some("take one of the two out".into()))
}

/// How a message names an item.
trait Named {
    fn shown(&self) -> String;
}

impl Named for WantedImage {
    fn shown(&self) -> String {
        self.name.to_string()
    }
}

impl Named for WantedFile {
    fn shown(&self) -> String {
        self.url.clone()
    }
}

impl Named for Accepted {
    fn shown(&self) -> String {
        self.name.clone()
    }
}

impl Named for Endpoint {
    fn shown(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Two different values of `what` for one item.
fn contradiction<T: Named>(
    first: &Item<T>,
    second: &Item<T>,
    what: &str,
    values: (impl Display, impl Display),
) -> Box<Diagnostic> {
    let (name, place) = (second.value.shown(), first.span.location());
    let message = format!("the {what} of {name} is {} here, but {} at {place}", values.1, values.0);
    second.span.fault(message, Some("make both the same, or take one of the two out".into()))
}

/// Takes from `second` what `first` lacks; `None` where both have it and differ.
fn agree<V: Clone + PartialEq>(first: &mut Option<V>, second: &Option<V>) -> bool {
    match (&first, second) {
        (Some(a), Some(b)) => a == b,
        (None, Some(b)) => {
            *first = Some(b.clone());
            true
        }
        (_, None) => true,
    }
}

fn shown<V: Display>(value: &Option<V>) -> String {
    value.as_ref().map(V::to_string).unwrap_or_default()
}

fn join_images(first: &mut Item<WantedImage>, second: &Item<WantedImage>) -> Merged<()> {
    let (mut pin, mut update) = (first.value.pin.clone(), first.value.update.clone());
    if !agree(&mut pin, &second.value.pin) {
        let values = (shown(&pin), shown(&second.value.pin));
        return Err(contradiction(first, second, "digest", values));
    }
    if first.value.platforms != second.value.platforms {
        let list = |platforms: &[Platform]| match platforms {
            [] => "all".to_owned(),
            some => some.iter().map(Platform::to_string).collect::<Vec<_>>().join(", "),
        };
        let values = (list(&first.value.platforms), list(&second.value.platforms));
        return Err(contradiction(first, second, "list of platforms", values));
    }
    if first.value.referrers != second.value.referrers {
        let values = (first.value.referrers.to_string(), second.value.referrers.to_string());
        return Err(contradiction(first, second, "`referrers`", values));
    }
    if !agree(&mut update, &second.value.update) {
        let values = (shown(&update), shown(&second.value.update));
        return Err(contradiction(first, second, "update policy", values));
    }
    first.value.pin = pin;
    first.value.update = update;
    Ok(())
}

fn join_files(first: &mut Item<WantedFile>, second: &Item<WantedFile>) -> Merged<()> {
    let (mut checksum, mut mode) = (first.value.checksum.clone(), first.value.mode.clone());
    if !agree(&mut checksum, &second.value.checksum) {
        let values = (shown(&checksum), shown(&second.value.checksum));
        return Err(contradiction(first, second, "checksum", values));
    }
    if !agree(&mut mode, &second.value.mode) {
        let values = (shown(&mode), shown(&second.value.mode));
        return Err(contradiction(first, second, "mode", values));
    }
    first.value.checksum = checksum;
    first.value.mode = mode;
    first.value.also.extend(second.value.also.iter().cloned());
    first.value.also.sort();
    first.value.also.dedup();
    Ok(())
}

fn join_missing(first: &mut Item<Accepted>, second: &Item<Accepted>) -> Merged<()> {
    if first.value.until != second.value.until {
        let values = (first.value.until.clone(), second.value.until.clone());
        return Err(contradiction(first, second, "last day", values));
    }
    if first.value.reason != second.value.reason {
        let values = (first.value.reason.clone(), second.value.reason.clone());
        return Err(contradiction(first, second, "reason", values));
    }
    Ok(())
}

fn join_endpoints(first: &mut Item<Endpoint>, second: &Item<Endpoint>) -> Merged<()> {
    let mut reasons: Vec<&str> = first.value.why.split("; ").chain([second.value.why.as_str()]).collect();
    reasons.sort_unstable();
    reasons.dedup();
    first.value.why = reasons.join("; ");
    Ok(())
}

/// No URL may stand for two files.
fn one_file_a_url(files: &[Item<WantedFile>]) -> Merged<()> {
    let mut owners: BTreeMap<&str, &Item<WantedFile>> = BTreeMap::new();
    for item in files {
        for url in std::iter::once(&item.value.url).chain(&item.value.also) {
            if let Some(first) = owners.insert(url, item) {
                let (name, place) = (first.value.shown(), first.span.location());
                let message = format!("{url} stands for this file and for {name} at {place}");
                let help = Some("take it out of `also` of one of the two".into());
                return Err(item.span.fault(message, help));
            }
        }
    }
    Ok(())
}
