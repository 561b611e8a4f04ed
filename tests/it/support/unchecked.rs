//! Bundles that are packed without any check of their content, as an attacker would pack them.

use super::Place;
use super::library::{Lock, PackOptions, PackPlan, Packaging, SilentProgress, Store, pack, today};

/// Packs the items of `landfall.lock` from the default store into `out`, even if `landfall pack`
/// would fail.
pub fn pack_unchecked(place: &Place, out: &str) {
    let lock = Lock::load(&place.path("landfall.lock")).unwrap();
    let store = Store::open(&place.path("home/.cache/landfall/store")).unwrap();
    let plan = PackPlan::of_complete_lock(&lock, today());
    let out = place.path(out);
    let packaging = Packaging::default();
    let options = PackOptions { level: 1 };
    pack(&plan, &store, &out, options, &packaging, &SilentProgress).unwrap();
}
