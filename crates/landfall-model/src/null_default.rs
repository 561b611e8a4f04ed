//! Deserializes `null` as the default value, for documents that other tools write.

use serde::{Deserialize, Deserializer};

/// Deserializes a member that may be `null`, for `#[serde(default, deserialize_with = "…")]`.
///
/// # Errors
/// If the value is of another type.
pub fn null_as_default<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(source)?.unwrap_or_default())
}
