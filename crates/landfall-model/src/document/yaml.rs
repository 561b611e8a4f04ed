//! Reads YAML into values. All values are read by these functions, because they enforce the limits.
//!
//! Aliases repeat a value: if a list has a thousand values, a list of a thousand aliases to it has
//! a million values, and the size of the text does not show it. Therefore the values of a text are
//! counted before the text is read: the same parser visits each value and each alias without
//! keeping them, and stops at the limit. `clippy.toml` forbids the parser's own functions
//! elsewhere.

use crate::Limits;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_yaml::Error;
use std::fmt;

/// How much a YAML text, or all YAML texts of one input, may still contain.
#[derive(Debug, Clone, Copy)]
pub struct YamlBudget {
    /// The number of values. An alias counts as all values that it repeats.
    nodes: usize,
    /// The bytes of scalars that aliases repeat, beyond the bytes of the text.
    alias_bytes: usize,
}

impl Default for YamlBudget {
    fn default() -> YamlBudget {
        YamlBudget {
            nodes: Limits::DEFAULT.yaml_nodes,
            alias_bytes: Limits::DEFAULT.yaml_alias_bytes,
        }
    }
}

/// Reads the only document in `text`.
///
/// # Errors
/// If the text is not YAML, does not fit `T`, or exceeds the limits.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    check(text)?;
    from_checked(text)
}

/// Like [`from_str`], for bytes.
///
/// # Errors
/// Like [`from_str`], and if the bytes are not UTF-8.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// Like [`from_str`], for a text that [`check`] accepted.
pub(super) fn from_checked<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    #[expect(clippy::disallowed_methods, reason = "the values were counted")]
    serde_yaml::from_str(text)
}

/// Reads the documents of the stream `text` one after the other. An error is the last item.
pub fn documents<T: DeserializeOwned>(text: &str) -> impl Iterator<Item = Result<T, Error>> {
    let mut error = check(text).err();
    let mut documents = stream(text);
    let mut is_over = false;
    // after an error, the parser would return the same error forever
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let item = match error.take() {
            Some(error) => Err(error),
            None => T::deserialize(documents.next()?),
        };
        is_over = item.is_err();
        Some(item)
    })
}

/// Checks that `text` does not exceed the limits.
///
/// # Errors
/// Fails if `text` exceeds them. Invalid YAML is an error only if its values had to be counted.
pub fn check(text: &str) -> Result<(), Error> {
    let max = Limits::DEFAULT.yaml_nodes;
    // each value needs an indicator, and one indicator begins at most three values: a collection, a
    // key and its value
    if !has_aliases(text) && 3 * indicators(text) < max && !may_be_deep(text) {
        return Ok(());
    }
    YamlBudget::default().charge(text)
}

/// Whether `text` is small enough for a tree, in which aliases are leaves. The limit is not exact:
/// one indicator may begin up to three values.
pub(super) fn is_bounded(text: &str) -> bool {
    indicators(text) <= Limits::DEFAULT.yaml_nodes
        || matches!(excess(text), None | Some(YamlExcess::Invalid { .. }))
}

impl YamlBudget {
    /// Subtracts the values of `text`, one of several texts that share this budget.
    ///
    /// # Errors
    /// If the text is not YAML, or exceeds the rest of the budget.
    pub fn charge(&mut self, text: &str) -> Result<(), Error> {
        let max = Limits::DEFAULT.yaml_nodes;
        if (indicators(text) > max || may_be_deep(text))
            && let Some(excess) = excess(text)
        {
            return Err(Error::custom(excess));
        }
        let mut counter = ValueCounter {
            nodes: self.nodes,
            bytes: text.len() + self.alias_bytes,
        };
        for document in stream(text) {
            counter.deserialize(document)?;
        }
        self.nodes = counter.nodes;
        self.alias_bytes = self.alias_bytes.min(counter.bytes);
        Ok(())
    }
}

fn stream(text: &str) -> serde_yaml::Deserializer<'_> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller counts the values, or has already counted them"
    )]
    serde_yaml::Deserializer::from_str(text)
}

/// Whether `text` may have an alias and the anchor that it needs.
fn has_aliases(text: &str) -> bool {
    text.contains('*') && text.contains('&')
}

/// The number of indicators in `text` that may begin a value. Indicators in comments and scalars
/// count too.
fn indicators(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_indicator = |at: usize| match bytes[at] {
        b',' | b'[' | b'{' | b':' => true,
        b'-' | b'?' => bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace),
        _ => false,
    };
    (0..bytes.len()).filter(|at| is_indicator(*at)).count()
}

/// Whether `text` may have brackets that are nested deeper than the limit, or long runs of `- - -`
/// on one line: the parser takes quadratic time for both. Brackets and dashes in comments and
/// scalars count too.
pub(super) fn may_be_deep(text: &str) -> bool {
    let max_depth = Limits::DEFAULT.yaml_depth;
    let mut depth = 0usize;
    let mut dashes = 0usize;
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'?' | b':' => dashes += 1,
            b' ' => {}
            _ => dashes = 0,
        }
        depth > max_depth || dashes > 8 * max_depth
    })
}

/// Why a text cannot be read within the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlExcess {
    /// It has more values than the limit, even if an alias counts as one.
    Values,
    /// A value that begins at this byte is nested deeper than the limit.
    Depth(usize),
    /// It is not YAML. Its values up to this byte are within the limits.
    Invalid { at: usize, why: String },
}

impl fmt::Display for YamlExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits {
            yaml_nodes,
            yaml_depth,
            ..
        } = Limits::DEFAULT;
        match self {
            YamlExcess::Values => write!(f, "it has more than {yaml_nodes} values"),
            YamlExcess::Depth(_) => write!(f, "this is nested deeper than {yaml_depth} levels"),
            YamlExcess::Invalid { why, .. } => write!(f, "this is not YAML: {why}"),
        }
    }
}

/// The first reason why `text` cannot be read within the limits. Uses the parser of `yaml_tree`,
/// because it takes linear time and keeps no values.
pub(super) fn excess(text: &str) -> Option<YamlExcess> {
    use granit_parser::{ErrorKind, Event, Parser, options};
    let max_depth = Limits::DEFAULT.yaml_depth;
    let mut values = 0usize;
    let mut depth = 0usize;
    let options = options! { emit_comments: false, flow_nesting_limit: max_depth };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
                return Some(match error.kind() {
                    ErrorKind::RecursionLimitExceeded => YamlExcess::Depth(at),
                    _ => YamlExcess::Invalid {
                        at,
                        why: error.info(),
                    },
                });
            }
        };
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                values += 1;
                depth += 1;
            }
            Event::Scalar(..) | Event::Alias(..) => values += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > max_depth {
            return Some(YamlExcess::Depth(
                span.byte_range().unwrap_or_default().start,
            ));
        }
        if values > Limits::DEFAULT.yaml_nodes {
            return Some(YamlExcess::Values);
        }
    }
    None
}

/// Visits values and subtracts them from a budget.
struct ValueCounter {
    nodes: usize,
    bytes: usize,
}

impl ValueCounter {
    fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let Some(nodes) = self.nodes.checked_sub(1) else {
            let max = Limits::DEFAULT.yaml_nodes;
            return Err(E::custom(format_args!(
                "including the values that its aliases repeat, it has more than {max} values"
            )));
        };
        let Some(bytes) = self.bytes.checked_sub(bytes) else {
            let max = Limits::DEFAULT.yaml_alias_bytes;
            return Err(E::custom(format_args!(
                "its aliases repeat more than {max} bytes of text"
            )));
        };
        self.nodes = nodes;
        self.bytes = bytes;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut ValueCounter {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut ValueCounter {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.take(0)
    }
    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.take(0)
    }
    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.take(0)
    }
    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<(), E> {
        self.take(0)
    }
    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<(), E> {
        self.take(0)
    }
    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.take(0)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.take(text.len())
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.take(0)
    }
    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.take(0)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.take(0)?;
        while items.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.take(0)?;
        while entries.next_key_seed(&mut *self)?.is_some() {
            entries.next_value_seed(&mut *self)?;
        }
        Ok(())
    }
    /// A value with a tag.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let ((), value) = tagged.variant_seed(&mut *self)?;
        value.newtype_variant_seed(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::growth::assert_linear;
    use serde_yaml::Value;

    /// A list of `count` values, and a list of as many aliases of it.
    fn squared(count: usize) -> String {
        format!(
            "a: &a [{}]\nb: [{}]\n",
            "x, ".repeat(count),
            "*a, ".repeat(count)
        )
    }

    fn why(text: &str) -> String {
        let read = from_str::<Value>(text)
            .map(drop)
            .map_err(|error| error.to_string());
        let stream = documents::<Value>(text).try_for_each(|document| document.map(drop));
        let stream = stream.map_err(|error| error.to_string());
        assert_eq!(read, stream, "both functions agree");
        read.map_or_else(|error| error, |()| "read".into())
    }

    #[test]
    fn aliases_count_as_the_values_that_they_repeat() {
        let too_many =
            "including the values that its aliases repeat, it has more than 1000000 values";
        assert_eq!(why(&squared(300)), "read");
        assert!(
            why(&squared(7800)).contains(too_many),
            "55 kB that the parser's own limit accepts"
        );
        // each level repeats the previous one ten times; and a list that contains itself
        let mut levels = "l0: &l0 x\n".to_owned();
        (1..9).for_each(|level| {
            levels += &format!(
                "l{level}: &l{level} [{}]\n",
                format!("*l{}, ", level - 1).repeat(10)
            );
        });
        assert!(
            why(&levels).contains("including the values that its aliases repeat")
                || why(&levels).contains("repetition")
        );
        assert_ne!(why("&a [*a, *a]"), "read");
        // a long text that many aliases repeat
        let text = format!(
            "a: &a {}\nb: [{}]\n",
            "x".repeat(100_000),
            "*a, ".repeat(200)
        );
        assert!(
            check(&text)
                .unwrap_err()
                .to_string()
                .contains("repeat more than 16777216 bytes")
        );
        let tagged = format!(
            "a: &a !t [{}]\nb: [{}]\n",
            "x, ".repeat(1001),
            "!u {*a : *a}, ".repeat(600)
        );
        assert!(check(&tagged).unwrap_err().to_string().contains(too_many));
    }

    #[test]
    fn documents_of_a_stream_share_a_budget_and_an_error_is_the_last_item() {
        let stream = format!("{}---\n", squared(500)).repeat(4) + &squared(500);
        let found: Vec<Result<Value, Error>> = documents(&stream).collect();
        assert!(found.len() == 1 && found[0].is_err(), "{}", found.len());
        let broken: Vec<Result<Value, Error>> = documents("a: 1\n---\nb: [\n").collect();
        assert!(broken.len() == 2 && broken[0].is_ok() && broken[1].is_err());
        let mut budget = YamlBudget::default();
        let mut read = || budget.charge(&squared(400)).is_ok();
        assert!(
            (0..6).all(|_| read()) && !read(),
            "texts that share a budget"
        );
        assert!(documents::<Value>("").all(|document| document.is_ok()));
    }

    #[test]
    fn too_many_values_are_refused_without_aliases() {
        let list = format!("[{}]", "a,".repeat(1_000_001));
        assert!(why(&list).contains("more than 1000000 values"));
        assert!(!is_bounded(&list));
    }

    #[test]
    fn too_many_values_of_blocks_are_refused_without_aliases() {
        let blocks = "- a: b\n".repeat(334_000);
        let refused = check(&blocks).unwrap_err().to_string();
        assert!(refused.contains("more than 1000000 values"), "{refused}");
    }

    #[test]
    fn commas_and_colons_in_scalars_are_no_values() {
        let scalar = format!("a: |\n  {}\n", "1,2:3,".repeat(400_000));
        assert_eq!(why(&scalar), "read");
        assert!(is_bounded(&scalar));
    }

    #[test]
    fn too_deep_brackets_are_refused() {
        assert!(why(&"[".repeat(100_000)).contains("nested deeper"));
        assert!(why(&"- ".repeat(50_000)).contains("nested deeper"));
        assert!(why(&format!("{}a: 1\n", "# see [the docs\n".repeat(1000))) == "read");
    }

    #[test]
    fn counting_is_linear_in_the_length_of_the_text() {
        assert_linear(1_500, |size| drop(check(&squared(size))));
    }
}
