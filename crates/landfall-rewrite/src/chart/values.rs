//! Values of charts: read, and laid over each other as Helm does.

use super::read::read;
use landfall_model::document::Diagnostic;
use landfall_model::document::yaml::YamlBudget;
use serde_yaml::{Mapping, Value};

/// Lays `over` over `under`, as Helm does: mappings are merged, a null takes the default away.
pub fn coalesce(over: &mut Mapping, under: &Mapping) {
    for (key, default) in under {
        match (over.get_mut(key), default) {
            (None, _) => drop(over.insert(key.clone(), default.clone())),
            (Some(Value::Mapping(over)), Value::Mapping(under)) => coalesce(over, under),
            _ => {}
        }
    }
}

/// The values in `text`, with merge keys applied.
///
/// # Errors
/// When it is no YAML, or no mapping.
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
        help: Some("values are one YAML mapping".into()),
    };
    let mut values: Value = read(file, text, budget)?;
    values
        .apply_merge()
        .map_err(|error| fault(error.to_string()))?;
    match values {
        Value::Mapping(values) => Ok(values),
        Value::Null => Ok(Mapping::new()),
        _ => Err(Box::new(fault("these are no values of a chart".into()))),
    }
}

/// The text of a scalar; `None` for null and what is no scalar.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
