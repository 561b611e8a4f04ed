//! Reads documents of other tools and of people more liberally than serde does: with a byte order
//! mark, which some tools write, mostly on Windows, and JSON parsers refuse; with `null` for the
//! default value; with a text in place of a mapping. Also types that documents contain as one text.

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// The document without a byte order mark at its start.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Parses a JSON document that another tool wrote.
///
/// # Errors
/// If it is not JSON of this type.
pub fn from_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(without_bom(bytes))
}

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

/// Serializes a type as its text, by `Display`, and deserializes it from that text, by `FromStr`.
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(source: D) -> Result<$type, D::Error> {
                $crate::parsed_text(source)
            }
        }
    };
}

/// Deserializes a value from its text, by `FromStr`. The error has the position of the text in the
/// document.
///
/// # Errors
/// If the value is not a text, or is invalid.
pub fn parsed_text<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    struct ParsedText<T>(PhantomData<T>);
    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for ParsedText<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    source.deserialize_str(ParsedText(PhantomData))
}

/// Deserializes a text, or a mapping with the fields `F`. `expected` names both for the message
/// about any other value.
///
/// # Errors
/// If the value is of another type, or the fields are invalid.
pub fn text_or_mapping<'de, D, F, T>(
    source: D,
    expected: &'static str,
    of_text: fn(String) -> T,
    of_fields: fn(F) -> T,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de>,
{
    source.deserialize_any(TextOrMapping {
        expected,
        of_text,
        of_fields,
    })
}

struct TextOrMapping<F, T> {
    expected: &'static str,
    of_text: fn(String) -> T,
    of_fields: fn(F) -> T,
}

impl<'de, F: Deserialize<'de>, T> Visitor<'de> for TextOrMapping<F, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok((self.of_text)(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        F::deserialize(MapAccessDeserializer::new(map)).map(self.of_fields)
    }
}

// Reads single members of JSON objects that other tools wrote. Members that are not read may have
// any value, and cost no memory.

/// A JSON text, of which only the members that are asked for are parsed.
#[derive(Debug, Clone, Copy)]
pub struct JsonText<'a>(&'a str);

impl<'a> JsonText<'a> {
    /// A document, without a byte order mark at its start. Its syntax is checked when its members
    /// are read.
    pub fn new(text: &'a str) -> JsonText<'a> {
        JsonText(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// The members of an object with these names. A member that is `null` counts as absent. If the
    /// object has a member twice, the last one counts, as for tools written in Go.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn members<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<[Option<JsonText<'a>>; N], serde_json::Error> {
        Ok(self.members_and_presence(names)?.0)
    }

    /// Like [`JsonText::members`]. Also returns which of the members are there, possibly as `null`.
    pub(crate) fn members_and_presence<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<([Option<JsonText<'a>>; N], [bool; N]), serde_json::Error> {
        let mut found = [None; N];
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        deserializer.deserialize_map(EachMember(|name: &str, value| {
            if let Some(at) = names.iter().position(|one| *one == name) {
                found[at] = Some(value);
            }
            Ok(())
        }))?;
        deserializer.end()?;
        let values = found.map(|value| value.filter(|value| !value.is_null()));
        Ok((values, found.map(|value| value.is_some())))
    }

    /// Like [`JsonText::members`], without any member if the text is not an object.
    pub fn members_if_object<const N: usize>(self, names: [&str; N]) -> [Option<JsonText<'a>>; N] {
        self.members(names).unwrap_or([None; N])
    }

    /// The elements of a list, without those that are `null`. `None` if the text is not a list.
    pub fn elements(self) -> Option<Vec<JsonText<'a>>> {
        let elements: Vec<&RawValue> = serde_json::from_str(self.0).ok()?;
        let elements = elements.into_iter().map(|value| JsonText(value.get()));
        Some(elements.filter(|value| !value.is_null()).collect())
    }

    /// The text of a string, unless it is empty. `None` if the value is of another type.
    pub fn string(self) -> Option<String> {
        let text: String = serde_json::from_str(self.0).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// A number that is not negative and has no fraction, also if it is written as `12.0` or
    /// `"12"`.
    pub fn unsigned(self) -> Option<u64> {
        let digits = self.0.trim_matches('"');
        if let Ok(number) = digits.parse() {
            return Some(number);
        }
        let number: f64 = digits.parse().ok()?;
        // a float represents every integer up to 2^53
        let is_exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        is_exact.then_some(number as u64)
    }

    /// The length of the text in bytes.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether the text is empty, which no JSON value is.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The members of an object whose values are strings, in their order. Other members are left
    /// out; there are none if the text is not an object.
    pub fn string_members(self) -> serde_json::Map<String, serde_json::Value> {
        let mut found = serde_json::Map::new();
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        let read = deserializer.deserialize_map(EachMember(|name: &str, JsonText(value)| {
            if value.starts_with('"') {
                found.insert(name.to_owned(), serde_json::from_str(value)?);
            }
            Ok(())
        }));
        read.map(|()| found).unwrap_or_default()
    }

    /// Whether the text is `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }
}

/// Calls a function with the name and the value of each member of an object.
struct EachMember<F>(F);

impl<'de, F> Visitor<'de> for EachMember<F>
where
    F: FnMut(&str, JsonText<'de>) -> serde_json::Result<()>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let value = JsonText(map.next_value::<&RawValue>()?.get());
            (self.0)(&key.0, value).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// A key of an object, which is borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_members_counts_and_null_is_absent() {
        let text = r#"{"a": 1, "b": null, "x": [[{}]], "a": "two", "\u0063": [1, null, 2]}"#;
        let [a, b, c] = JsonText::new(text).members(["a", "b", "c"]).unwrap();
        assert_eq!(a.and_then(JsonText::string).as_deref(), Some("two"));
        assert!(b.is_none());
        assert_eq!(
            c.and_then(JsonText::elements).map(|list| list.len()),
            Some(2)
        );
        for other in ["[]", "1", "", "{", "{} x", "<html>"] {
            assert!(JsonText::new(other).members(["a"]).is_err(), "{other}");
        }
    }

    #[test]
    fn sizes_may_be_floats_or_strings_but_not_negative_or_fractions() {
        let read = |text| JsonText::new(text).unsigned();
        for text in ["123", "123.0", "1.23e2", r#""123""#] {
            assert_eq!(read(text), Some(123), "{text}");
        }
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for text in [
            "-1", "1.5", "1e300", r#""x""#, "true", "{}", "-0.5", r#""""#, "1e16",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_skipped_without_recursion() {
        let deep = format!(
            r#"{{"x": {}{}, "a": 7}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let [a] = JsonText::new(&deep).members(["a"]).unwrap();
        assert_eq!(a.and_then(JsonText::unsigned), Some(7));
    }

    #[test]
    fn only_strings_are_string_members() {
        let text = r#"{"a": "x", "b": 1, "c": null, "d": {"e": "f"}, "g": ""}"#;
        let found = JsonText::new(text).string_members();
        assert_eq!(
            serde_json::to_string(&found).unwrap(),
            r#"{"a":"x","g":""}"#
        );
        assert!(JsonText::new("[1]").string_members().is_empty());
    }
}
