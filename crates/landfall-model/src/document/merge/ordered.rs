//! Merges lists whose order matters: each new item is inserted relative to the items that both
//! lists contain.

use super::edits::is_same_url;
use super::no_proxy_lists::{NoProxyLists, is_no_proxy};
use crate::redaction::redact_urls;

/// The changes that make an old list contain all items of a new one. The items of each list keep
/// their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderedMerge {
    /// The items of the new list that are inserted into the old one, in the order of the new list:
    /// the number of the item, and the number of the old item before which it is inserted, or the
    /// length of the old list.
    pub(super) inserted: Vec<(usize, usize)>,
    /// Old items that get another text, by their number in the old list.
    pub(super) changed: Vec<(usize, String)>,
}

/// Why a new list cannot be merged into an old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OrderedConflict<'i> {
    /// The common items have different orders in the two lists.
    Order,
    /// An old command sets a value that cannot be read, or does more than set the value.
    Value {
        /// The old command without the value.
        old: String,
        /// The new command with the same identity.
        new: &'i str,
    },
}

/// Whether the order of the list `key` matters: commands run one after the other, and mirrors are
/// tried in their order.
pub(super) fn is_ordered(key: &str) -> bool {
    key.ends_with("Commands") || ["runcmd", "bootcmd", "mirrors", "endpoint"].contains(&key)
}

/// Computes the changes that merge `new` into `old`.
///
/// A new item is inserted directly before the common item that follows it in `new`. This is as late
/// as possible, so that no old command in between undoes what the new command prepared.
pub(super) fn merge_ordered<'i>(
    old: &[&'i str],
    new: &[&'i str],
    lists: &mut NoProxyLists,
) -> Result<OrderedMerge, OrderedConflict<'i>> {
    let old_keys: Vec<String> = old.iter().map(|item| command_identity(item)).collect();
    let new_keys: Vec<String> = new.iter().map(|item| command_identity(item)).collect();
    let pairs = common_subsequence(&old_keys, &new_keys);
    let mut merge = OrderedMerge {
        inserted: Vec::new(),
        changed: Vec::new(),
    };
    for (item, text) in new.iter().enumerate() {
        if let Some((at, _)) = pairs.iter().find(|(_, other)| *other == item) {
            let changed =
                changed_item(old[*at], text, lists).ok_or_else(|| OrderedConflict::Value {
                    old: old_keys[*at].clone(),
                    new: text,
                })?;
            if changed != old[*at] {
                merge.changed.push((*at, changed));
            }
            continue;
        }
        let is_elsewhere = (0..old.len())
            .filter(|at| !pairs.iter().any(|(paired, _)| paired == at))
            .any(|at| old_keys[at] == new_keys[item]);
        if is_elsewhere && !is_repeatable(text) {
            return Err(OrderedConflict::Order);
        }
        let next = pairs.iter().find(|(_, other)| *other > item);
        let before = next.map_or(old.len(), |(at, _)| *at);
        merge.inserted.push((item, before));
    }
    Ok(merge)
}

/// Whether a command may run twice.
fn is_repeatable(command: &str) -> bool {
    command.starts_with("systemctl ")
}

/// The pairs of positions of a common subsequence with the greatest weight, as late in `old` as
/// possible.
///
/// All repeatable items together weigh less than any other item, because only a repeatable item may
/// be inserted a second time.
fn common_subsequence(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let weight = |key: &str| {
        if is_repeatable(key) {
            1
        } else {
            old.len() + new.len() + 1
        }
    };
    // best[i][j] is the weight of the best common subsequence of the first i items of `old` and the
    // first j items of `new`
    let mut best = vec![vec![0; new.len() + 1]; old.len() + 1];
    for (i, old_key) in old.iter().enumerate() {
        for (j, new_key) in new.iter().enumerate() {
            let without = best[i][j + 1].max(best[i + 1][j]);
            let with = if old_key == new_key {
                best[i][j] + weight(old_key)
            } else {
                0
            };
            best[i + 1][j + 1] = without.max(with);
        }
    }
    let mut i = old.len();
    let mut j = new.len();
    let mut pairs = Vec::new();
    while i > 0 && j > 0 {
        let is_pair =
            old[i - 1] == new[j - 1] && best[i][j] == best[i - 1][j - 1] + weight(&old[i - 1]);
        if is_pair {
            pairs.push((i - 1, j - 1));
            i -= 1;
            j -= 1;
        } else if best[i][j - 1] == best[i][j] {
            j -= 1;
        } else {
            i -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// The identity of a command: its text without the value that it sets.
fn command_identity(item: &str) -> String {
    let plain = item.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((name, _)) = exported_variable(&plain) {
        return format!("export {name}");
    }
    // sed -i 's|PATTERN|TEXT|' FILE: identified without the text
    if plain.starts_with("sed ")
        && let Some((before, rest)) = plain.split_once("'s|")
        && let [pattern, _, after] = rest.splitn(3, '|').collect::<Vec<_>>()[..]
    {
        return format!("{before}'s|{pattern}|{after}");
    }
    // grep -q TEXT FILE || COMMAND: identified without the command
    if plain.starts_with("grep ")
        && let Some((test, _)) = plain.split_once(" || ")
    {
        return test.to_owned();
    }
    plain
}

/// Merges two items with the same identity; returns the new text of the old item, or `None` if the
/// old one does more than the new one. For commands that export NO_PROXY, returns `None` also if
/// the value in one of them cannot be read.
fn changed_item(old: &str, new: &str, lists: &mut NoProxyLists) -> Option<String> {
    if old.split_whitespace().eq(new.split_whitespace()) {
        return Some(old.to_owned());
    }
    if let (Some((name, old_value)), Some((_, new_value))) =
        (exported_variable(old), exported_variable(new))
    {
        if !is_no_proxy(name) {
            let existing = shell_word(old_value)?;
            let is_same = shell_word(new_value).is_some_and(|new| is_same_url(existing, new));
            return Some(if is_same { old } else { new }.to_owned());
        }
        let existing = unquoted(old_value)?;
        let list = lists.merge(existing, unquoted(new_value)?);
        if list == existing {
            return Some(old.to_owned());
        }
        return Some(format!("export {name}='{list}'"));
    }
    // the value of the command after `||` is replaced, but not a command that a person added
    let [was, is] = [old, new].map(|text| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    });
    if let (Some((_, was)), Some((_, is))) = (was.split_once(" || "), is.split_once(" || ")) {
        return (without_quoted(was) == without_quoted(is)).then(|| new.to_owned());
    }
    Some(new.to_owned())
}

/// The words of a command without the text in single quotes.
fn without_quoted(command: &str) -> String {
    let outside: String = command.split('\'').step_by(2).collect();
    outside.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The variable that a command exports, and its value as written.
fn exported_variable(command: &str) -> Option<(&str, &str)> {
    let assignment = command.trim().strip_prefix("export ")?.trim_start();
    let (name, value) = assignment.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !name.is_empty()).then_some((name, value))
}

/// The shell word `text` without its quotes. `None` if `text` is not a single word, for example
/// because it also sets another variable or runs another command.
fn shell_word(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let ends_word = |c: char| c.is_whitespace() || "'\";&|<>".contains(c);
        return (!text.contains(ends_word)).then_some(text);
    };
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}

/// The value of the shell word `word`. `None` if `word` is not a single word, or if the shell may
/// expand it.
fn unquoted(word: &str) -> Option<&str> {
    shell_word(word).filter(|plain| !plain.contains(['\'', '"', '$', '`', '\\', ';', '&', '|']))
}

/// The items as a YAML list for a message, without the secrets in URLs.
pub(super) fn quoted_items(items: &[&str]) -> String {
    let lines: Vec<String> = items
        .iter()
        .map(|item| format!("- {}", serde_json::Value::from(redact_urls(item))))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged<'i>(old: &[&'i str], new: &[&'i str]) -> Result<OrderedMerge, OrderedConflict<'i>> {
        merge_ordered(old, new, &mut NoProxyLists::default())
    }

    fn result(old: &[&str], new: &[&str]) -> Option<Vec<String>> {
        let merge = merged(old, new).ok()?;
        let mut list: Vec<String> = old.iter().map(|item| (*item).to_owned()).collect();
        for (place, text) in &merge.changed {
            list[*place].clone_from(text);
        }
        for &(item, before) in merge.inserted.iter().rev() {
            list.insert(before, new[item].to_owned());
        }
        Some(list)
    }

    const NEW: [&str; 8] = [
        "hostname x",
        "systemctl daemon-reload",
        "systemctl stop containerd",
        "systemctl start containerd",
        "export HTTP_PROXY='http://p'",
        "export NO_PROXY='a,b'",
        "sed -i 's|\".*/pause|\"r.test/pause|' /etc/containerd/config.toml",
        "systemctl restart containerd",
    ];

    #[test]
    fn new_commands_are_inserted_before_the_next_common_command() {
        let old = [
            "hostname  x",
            "systemctl start containerd",
            "mine",
            "systemctl restart containerd",
            "after",
        ];
        let expected = [
            "hostname  x",
            NEW[1],
            NEW[2],
            NEW[3],
            "mine",
            NEW[4],
            NEW[5],
            NEW[6],
            NEW[7],
            "after",
        ];
        assert_eq!(result(&old, &NEW).unwrap(), expected);
        assert_eq!(
            result(&expected, &NEW).unwrap(),
            expected,
            "a second merge changes nothing"
        );
    }

    #[test]
    fn the_value_that_a_command_sets_is_changed_in_place() {
        let old = [
            "export HTTP_PROXY=http://old",
            "export NO_PROXY=\"b,c\"",
            "sed -i 's|\".*/pause|\"old.test/pause|' /etc/containerd/config.toml",
        ];
        let list = result(&old, &NEW[4..]).unwrap();
        assert_eq!(list, [NEW[4], "export NO_PROXY='b,c,a'", NEW[6], NEW[7]]);
    }

    #[test]
    fn a_command_that_does_more_than_set_a_readable_value_is_a_conflict() {
        for (old, new) in [
            // the value of the variable in the shell is unknown
            ("export NO_PROXY=\"$MINE\"", NEW[5]),
            ("export NO_PROXY=c HTTP_PROXY=x", NEW[5]),
            ("export NO_PROXY=c; mine", NEW[5]),
            ("export NO_PROXY='c' OTHER='d'", NEW[5]),
            ("export HTTP_PROXY=http://old OTHER=d", NEW[4]),
            ("export HTTP_PROXY='http://old' && mine", NEW[4]),
            ("export HTTP_PROXY=http://old\nmine", NEW[4]),
            (
                "grep -qF 'a' f ||\n  printf 'b' >> f; mine",
                "grep -qF 'a' f || printf 'c' >> f",
            ),
            (
                "grep -qF 'a' f || printf 'b' >> f; mine",
                "grep -qF 'a' f || printf 'c' >> f",
            ),
        ] {
            let conflict = merged(&[old], &[new]);
            let old = command_identity(new);
            assert_eq!(conflict, Err(OrderedConflict::Value { old, new }));
        }
        for old in [
            "export HTTP_PROXY=\"$MINE or $YOURS\"",
            "export HTTP_PROXY=$MINE",
        ] {
            assert_eq!(result(&[old], &[NEW[4]]).unwrap(), [NEW[4]]);
        }
        let append = [
            "grep -qF 'a' f || printf 'b'  >> f",
            "grep -qF 'a' f || printf 'c' >> f",
        ];
        assert_eq!(result(&append[..1], &append[1..]).unwrap(), [append[1]]);
    }

    #[test]
    fn another_order_is_refused_unless_a_command_may_be_repeated() {
        assert_eq!(
            merged(&["b", "a"], &["a", "b"]),
            Err(OrderedConflict::Order)
        );
        let old = ["systemctl restart containerd", "export HTTP_PROXY=x"];
        let new = ["export HTTP_PROXY=x", "systemctl restart containerd"];
        assert_eq!(result(&old, &new).unwrap(), [old[0], old[1], new[1]]);
    }

    #[test]
    fn a_message_contains_no_password() {
        let items = [
            "export HTTP_PROXY='http://me:p%40s's@10.0.0.1:3128'",
            "a 'b' https://x.test/@y",
        ];
        assert_eq!(
            quoted_items(&items),
            "- \"export HTTP_PROXY='http://***@10.0.0.1:3128'\"\n- \"a 'b' https://x.test/@y\""
        );
    }

    /// Whether `list` has all `items`, in their order.
    fn has_in_order(list: &[String], items: &[&str]) -> bool {
        let mut list = list.iter();
        items.iter().all(|item| list.any(|there| there == item))
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            cases: 2000,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn both_lists_keep_their_items_and_order(
            old in proptest::collection::vec("[a-f]|systemctl [xy]", 0..9),
            new in proptest::collection::vec("[a-f]|systemctl [xy]", 0..7),
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            if let Some(list) = result(&old, &new) {
                assert!(has_in_order(&list, &old) && has_in_order(&list, &new), "{list:?}");
                let again: Vec<&str> = list.iter().map(String::as_str).collect();
                assert_eq!(result(&again, &new).as_ref(), Some(&list));
            } else {
                assert!(
                    new.iter().any(|item| old.contains(item)),
                    "refused although the lists have no common item"
                );
            }
        }
    }
}
