//! Typed reading of one YAML document that goes on after a fault, so that all of them are told at
//! once.

use super::yaml_tree::{Kind, Member, Tree, trees};
use super::{Diagnostic, SourceText, read};
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::rc::Rc;

/// After how many faults the reading ends.
const MOST: usize = 20;

/// A key whose value all other values depend on: without it, each use of a variable would be a
/// fault.
const NEEDED: &str = "vars";

/// A document, as far as it can be read, and what is wrong with it.
pub struct ReadAll<T> {
    /// The document without what is wrong; `None` if too much is.
    pub value: Option<T>,
    /// The text with the places of the values in `value`.
    pub text: Rc<SourceText>,
    /// The faults.
    pub faults: Vec<Diagnostic>,
}

/// Reads the document of `text` into `T`. What does not fit is left out: of an unknown or repeated
/// key that entry alone, else the item of a list, or the section. It is blanked, so that every
/// other byte keeps its place.
pub fn read_all<T: DeserializeOwned>(text: &Rc<SourceText>) -> ReadAll<T> {
    let original: &str = &text.text;
    let (mut left, mut faults) = (original.to_owned(), Vec::<Diagnostic>::new());
    loop {
        let fault = match read::<T>(&text.file, &left) {
            Ok(value) => {
                let text = if faults.is_empty() {
                    text.clone()
                } else {
                    text.with_places_of(&left)
                };
                return ReadAll {
                    value: Some(value),
                    text,
                    faults,
                };
            }
            Err(fault) => *fault,
        };
        let root = trees(&left).and_then(|trees| trees.into_iter().next());
        let cut = root
            .and_then(|root| to_cut(&root, &left, &fault))
            .filter(|cut| !left[cut.clone()].trim().is_empty());
        // what only shows because something was left out before is no fault of its own
        let follows = original.get(fault.span.clone()) != left.get(fault.span.clone())
            || cut
                .as_ref()
                .is_some_and(|cut| is_misspelt(&faults, cut, &fault));
        if !follows {
            faults.push(Diagnostic {
                text: original.to_owned(),
                ..fault
            });
        }
        match cut.filter(|_| faults.len() < MOST) {
            Some(cut) => blank(&mut left, cut),
            None => {
                return ReadAll {
                    value: None,
                    text: text.clone(),
                    faults,
                };
            }
        }
    }
}

/// Whether `fault` is a missing key of the item at `cut`, in which it stands misspelt.
fn is_misspelt(faults: &[Diagnostic], cut: &Range<usize>, fault: &Diagnostic) -> bool {
    let key = fault
        .message
        .strip_prefix("the key `")
        .and_then(|rest| rest.strip_suffix("` is missing here"));
    let meant = key.map(|key| format!("did you mean `{key}`?"));
    faults.iter().any(|earlier| {
        cut.contains(&earlier.span.start) && earlier.help.is_some() && earlier.help == meant
    })
}

/// The bytes that are left out because of `fault`.
fn to_cut(root: &Tree, text: &str, fault: &Diagnostic) -> Option<Range<usize>> {
    let at = fault.span.start;
    let is_key = fault.message.starts_with("unknown key")
        || fault.message.contains("` stands twice in this mapping");
    if is_key && let Some((member, flow)) = member_at(root, at) {
        return Some(with_comma(
            text,
            member.at.start..member.value.end().max(member.at.end),
            flow,
        ));
    }
    let Kind::Mapping { flow, members } = &root.kind else {
        return None;
    };
    let section = members
        .iter()
        .find(|member| (member.at.start..=member.value.end()).contains(&at))?;
    if let Kind::List { flow, items } = &section.value.kind
        && let Some(item) = items
            .iter()
            .find(|item| (item.span.start..=item.end()).contains(&at))
    {
        if *flow {
            return Some(with_comma(text, item.span.start..item.end(), true));
        }
        let dash = text[..item.span.start]
            .rfind('-')
            .filter(|dash| text[dash + 1..item.span.start].trim().is_empty());
        return Some(dash.unwrap_or(item.span.start)..item.end());
    }
    (section.key != NEEDED).then(|| with_comma(text, section.at.start..section.value.end(), *flow))
}

/// The entry whose key begins at `at`, and whether its mapping is in flow notation.
fn member_at(root: &Tree, at: usize) -> Option<(&Member, bool)> {
    let mut trees = vec![root];
    while let Some(tree) = trees.pop() {
        match &tree.kind {
            Kind::Mapping { flow, members } => {
                if let Some(member) = members.iter().find(|member| member.at.start == at) {
                    return Some((member, *flow));
                }
                trees.extend(members.iter().map(|member| &member.value));
            }
            Kind::List { items, .. } => trees.extend(items),
            Kind::Scalar | Kind::Alias => {}
        }
    }
    None
}

/// The range with the comma behind it, in flow notation.
fn with_comma(text: &str, range: Range<usize>, flow: bool) -> Range<usize> {
    let rest = text[range.end..].trim_start();
    match flow && rest.starts_with(',') {
        true => range.start..text.len() - rest.len() + 1,
        false => range,
    }
}

/// Puts blanks in place of all but line ends.
fn blank(text: &mut String, range: Range<usize>) {
    let blanks: String = text[range.clone()]
        .bytes()
        .map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                char::from(byte)
            } else {
                ' '
            }
        })
        .collect();
    text.replace_range(range, &blanks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample {
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        vars: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        name: String,
        #[serde(default)]
        size: u32,
    }

    /// The names and sizes that are read, the places of the names, and the faults with their
    /// places.
    fn told(text: &str) -> (Option<String>, Vec<String>) {
        let source = SourceText::yaml("x.yaml".into(), text.into());
        let all = read_all::<Sample>(&source);
        let faults = all.faults.iter().map(|fault| {
            let (line, column) = fault.line_column();
            assert_eq!(fault.text, text);
            format!("{line}:{column} {}", fault.message)
        });
        let items = |sample: Sample| {
            let items = sample.items.iter().enumerate().map(|(at, item)| {
                let written = &text[all.text.root.get("items").item(at).get("name").span()];
                assert_eq!(written, item.name, "the place of a value");
                format!("{}={}", item.name, item.size)
            });
            items.collect::<Vec<_>>().join(" ")
        };
        (all.value.map(items), faults.collect())
    }

    #[test]
    fn an_unknown_key_hides_nothing_behind_it() {
        let text = "itms: [1]\nitems:\n- {zzz: é, name: a, size: 1}\n- name: b\n  yyy: |\n    c\n    d\n  size: 2\n\
                    - xxx: 1\n  name: c\n";
        let (read, faults) = told(text);
        assert_eq!(read.as_deref(), Some("a=1 b=2 c=0"));
        assert_eq!(
            faults,
            [
                "1:1 unknown key `itms`",
                "3:4 unknown key `zzz`",
                "5:3 unknown key `yyy`",
                "9:3 unknown key `xxx`"
            ]
        );
    }

    #[test]
    fn what_has_another_shape_is_left_out_with_its_item() {
        let text = "items: [{name: a, size: x}, {name: b}, c, {name: d, name: e}]\n";
        let (read, faults) = told(text);
        assert_eq!(read.as_deref(), Some("b=0 d=0"));
        let expected = [
            "1:53 the key `name` stands twice in this mapping",
            "1:25 this should be a whole number",
            "1:40 this should be a mapping of keys and values",
        ];
        assert_eq!(faults, expected);
        // a section that is no list, and the last item of one
        assert_eq!(told("items: x\n").0.as_deref(), Some(""));
        assert_eq!(
            told("items:\n- size: 1\n").1,
            ["2:3 the key `name` is missing here"]
        );
    }

    #[test]
    fn what_follows_from_a_fault_is_no_second_one() {
        assert_eq!(
            told("items:\n- nmae: a\n- name: b\n").1,
            ["2:3 unknown key `nmae`"]
        );
        assert_eq!(
            told("items:\n- {nmae: a, size: 1}\n").1,
            ["2:4 unknown key `nmae`"]
        );
        assert_eq!(
            told("items:\n- {nmae: a, size: 1}\n- {name: b}\n")
                .0
                .as_deref(),
            Some("b=0")
        );
        // without variables nothing can be checked
        let (read, faults) = told("vars: 1\nitems: [{size: x}]\n");
        assert_eq!((read, faults.len()), (None, 1));
    }

    #[test]
    fn the_end_is_bounded_and_no_yaml_ends_it() {
        let text = (0..60)
            .map(|key| format!("key{key}: 1\n"))
            .collect::<String>();
        let (read, faults) = told(&text);
        assert_eq!((read, faults.len()), (None, MOST));
        assert_eq!(told("items: [").1.len(), 1);
        assert_eq!(told("- 1\n").0, None);
    }
}
