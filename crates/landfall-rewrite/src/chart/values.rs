//! Reads values of charts, and merges them as Helm does.

use super::read::read;
use super::yaml_words::with_quoted_words;
use landfall_model::document::Diagnostic;
use landfall_model::document::yaml::YamlBudget;
use serde_yaml::{Mapping, Number, Value};

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

/// Returns `values` as YAML that Helm reads back as they are: texts such as `off` are quoted.
///
/// # Errors
/// If the values cannot be written as YAML.
pub fn values_text(values: &Mapping) -> Result<String, serde_yaml::Error> {
    Ok(with_quoted_words(&serde_yaml::to_string(values)?).into_owned())
}

/// The text of a string or number; `None` for an empty string and for any other value.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number_text(number)),
        _ => None,
    }
}

/// Replaces floating-point numbers without a fraction by integers. Helm converts YAML to JSON, so
/// templates print `1.0` as `1`.
pub(super) fn convert_whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.is_f64()
                && let Ok(whole) = number_text(number).parse::<i64>()
            {
                *number = whole.into();
            }
        }
        Value::Sequence(items) => items.iter_mut().for_each(convert_whole_floats),
        Value::Mapping(values) => values.values_mut().for_each(convert_whole_floats),
        _ => {}
    }
}

/// The text that Helm makes of a number: `1` for `1.0`.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        // unlike `Number`, `f64` is displayed without a fraction that is zero
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `helm template` of Helm 3.18.
    #[test]
    fn numbers_have_the_text_that_templates_print() {
        let values = "a: 1.0\nb: 1.10\nc: [{d: 10.0}, 2, '1.0']\n";
        let mut values = Value::from(values_of("values", values).unwrap());
        convert_whole_floats(&mut values);
        assert_eq!(
            serde_yaml::to_string(&values).unwrap(),
            "a: 1\nb: 1.1\nc:\n- d: 10\n- 2\n- '1.0'\n"
        );
        for (number, text) in [(1.0, "1"), (1.1, "1.1"), (-0.5, "-0.5")] {
            assert_eq!(plain(&Value::from(number)).as_deref(), Some(text));
        }
        assert_eq!(plain(&Value::from(7)).as_deref(), Some("7"));
    }
}
