//! Reads values of charts, and merges them as Helm does.

use super::read::read;
use landfall_model::document::Diagnostic;
use landfall_model::document::yaml::YamlBudget;
use serde_yaml::{Mapping, Value};

/// Merges the defaults `under` into `over` as Helm does: mappings are merged, and a null in `over`
/// overrides the default.
pub fn coalesce(over: &mut Mapping, under: &Mapping) {
    for (key, default) in under {
        match (over.get_mut(key), default) {
            (None, _) => drop(over.insert(key.clone(), default.clone())),
            (Some(Value::Mapping(over)), Value::Mapping(under)) => coalesce(over, under),
            _ => {}
        }
    }
}

/// Reads the values in `text`, and applies merge keys (`<<`).
///
/// # Errors
/// If `text` is not YAML, or not a mapping.
pub fn values_of(file: &str, text: &str) -> Result<Mapping, Box<Diagnostic>> {
    values_within(file, text, &mut YamlBudget::default())
}

/// Like [`values_of`], for one of several texts that share a budget.
pub(super) fn values_within(
    file: &str,
    text: &str,
    budget: &mut YamlBudget,
) -> Result<Mapping, Box<Diagnostic>> {
    let fault = |message: String| Diagnostic {
        file: file.into(),
        text: text.into(),
        span: 0..0,
        message,
        help: Some("write the values as one YAML mapping".into()),
    };
    // serde_yaml keeps merge keys as entries unless it is asked to apply them
    let mut values: Value = read(file, text, budget)?;
    values
        .apply_merge()
        .map_err(|error| fault(error.to_string()))?;
    match values {
        Value::Mapping(values) => Ok(values),
        Value::Null => Ok(Mapping::new()),
        _ => Err(Box::new(fault(
            "the values of a chart must be a mapping".into(),
        ))),
    }
}

/// The text of a string or number; `None` for an empty string and for any other value.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
