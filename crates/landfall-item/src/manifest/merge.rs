//! Merges the items of several manifests: applies exclusions, joins equal items, refuses
//! contradictions.

use super::faults::Faults;
use super::items::{Items, Located};
use super::wanted::Wanted;
use crate::lockfile::{Accepted, Endpoint};
use crate::{Contradiction, Exclude, ItemKind, kinds};
use landfall_model::document::{Diagnostic, SourceSpan, nearest};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;

type Merged<T> = Result<T, Box<Diagnostic>>;

macro_rules! merge {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// Puts together what `all` ask for. What contradicts goes to `faults`.
        pub(super) fn merge(all: Vec<Items>, faults: &mut Faults) -> Wanted {
            let mut sum = Items::default();
            all.into_iter().for_each(|items| sum.append(items));
            let mut may_ask = false;
            $(
                {
                    may_ask |= sum.$section.iter().any(|item| <$kind as ItemKind>::may_ask(&item.value));
                }
            )*
            for exclude in &sum.exclude {
                // a chart may turn out to name it
                let mut is_there = may_ask && matches!(exclude.value, Exclude::Reference(_));
                let mut known = Vec::new();
                $(
                    for item in &sum.$section {
                        is_there |= <$kind as ItemKind>::is_excluded(&item.value, &exclude.value);
                        known.extend(<$kind as ItemKind>::alike(&item.value, &exclude.value));
                    }
                )*
                if !is_there {
                    faults.push(*excludes_nothing(exclude, &known));
                }
            }
            let excluded = |by: &dyn Fn(&Exclude) -> bool| sum.exclude.iter().any(|one| by(&one.value));
            let mut urls: BTreeMap<String, (String, SourceSpan)> = BTreeMap::new();
            $(
                let $section = {
                    let mut items = sum.$section;
                    items.retain(|item| !excluded(&|by| <$kind as ItemKind>::is_excluded(&item.value, by)));
                    unite(items, |wish| <$kind as ItemKind>::wished(wish).clone(), join_wishes::<$kind>, faults)
                };
            )*
            $(
                for item in &$section {
                    faults.take(one_item_a_url(&mut urls, item, <$kind as ItemKind>::urls(&item.value)));
                }
            )*
            let missing = unite(sum.missing, |lost| (lost.kind, lost.name.clone()), join_missing, faults);
            let endpoints = unite(sum.endpoints, |end| (end.host.clone(), end.port), join_endpoints, faults);
            Wanted {
                name: sum.names.pop_first().filter(|_| sum.names.is_empty()),
                $(
                    $section: $section.into_iter().map(|item| item.value).collect(),
                )*
                exclude: sum.exclude.iter().map(|one| one.value.clone()).collect(),
                missing: missing.into_iter().map(|item| item.value).collect(),
                endpoints: endpoints.into_iter().map(|item| item.value).collect(),
            }
        }

        $(
            impl Named for <$kind as ItemKind>::Wish {
                fn shown(&self) -> String {
                    <$kind as ItemKind>::wished(self).to_string()
                }
            }
        )*
    };
}
kinds!(merge);

/// An exclusion that leaves nothing out is a mistake, or was overtaken by its list.
fn excludes_nothing(exclude: &Located<Exclude>, known: &[String]) -> Box<Diagnostic> {
    let what = exclude.value.to_string();
    let below = format!("{what}/");
    let help = if known.iter().any(|name| name.starts_with(&below)) {
        "name each repository: a prefix is not enough".into()
    } else {
        match nearest(&what, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}? Else take it out"),
            None => "take it out".into(),
        }
    };
    exclude.span.fault(
        format!("nothing here is named {what}, so this leaves nothing out"),
        Some(help),
    )
}

/// Makes items of one key one, by `join`, which keeps the first and takes from the second what the
/// first lacks. The result is sorted by key.
fn unite<T, K: Ord>(
    items: Vec<Located<T>>,
    key: impl Fn(&T) -> K,
    join: impl Fn(&mut Located<T>, &Located<T>) -> Merged<()>,
    faults: &mut Faults,
) -> Vec<Located<T>>
where
    T: Named,
{
    // each item has the place where its key was last found: the items of one file come in a row
    let mut united: BTreeMap<K, (Located<T>, SourceSpan)> = BTreeMap::new();
    for item in items {
        match united.entry(key(&item.value)) {
            Entry::Vacant(entry) => {
                let last = item.span.clone();
                entry.insert((item, last));
            }
            Entry::Occupied(mut entry) => {
                let (first, last) = entry.get_mut();
                if last.same_file(&item.span) && !item.listed {
                    faults.push(*twice(last, &item));
                    continue;
                }
                faults.take(join(first, &item));
                *last = item.span;
            }
        }
    }
    united.into_values().map(|(item, _)| item).collect()
}

fn twice<T: Named>(first: &SourceSpan, second: &Located<T>) -> Box<Diagnostic> {
    let name = second.value.shown();
    let place = first.location();
    if place == second.span.location() {
        let help = "a list variable of another field must stand here too".into();
        return second.span.fault(
            format!("this entry gives {name} more than once"),
            Some(help),
        );
    }
    let message = format!("{name} stands in this file twice; first at {place}");
    second
        .span
        .fault(message, Some("take one of the two out".into()))
}

/// How a message names an item.
trait Named {
    fn shown(&self) -> String;
}

impl Named for Accepted {
    fn shown(&self) -> String {
        self.name.clone()
    }
}

impl Named for Endpoint {
    fn shown(&self) -> String {
        self.to_string()
    }
}

/// Two different values of `what` for one item.
fn contradiction<T: Named>(
    first: &Located<T>,
    second: &Located<T>,
    what: &str,
    values: (impl Display, impl Display),
) -> Box<Diagnostic> {
    let (name, place) = (second.value.shown(), first.span.location());
    let message = format!(
        "the {what} of {name} is {} here, but {} at {place}",
        values.1, values.0
    );
    second.span.fault(
        message,
        Some("make both the same, or take one of the two out".into()),
    )
}

/// Takes from `second` what `first` lacks.
fn join_wishes<K: ItemKind>(first: &mut Located<K::Wish>, second: &Located<K::Wish>) -> Merged<()>
where
    K::Wish: Named,
{
    K::join(&mut first.value, &second.value).map_err(|error| {
        let Contradiction {
            field,
            first: one,
            second: other,
        } = error;
        contradiction(first, second, field, (one, other))
    })
}

fn join_missing(first: &mut Located<Accepted>, second: &Located<Accepted>) -> Merged<()> {
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

fn join_endpoints(first: &mut Located<Endpoint>, second: &Located<Endpoint>) -> Merged<()> {
    first.value.join(&second.value);
    Ok(())
}

/// No URL may stand for two items.
fn one_item_a_url<T: Named>(
    owners: &mut BTreeMap<String, (String, SourceSpan)>,
    item: &Located<T>,
    urls: Vec<&str>,
) -> Merged<()> {
    for url in urls {
        if let Some((name, span)) =
            owners.insert(url.to_owned(), (item.value.shown(), item.span.clone()))
        {
            let message = format!(
                "{url} stands for this file and for {name} at {}",
                span.location()
            );
            let help = Some("take it out of `also` of one of the two".into());
            return Err(item.span.fault(message, help));
        }
    }
    Ok(())
}
