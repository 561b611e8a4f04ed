//! Variables of a manifest: checked, and combined into one binding for each item.

use super::diagnostic::Diagnostic;
use super::moving_var::MovingVar;
use super::nearest::nearest;
use super::source_text::SourceSpan;
use crate::{Limits, UpdatePolicy};
use serde_yaml::Value;
use std::collections::BTreeMap;

/// The name that stands for an item's own URL in its `checksum`.
pub const OWN_URL: &str = "url";

/// The variables of one file.
#[derive(Debug, Default)]
pub struct Vars(BTreeMap<String, Vec<String>>);

/// A field of an item that may use variables.
pub struct Field<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its place.
    pub at: SourceSpan,
    /// Whether it may use `${url}`.
    pub takes_url: bool,
}

impl<'a> Field<'a> {
    /// A field in which `${url}` may not stand.
    pub fn new(text: &'a str, at: SourceSpan) -> Field<'a> {
        Field {
            text,
            at,
            takes_url: false,
        }
    }
}

/// One value for each variable that an item uses.
#[derive(Debug, Clone, Default)]
pub struct Binding(BTreeMap<String, String>);

impl Binding {
    /// This binding with `name` bound to `value`.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Binding {
        let mut values = self.0.clone();
        values.insert(name.into(), value.into());
        Binding(values)
    }

    /// `template` with the values filled in.
    pub fn fill(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len());
        for piece in pieces(template) {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Variable(name) => out.push_str(self.0.get(name).map_or("", String::as_str)),
                Piece::Open(rest) => out.push_str(rest),
            }
        }
        out
    }
}

enum Piece<'a> {
    Plain(&'a str),
    Variable(&'a str),
    /// A `${` without its `}`.
    Open(&'a str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        pieces.push(Piece::Plain(before));
        match after.split_once('}') {
            Some((name, behind)) => {
                pieces.push(Piece::Variable(name));
                rest = behind;
            }
            None => {
                pieces.push(Piece::Open(&rest[before.len()..]));
                rest = "";
            }
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

impl Vars {
    /// Checks the variables. `span` returns the place of a key, of its value, or of the nth item of
    /// the value.
    ///
    /// # Errors
    /// Values that no variable may have, each with its place.
    pub fn check(
        vars: &BTreeMap<String, Value>,
        span: impl Fn(&str, At) -> SourceSpan,
    ) -> Result<Vars, Box<Diagnostic>> {
        let mut checked = BTreeMap::new();
        for (name, value) in vars {
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(good) {
                let help = Some("use letters, digits, `_` and `-`".into());
                return Err(
                    span(name, At::Key).fault(format!("`{name}` is no name for a variable"), help)
                );
            }
            if name == OWN_URL {
                let help = Some("give it another name".into());
                let message =
                    "`${url}` stands for a file's own URL in `checksum`; it cannot be set";
                return Err(span(name, At::Key).fault(message, help));
            }
            let moving = match value {
                Value::Mapping(_) => Some(moving(name, value, &span)?),
                _ => None,
            };
            let values = match moving.as_ref().map_or(value, |moving| &moving.value) {
                Value::Sequence(values) => {
                    if values.is_empty() {
                        let help = Some("give it a value, or take out what uses it".into());
                        let message =
                            format!("the variable `{name}` has no value, so nothing would be made");
                        return Err(span(name, At::Value).fault(message, help));
                    }
                    let mut texts: Vec<String> = Vec::new();
                    for (index, value) in values.iter().enumerate() {
                        let at = span(name, At::Item(index));
                        let text = scalar(name, value, &at)?;
                        if texts.contains(&text) {
                            let help = Some("keep one of the two".into());
                            return Err(
                                at.fault(format!("`{text}` stands in `{name}` twice"), help)
                            );
                        }
                        texts.push(text);
                    }
                    texts
                }
                value => vec![scalar(name, value, &span(name, At::Value))?],
            };
            checked.insert(name.clone(), values);
        }
        Ok(Vars(checked))
    }

    /// One binding for each combination of the values of the variables that `fields` use.
    ///
    /// # Errors
    /// A variable without a value, and fields that need different values of one.
    pub fn bindings(&self, fields: &[Field]) -> Result<Vec<Binding>, Box<Diagnostic>> {
        let mut bindings = vec![Binding::default()];
        for field in fields {
            for piece in pieces(field.text) {
                let name = match piece {
                    Piece::Plain(_) => continue,
                    Piece::Open(rest) => {
                        let help = Some("write `${name}`".into());
                        return Err(field
                            .at
                            .narrowed(rest)
                            .fault("a `${` without its `}`", help));
                    }
                    Piece::Variable(OWN_URL) if field.takes_url => continue,
                    Piece::Variable(name) => name,
                };
                let Some((name, values)) = self.0.get_key_value(name) else {
                    return Err(self.unknown(name, &field.at.narrowed(&format!("${{{name}}}"))));
                };
                if bindings[0].0.contains_key(name.as_str()) {
                    continue;
                }
                if bindings.len().saturating_mul(values.len()) > Limits::default().combinations {
                    let help = Some("split it into several entries".into());
                    return Err(field.at.fault("this entry makes too many items", help));
                }
                let with = |binding: &Binding, value| binding.with(name, value);
                bindings = bindings
                    .iter()
                    .flat_map(|binding| values.iter().map(move |value| with(binding, value)))
                    .collect();
            }
        }
        Ok(bindings)
    }

    fn unknown(&self, name: &str, at: &SourceSpan) -> Box<Diagnostic> {
        let help = match nearest(name, self.0.keys().map(String::as_str)) {
            _ if name == OWN_URL => "`${url}` can stand in `checksum` only".into(),
            Some(near) => format!("did you mean `${{{near}}}`?"),
            None => format!("set it in this file, as in `vars: {{{name}: …}}`"),
        };
        at.fault(format!("the variable `{name}` is not known"), Some(help))
    }
}

/// A place in `vars`.
#[derive(Debug, Clone, Copy)]
pub enum At {
    /// The name of a variable.
    Key,
    /// Its value.
    Value,
    /// The nth of its values.
    Item(usize),
    /// Its update policy.
    Policy,
}

/// A variable with an update policy.
fn moving(
    name: &str,
    value: &Value,
    span: impl Fn(&str, At) -> SourceSpan,
) -> Result<MovingVar, Box<Diagnostic>> {
    let help = || {
        Some(format!(
            "write `{name}: value`, `{name}: [one, two]`, or `{name}: {{value: …, update: patch, from: …}}`"
        ))
    };
    if value.get("value").is_none() {
        let message =
            "a variable is a text or a list of texts, or has these as `value` beside a policy";
        return Err(span(name, At::Value).fault(message, help()));
    }
    let moving: MovingVar = serde_yaml::from_value(value.clone()).map_err(|error| {
        span(name, At::Policy).fault(
            format!("the variable `{name}` cannot be read: {error}"),
            help(),
        )
    })?;
    if moving
        .from
        .iter()
        .any(|from| format!("{from:?}").contains("${"))
    {
        let help = Some("write the source out".into());
        return Err(span(name, At::Policy)
            .fault("the source of versions cannot have variables in it", help));
    }
    match moving.update.parse() {
        Ok(UpdatePolicy::Digest) => {
            let help = Some("give this policy to the image".into());
            Err(span(name, At::Policy).fault("a variable has no digest", help))
        }
        Ok(_) => Ok(moving),
        Err(error) => {
            Err(span(name, At::Policy).fault(error.to_string(), Some(error.help().into())))
        }
    }
}

fn scalar(name: &str, value: &Value, at: &SourceSpan) -> Result<String, Box<Diagnostic>> {
    match value {
        Value::String(text) if text.contains("${") => {
            let help = Some("write the value out".into());
            Err(at.fault("a variable cannot be made of other variables", help))
        }
        Value::String(text) if text.is_empty() => Err(at.fault(
            format!("the variable `{name}` is empty"),
            Some("give it a value".into()),
        )),
        Value::String(text) => Ok(text.clone()),
        Value::Null => Err(at.fault(
            format!("the variable `{name}` has no value"),
            Some("give it a value".into()),
        )),
        Value::Number(_) | Value::Bool(_) => {
            let written = at.written();
            let what = if matches!(value, Value::Number(_)) {
                "a number"
            } else {
                "a truth value"
            };
            let message = format!("YAML reads `{written}` as {what}, and so may change it");
            Err(at.fault(message, Some(format!("quote it: \"{written}\""))))
        }
        Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => {
            let help = Some(format!("write `{name}: value` or `{name}: [one, two]`"));
            Err(at.fault("a variable is a text or a list of texts", help))
        }
    }
}
