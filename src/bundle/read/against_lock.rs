//! Comparing a bundle with its lock: it must have all that the lock asks for and nothing else, and the lock must say
//! what the manifests say.

use super::bundle::Bundle;
use crate::bundle::error::Error;
use crate::bundle::format::damage::Damage;
use crate::bundle::format::names::{CONTENTS, ItemName, LOCK};
use crate::bundle::plan::base::kept;
use crate::bundle::plan::pack_plan::PackPlan;
use crate::content::Entry;
use crate::item::LockedItem;
use crate::lockfile::Lock;
use crate::model::{Descriptor, Digest};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What of the bundle is not as its lock asks for: entries that are missing, too many, or other ones.
pub(super) fn against_lock(bundle: &Bundle) -> Result<Vec<Damage>, Error> {
    let lock = bundle.lock()?;
    let without: BTreeSet<ItemName> = bundle.partial().iter().cloned().collect();
    let plan = PackPlan::without(&lock, &without);
    let at_index = |why: String| Damage::new(CONTENTS, bundle.0.index.locator.offset, why);
    let mut damage: Vec<Damage> = bad_omissions(bundle, &lock, &plan).into_iter().map(at_index).collect();
    let expected: BTreeMap<_, _> = plan.entries.iter().map(|entry| (&entry.name, entry)).collect();
    let mut found: BTreeSet<String> = bundle.omitted().iter().map(|blob| blob.digest.layout_path()).collect();
    for entry in &bundle.contents().entries {
        found.insert(entry.name.clone());
        let mut is_wrong = |why: &str| damage.push(Damage::new(&entry.name, entry.offset, why));
        match expected.get(&entry.name) {
            None => is_wrong("the lock does not ask for it"),
            Some(planned) => {
                let wanted = &planned.descriptor;
                if (&wanted.digest, wanted.size) != (&entry.digest, entry.size) {
                    is_wrong("it is not what the lock asks for");
                } else if (&wanted.media_type, planned.form) != (&entry.media_type, entry.form) {
                    is_wrong("its media type or form is not what follows from the lock");
                }
            }
        }
    }
    let absent = expected.iter().filter(|(name, _)| !found.contains(name.as_str()));
    damage.extend(absent.map(|(name, planned)| {
        let why = format!("{name} is not there, which {} needs", planned.item);
        Damage::new(CONTENTS, bundle.0.index.locator.offset, why)
    }));
    drop(plan);
    if damage.is_empty() {
        damage = lock_against_manifests(bundle, &lock, &without);
    }
    let named = |kind, name: String| ItemName { kind, name };
    let unresolved: BTreeSet<ItemName> =
        lock.unresolved.iter().map(|item| named(item.kind, item.name.clone())).collect();
    let known: BTreeSet<ItemName> = lock
        .each_entry()
        .map(|entry| named(entry.kind, entry.name))
        .chain(lock.missing.iter().map(|item| named(item.kind, item.name.clone())))
        .chain(unresolved.iter().cloned())
        .collect();
    let mut partial = |items: &mut dyn Iterator<Item = &ItemName>, why: &str| {
        damage.extend(items.map(|item| {
            let why = format!("{} {} {why}", item.kind, item.name);
            Damage::new(CONTENTS, bundle.0.index.locator.offset, why)
        }));
    };
    partial(&mut without.difference(&known), "is named as left out, and is not in the lock");
    partial(&mut unresolved.difference(&without), "is not resolved in the lock, and not named as left out");
    Ok(damage)
}

/// Where the lock says something else of an item than its content says.
fn lock_against_manifests(bundle: &Bundle, lock: &Lock, without: &BTreeSet<ItemName>) -> Vec<Damage> {
    let contents = bundle.contents();
    let at = contents.entries[contents.front_len() - contents.locks.len()].offset;
    let name = |item: &dyn LockedItem| ItemName { kind: item.kind(), name: item.name().into_owned() };
    let held = lock.items().filter(|item| !without.contains(&name(*item)));
    let damage = held.flat_map(|item| {
        let contradictions = item.contradictions(bundle).into_iter();
        contradictions.map(move |why| Damage::new(LOCK, at, format!("{}: {why}", item.name())))
    });
    damage.collect()
}

/// What is wrong with what `bundle` leaves out of `plan`, the plan of the whole of `lock`.
fn bad_omissions(bundle: &Bundle, lock: &Lock, plan: &PackPlan) -> Vec<String> {
    if bundle.omitted().is_empty() {
        return Vec::new();
    }
    let asked: HashMap<&Digest, &Descriptor> =
        plan.entries.iter().map(|entry| (&entry.descriptor.digest, &entry.descriptor)).collect();
    let (mut all_kept, mut damage) = (HashSet::new(), Vec::new());
    let is_held =
        |entry: &Entry| plan.items.iter().any(|item| (item.kind, &item.name) == (entry.kind, &entry.name));
    for entry in lock.each_entry().filter(is_held) {
        match kept(&entry, bundle) {
            Ok(kept) => all_kept.extend(kept),
            Err(error) => damage.push(error.to_string()),
        }
    }
    for blob in bundle.omitted() {
        if asked.get(&blob.digest) != Some(&blob) {
            damage.push(format!("it leaves out {}, and the lock does not ask for this", blob.digest));
        } else if all_kept.contains(&blob.digest) {
            damage.push(format!("it leaves out {}, and only layers and files may be left out", blob.digest));
        }
    }
    damage
}
