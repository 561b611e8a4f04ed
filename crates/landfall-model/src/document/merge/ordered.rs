//! Lists whose order matters: what is new goes to its position relative to the items that both
//! lists have.

use super::texts::{is_no_proxy, with_entries};

/// What makes of an old list one that has all items of both, each list in its own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OrderedMerge {
    /// New items, by their number, each with the number of the old item before which it belongs.
    pub(super) inserted: Vec<(usize, usize)>,
    /// Old items that get another text.
    pub(super) changed: Vec<(usize, String)>,
}

/// Whether the order of the list `key` matters: commands run, and mirrors are asked, one after the
/// other.
pub(super) fn is_ordered(key: &str) -> bool {
    key.ends_with("Commands") || ["runcmd", "bootcmd", "mirrors", "endpoint"].contains(&key)
}

/// How `new` goes into `old`; `None` if an item that both have stands in another order, or an item
/// cannot be changed.
///
/// An item that is new goes directly before the common item that follows it, as late as possible:
/// what a command prepares for must still be prepared when that command runs.
pub(super) fn ordered(old: &[&str], new: &[&str]) -> Option<OrderedMerge> {
    let keys = |list: &[&str]| list.iter().map(|item| identity(item)).collect::<Vec<_>>();
    let (old_keys, new_keys) = (keys(old), keys(new));
    let pairs = common(&old_keys, &new_keys);
    let mut merge = OrderedMerge {
        inserted: Vec::new(),
        changed: Vec::new(),
    };
    for (at, item) in new.iter().enumerate() {
        if let Some((place, _)) = pairs.iter().find(|(_, other)| *other == at) {
            let text = changed(old[*place], item)?;
            if text != old[*place] {
                merge.changed.push((*place, text));
            }
            continue;
        }
        let is_free = |place: &usize| !pairs.iter().any(|(taken, _)| taken == place);
        let is_elsewhere = (0..old.len())
            .filter(is_free)
            .any(|place| old_keys[place] == new_keys[at]);
        if is_elsewhere && !is_repeatable(item) {
            return None;
        }
        let next = pairs
            .iter()
            .find(|(_, other)| *other > at)
            .map_or(old.len(), |(place, _)| *place);
        merge.inserted.push((at, next));
    }
    Some(merge)
}

/// Whether a command may run twice without another effect.
fn is_repeatable(command: &str) -> bool {
    command.starts_with("systemctl ")
}

/// Pairs of the positions of a longest common subsequence, as late in `old` as possible. Items that
/// may be repeated count less than all others together.
fn common(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let weight = |key: &str| {
        if is_repeatable(key) {
            1
        } else {
            old.len() + new.len() + 1
        }
    };
    // best[i][j] is the weight of the best common subsequence of the first i and the first j items
    let mut best = vec![vec![0; new.len() + 1]; old.len() + 1];
    for (i, of_old) in old.iter().enumerate() {
        for (j, of_new) in new.iter().enumerate() {
            let without = best[i][j + 1].max(best[i + 1][j]);
            let with = if of_old == of_new {
                best[i][j] + weight(of_old)
            } else {
                0
            };
            best[i + 1][j + 1] = without.max(with);
        }
    }
    let (mut i, mut j, mut pairs) = (old.len(), new.len(), Vec::new());
    while i > 0 && j > 0 {
        let is_pair =
            old[i - 1] == new[j - 1] && best[i][j] == best[i - 1][j - 1] + weight(&old[i - 1]);
        if is_pair {
            pairs.push((i - 1, j - 1));
            (i, j) = (i - 1, j - 1);
        } else if best[i][j - 1] == best[i][j] {
            j -= 1;
        } else {
            i -= 1;
        }
    }
    pairs.reverse();
    pairs
}

/// What an item is told apart by: its words, but for what it sets.
fn identity(item: &str) -> String {
    let plain = item.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((name, _)) = exported(&plain) {
        return format!("export {name}");
    }
    // sed -i 's|PATTERN|TEXT|' FILE: whatever the text is
    if let Some((before, rest)) = plain
        .split_once("'s|")
        .filter(|_| plain.starts_with("sed "))
        && let [pattern, _, after] = rest.splitn(3, '|').collect::<Vec<_>>()[..]
    {
        return format!("{before}'s|{pattern}|{after}");
    }
    // grep -q TEXT FILE || COMMAND: whatever the command is
    match plain
        .split_once(" || ")
        .filter(|_| plain.starts_with("grep "))
    {
        Some((test, _)) => test.to_owned(),
        None => plain,
    }
}

/// The old item as the new one wants it; `None` if its value cannot be read.
fn changed(old: &str, new: &str) -> Option<String> {
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if words(old) == words(new) {
        return Some(old.to_owned());
    }
    match (exported(old), exported(new)) {
        (Some((name, there)), Some((_, value))) if is_no_proxy(name) => {
            let (there, value) = (unquoted(there)?, unquoted(value)?);
            let list = with_entries(there, value);
            Some(if list == there {
                old.to_owned()
            } else {
                format!("export {name}='{list}'")
            })
        }
        _ => Some(new.to_owned()),
    }
}

/// The variable that a command exports, and its value as written.
fn exported(command: &str) -> Option<(&str, &str)> {
    let (name, value) = command
        .trim()
        .strip_prefix("export ")?
        .trim_start()
        .split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !name.is_empty()).then_some((name, value))
}

/// The value of a word of a shell, if the shell leaves it is.
fn unquoted(word: &str) -> Option<&str> {
    let within = |quote| {
        word.strip_prefix(quote)
            .and_then(|rest: &str| rest.strip_suffix(quote))
    };
    let plain = within('\'').or_else(|| within('"')).unwrap_or(word);
    (!plain.contains(['\'', '"', '$', '`', '\\', ';', '&', '|'])).then_some(plain)
}

/// The items as a list of YAML for a message, without the account of a URL.
pub(super) fn shown(items: &[&str]) -> String {
    let quoted = |item: &&str| format!("- {}", serde_json::Value::from(without_account(item)));
    items.iter().map(quoted).collect::<Vec<_>>().join("\n")
}

/// `text` with `***` in place of the account in each URL.
fn without_account(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ' ', '\'', '"']).unwrap_or(part.len());
        let host = part[..end].rfind('@').map_or(0, |at| at + 1);
        let mask = if host > 0 { "***@" } else { "" };
        shown += &format!("://{mask}{}", &part[host..]);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(old: &[&str], new: &[&str]) -> Option<Vec<String>> {
        let merge = ordered(old, new)?;
        let mut list: Vec<String> = old.iter().map(|item| (*item).to_owned()).collect();
        for (place, text) in &merge.changed {
            list[*place].clone_from(text);
        }
        for (at, place) in merge.inserted.iter().rev() {
            list.insert(*place, new[*at].to_owned());
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
    fn new_commands_stand_before_the_common_one_that_follows_them() {
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
            "once more, nothing is new"
        );
    }

    #[test]
    fn what_a_command_sets_is_changed_in_its_place() {
        let old = [
            "export HTTP_PROXY=http://old",
            "export NO_PROXY=\"b,c\"",
            "sed -i 's|\".*/pause|\"old.test/pause|' /etc/containerd/config.toml",
        ];
        let merged = result(&old, &NEW[4..]).unwrap();
        assert_eq!(merged, [NEW[4], "export NO_PROXY='b,c,a'", NEW[6], NEW[7]]);
        // what a shell would make of it is not known
        assert_eq!(result(&["export NO_PROXY=\"$MINE\""], &NEW[5..]), None);
    }

    #[test]
    fn another_order_is_refused_unless_a_command_may_be_repeated() {
        assert_eq!(result(&["b", "a"], &["a", "b"]), None);
        let old = ["systemctl restart containerd", "export HTTP_PROXY=x"];
        let new = ["export HTTP_PROXY=x", "systemctl restart containerd"];
        assert_eq!(result(&old, &new).unwrap(), [old[0], old[1], new[1]]);
    }

    #[test]
    fn a_message_has_no_account() {
        let items = [
            "export HTTP_PROXY='http://me:p%40ss@10.0.0.1:3128'",
            "a 'b' https://x.test/@y",
        ];
        assert_eq!(
            shown(&items),
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
                assert!(new.iter().any(|item| old.contains(item)), "nothing stands in another order");
            }
        }
    }
}
