//! Merge keys (`<<`), with which a mapping inherits entries of other mappings.

use serde_yaml::{Mapping, Value};

/// The value of `key` that `mapping` inherits by its merge key, if there is one.
pub(super) fn inherited_value<'m>(mapping: &'m Mapping, key: &Value) -> Option<&'m Value> {
    let of = |base: &'m Mapping| base.get(key).or_else(|| inherited_value(base, key));
    match mapping.get("<<")? {
        Value::Mapping(base) => of(base),
        Value::Sequence(bases) => bases.iter().filter_map(Value::as_mapping).find_map(of),
        _ => None,
    }
}
