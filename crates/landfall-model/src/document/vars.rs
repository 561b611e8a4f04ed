//! Checks the variables of a manifest, and combines them into one binding for each item.

use super::diagnostic::Diagnostic;
use super::source_text::SourceSpan;
use super::update_rule::UpdateRule;
use crate::std_tools::nearest;
use crate::{Limits, UpdatePolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;

/// The variable in a `checksum` that stands for the own URL of the file.
const OWN_URL: &str = "url";

/// The variables of one file, each with its values.
#[derive(Debug, Default)]
pub struct ManifestVars(BTreeMap<String, Vec<String>>);

/// A text of an item that may use variables.
#[derive(Debug)]
pub struct TemplateField<'a> {
    /// The text of the field. [`ManifestVars::expand`] fills in the variables.
    pub text: &'a mut String,
    /// Where the field is written, for messages.
    pub at: SourceSpan,
    /// Whether the field may use `${url}`, which is left in the text for [`fill_own_url`].
    pub takes_url: bool,
}

impl<'a> TemplateField<'a> {
    /// A field that may not use `${url}`.
    pub fn new(text: &'a mut String, at: SourceSpan) -> TemplateField<'a> {
        TemplateField {
            text,
            at,
            takes_url: false,
        }
    }
}

/// `text` with `url` in place of `${url}`.
pub fn fill_own_url(text: &str, url: &str) -> String {
    text.replace(&format!("${{{OWN_URL}}}"), url)
}

/// One value for each variable that an item uses.
type VarBinding = BTreeMap<String, String>;

/// Fills the values of `binding` into `template`. Variables without a value are left in the text.
fn filled(template: &str, binding: &VarBinding) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in pieces(template) {
        match piece {
            TemplatePiece::Plain(text) | TemplatePiece::Unclosed(text) => out.push_str(text),
            TemplatePiece::Variable(name) => match binding.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("${{{name}}}")),
            },
        }
    }
    out
}

/// A piece of a template.
enum TemplatePiece<'a> {
    Plain(&'a str),
    /// A variable, by the name in `${name}`.
    Variable(&'a str),
    /// The rest of the template, which begins with an unclosed `${`.
    Unclosed(&'a str),
}

fn pieces(template: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        pieces.push(TemplatePiece::Plain(before));
        match after.split_once('}') {
            Some((name, remaining)) => {
                pieces.push(TemplatePiece::Variable(name));
                rest = remaining;
            }
            None => {
                pieces.push(TemplatePiece::Unclosed(&rest[before.len()..]));
                rest = "";
            }
        }
    }
    pieces.push(TemplatePiece::Plain(rest));
    pieces
}

impl ManifestVars {
    /// Checks the variables `vars`. `span` returns the position of a part of a variable.
    ///
    /// # Errors
    /// If a name or value is not allowed.
    pub fn check(
        vars: &BTreeMap<String, Value>,
        span: impl Fn(&str, VarPart) -> SourceSpan,
    ) -> Result<ManifestVars, Box<Diagnostic>> {
        let mut checked = BTreeMap::new();
        for (name, value) in vars {
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(good) {
                let help = Some("use letters, digits, `_` and `-`");
                let message = format!("`{name}` is not a valid name of a variable");
                return Err(span(name, VarPart::Key).fault(message, help));
            }
            if name == OWN_URL {
                let help = Some("give it another name");
                let message = "`${url}` is a file's own URL in `checksum`, and cannot be set";
                return Err(span(name, VarPart::Key).fault(message, help));
            }
            let moving = match value {
                Value::Mapping(_) => Some(moving(name, value, &span)?),
                _ => None,
            };
            let values = match moving.as_ref().map_or(value, |moving| &moving.value) {
                Value::Sequence(values) => {
                    if values.is_empty() {
                        let help = Some("add a value, or remove the items that use it");
                        let message =
                            format!("the variable `{name}` has no values, so it makes no items");
                        return Err(span(name, VarPart::Value).fault(message, help));
                    }
                    let mut texts: Vec<String> = Vec::new();
                    for (index, value) in values.iter().enumerate() {
                        let at = span(name, VarPart::Item(index));
                        let text = scalar(name, value, &at)?;
                        if texts.contains(&text) {
                            let help = Some("keep one of the two");
                            return Err(
                                at.fault(format!("`{name}` has the value `{text}` twice"), help)
                            );
                        }
                        texts.push(text);
                    }
                    texts
                }
                value => vec![scalar(name, value, &span(name, VarPart::Value))?],
            };
            checked.insert(name.clone(), values);
        }
        Ok(ManifestVars(checked))
    }

    /// Returns a copy of `written` for each combination of the values of the variables that it
    /// uses, with these values filled in. `fields` returns the texts that may use variables.
    ///
    /// # Errors
    /// If a variable is not defined, a `${` is not closed, or there are too many combinations.
    pub fn expand<T: Clone>(
        &self,
        written: &T,
        fields: impl Fn(&mut T) -> Vec<TemplateField<'_>>,
    ) -> Result<Vec<T>, Box<Diagnostic>> {
        let bindings = self.bindings(&fields(&mut written.clone()))?;
        let filled = bindings.iter().map(|binding| {
            let mut copy = written.clone();
            for field in fields(&mut copy) {
                *field.text = filled(field.text, binding);
            }
            copy
        });
        Ok(filled.collect())
    }

    /// Returns one binding for each combination of the values of the variables that `fields` use.
    fn bindings(&self, fields: &[TemplateField<'_>]) -> Result<Vec<VarBinding>, Box<Diagnostic>> {
        let mut bindings = vec![VarBinding::default()];
        for field in fields {
            for piece in pieces(field.text) {
                let name = match piece {
                    TemplatePiece::Plain(_) => continue,
                    TemplatePiece::Unclosed(rest) => {
                        let help = Some("write `${name}`");
                        return Err(field
                            .at
                            .narrowed(rest)
                            .fault("a `${` without a closing `}`", help));
                    }
                    TemplatePiece::Variable(OWN_URL) if field.takes_url => continue,
                    TemplatePiece::Variable(name) => name,
                };
                let Some((name, values)) = self.0.get_key_value(name) else {
                    return Err(self.unknown(name, &field.at.narrowed(&format!("${{{name}}}"))));
                };
                if bindings[0].contains_key(name) {
                    continue;
                }
                // three variables of a thousand values each would make a billion items
                if bindings.len().saturating_mul(values.len()) > Limits::default().combinations {
                    let help = Some("split it into several entries");
                    return Err(field.at.fault("this entry makes too many items", help));
                }
                let combined = bindings.iter().flat_map(|binding| {
                    values.iter().map(move |value| {
                        let mut binding = binding.clone();
                        binding.insert(name.clone(), value.clone());
                        binding
                    })
                });
                bindings = combined.collect();
            }
        }
        Ok(bindings)
    }

    fn unknown(&self, name: &str, at: &SourceSpan) -> Box<Diagnostic> {
        let help = match nearest(name, self.0.keys().map(String::as_str)) {
            _ if name == OWN_URL => "`${url}` is only available in `checksum`".into(),
            Some(near) => format!("did you mean `${{{near}}}`?"),
            None => format!("set it in this file, as in `vars: {{{name}: …}}`"),
        };
        at.fault(format!("the variable `{name}` is not defined"), Some(&help))
    }
}

/// A part of a variable in `vars`.
#[derive(Debug, Clone, Copy)]
pub enum VarPart {
    /// The name of the variable.
    Key,
    /// The value of the variable.
    Value,
    /// One of several values, by its index.
    Item(usize),
    /// The update policy of the variable.
    Policy,
}

/// Reads a variable with an update policy.
fn moving(
    name: &str,
    value: &Value,
    span: impl Fn(&str, VarPart) -> SourceSpan,
) -> Result<MovingVar, Box<Diagnostic>> {
    let help = Some(format!(
        "write `{name}: value`, `{name}: [one, two]`, or \
         `{name}: {{value: …, update: patch, from: …}}`"
    ));
    if value.get("value").is_none() {
        let message =
            "a variable is a text, a list of texts, or a mapping with `value` and a policy";
        return Err(span(name, VarPart::Value).fault(message, help.as_deref()));
    }
    let moving: MovingVar = serde_yaml::from_value(value.clone()).map_err(|error| {
        span(name, VarPart::Policy).fault(
            format!("the variable `{name}` is not valid: {error}"),
            help.as_deref(),
        )
    })?;
    if moving
        .from
        .iter()
        .any(|from| format!("{from:?}").contains("${"))
    {
        let help = Some("write the source without variables");
        return Err(
            span(name, VarPart::Policy).fault("the source of versions cannot use variables", help)
        );
    }
    let is_list = matches!(moving.value, Value::Sequence(_));
    if moving.update.keep.is_some() && (!is_list || moving.update.policy == "never") {
        let help = Some(format!(
            "write the value as a list, as in `{name}: {{value: [v1.2.0], update: {{policy: minor, \
             keep: 3}}}}`"
        ));
        let message = "`keep` needs a list of values, and a policy that moves them";
        return Err(span(name, VarPart::Policy).fault(message, help.as_deref()));
    }
    match moving.update.policy.parse() {
        Ok(UpdatePolicy::Digest) => {
            let help = Some("set this policy on the image");
            Err(span(name, VarPart::Policy).fault("a variable has no digest", help))
        }
        Ok(_) => Ok(moving),
        Err(error) => {
            Err(span(name, VarPart::Policy).fault(error.to_string(), error.help.as_deref()))
        }
    }
}

/// The text of one value of a variable.
fn scalar(name: &str, value: &Value, at: &SourceSpan) -> Result<String, Box<Diagnostic>> {
    match value {
        Value::String(text) if text.contains("${") => {
            let help = Some("write the value without variables");
            Err(at.fault("a variable cannot use other variables", help))
        }
        Value::String(text) if text.is_empty() => Err(at.fault(
            format!("the variable `{name}` is empty"),
            Some("add a value"),
        )),
        Value::String(text) => Ok(text.clone()),
        Value::Null => Err(at.fault(
            format!("the variable `{name}` has no value"),
            Some("add a value"),
        )),
        Value::Number(_) | Value::Bool(_) => {
            let written = at.written();
            let what = if matches!(value, Value::Number(_)) {
                "a number"
            } else {
                "a boolean"
            };
            let message =
                format!("YAML reads `{written}` as {what}, which may change how it is written");
            Err(at.fault(message, Some(&format!("quote it: \"{written}\""))))
        }
        Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => {
            let help = Some(format!("write `{name}: value` or `{name}: [one, two]`"));
            Err(at.fault("a variable is a text or a list of texts", help.as_deref()))
        }
    }
}

/// A variable that `landfall update` may move.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovingVar {
    /// One value, or a list of values. Numbers need quotes.
    #[schemars(with = "OneOrMany")]
    pub value: Value,
    /// The versions that the variable may move to: `patch`, `minor`, a range such as `~1.9`, a
    /// pattern, or `never`. To set `minAge` or `keep` as well, write a mapping with one of these as
    /// `policy`.
    pub update: UpdateRule,
    /// Where the versions of the variable are listed. By default, they are the tags of the first
    /// image whose tag contains this variable and no other variable. If there is no such image,
    /// they are read from the package repositories of the first package whose version contains the
    /// variable.
    #[serde(default)]
    pub from: Option<VersionsFrom>,
}

/// A text or a list of texts.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "for the JSON schema")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Where the versions of a variable are listed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VersionsFrom {
    /// The URL of a text with one version per line, or the name of an image repository whose tags
    /// are the versions.
    Text(String),
    /// A JSON document, and the path to its versions, such as `[].tag_name`.
    Json(JsonVersions),
    /// The index of a chart repository.
    Chart(ChartVersions),
}

/// Versions in a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonVersions {
    /// The URL of the document.
    pub url: String,
    /// Keys with dots between them, `[]` for every element of a list, `[0]` for the first element,
    /// `{}` for the keys of an object.
    pub path: String,
}

/// The versions of a chart in the index of its repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChartVersions {
    /// The URL of the repository.
    pub repo: String,
    /// The name of the chart.
    pub chart: String,
}
