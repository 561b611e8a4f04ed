//! Writes what a lock contains as YAML, one value on each line so that diffs are small. The types
//! that read a lock also define its keys and their order; this file defines how values are laid
//! out.

use crate::text::{in_quotes, quoted};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::{self, Write};

/// Lists on the line of their key. All other lists have a line for each item.
const FLOW_LISTS: [&str; 2] = ["platforms", "lacks"];

/// Lists whose items are mappings with a line for each key. Other mappings are on one line.
const LISTS_OF_BLOCKS: [&str; 3] = ["packages", "packs", "sources"];

/// Lists that are `None` if they were not looked up, which differs from an empty list.
const OPTIONAL_LISTS: [&str; 3] = ["referrers", "submodules", "largeFiles"];

/// Texts that are always in quotes: ids of git objects, which may look like numbers, and hashes.
const QUOTED: [&str; 3] = ["h1", "shallow", "tips"];

/// The text with several lines: an ASCII-armored key.
const LITERAL: &str = "key";

/// Writes `item` as an item of a list, with a line for each key.
pub(crate) fn write_item(item: &impl Serialize, out: &mut dyn Write) -> fmt::Result {
    match serde_json::to_value(item) {
        Ok(Value::Object(mapping)) => write_mapping(&mapping, 0, out),
        _ => Err(fmt::Error),
    }
}

/// Writes `item` as an item of a list, on one line.
pub(crate) fn write_line(item: &impl Serialize, out: &mut dyn Write) -> fmt::Result {
    let value = serde_json::to_value(item).map_err(|_| fmt::Error)?;
    writeln!(out, "- {}", flow("", &value))
}

/// Writes a mapping as an item of a list that is indented by `indent` spaces.
fn write_mapping(mapping: &Map<String, Value>, indent: usize, out: &mut dyn Write) -> fmt::Result {
    let mut start = "- ";
    for (key, value) in mapping {
        if value.is_null() {
            continue;
        }
        write!(out, "{:indent$}{start}{key}:", "")?;
        start = "  ";
        let indent = indent + start.len();
        match value {
            Value::Array(items) if items.is_empty() && OPTIONAL_LISTS.contains(&&**key) => {
                writeln!(out, " []")?;
            }
            Value::Array(items) if !FLOW_LISTS.contains(&&**key) => {
                writeln!(out)?;
                for item in items {
                    match item {
                        Value::Object(mapping) if LISTS_OF_BLOCKS.contains(&&**key) => {
                            write_mapping(mapping, indent, out)?;
                        }
                        _ => writeln!(out, "{:indent$}- {}", "", flow(key, item))?,
                    }
                }
            }
            Value::String(text) if key == LITERAL => {
                writeln!(out, " |")?;
                for line in text.lines() {
                    // armor has an empty line, which must not get trailing white space
                    let indent = if line.is_empty() { 0 } else { indent + 2 };
                    writeln!(out, "{:indent$}{line}", "")?;
                }
            }
            _ => writeln!(out, " {}", flow(key, value))?,
        }
    }
    Ok(())
}

/// The text of `value` on one line. `key` is the key of the value, or of the list that contains it.
fn flow(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) if QUOTED.contains(&key) => in_quotes(text),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(key, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(mapping) => {
            let pairs = mapping.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<String> = pairs
                .map(|(key, value)| format!("{key}: {}", flow(key, value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
