//! Texts whose parts are known, so that two of them become one that has the parts of both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The first line of a certificate in PEM form, and its last.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// `old` with what `new` adds or changes; `None` if lines of `old` would be removed.
pub(super) fn merged(old: &str, new: &str) -> Option<String> {
    if old.trim().is_empty() {
        return Some(new.to_owned());
    }
    if old.contains(BEGIN) && new.contains(BEGIN) {
        return Some(with_certificates(old, new));
    }
    if let (Some(old), Some(new)) = (encoded_certificates(old), encoded_certificates(new)) {
        return Some(STANDARD.encode(with_certificates(&old, &new)));
    }
    if let Some(unit) = with_variables(old, new) {
        return Some(unit);
    }
    let is_line = |text: &str| !text.trim_end().contains('\n');
    let is_kept = |line: &str| {
        line.trim().is_empty() || new.lines().any(|other| other.trim_end() == line.trim_end())
    };
    ((is_line(old) && is_line(new)) || old.lines().all(is_kept)).then(|| new.to_owned())
}

/// The certificates that `text` holds in base64, as TKG's variables do.
fn encoded_certificates(text: &str) -> Option<String> {
    decoded(text).filter(|text| text.contains(BEGIN))
}

/// The text that `text` holds in base64.
pub(super) fn decoded(text: &str) -> Option<String> {
    let plain: String = text.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(plain).ok()?).ok()
}

/// `old` with the certificates of `new` that it lacks.
fn with_certificates(old: &str, new: &str) -> String {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let there = bare(old);
    let mut text = old.to_owned();
    for part in new.split_inclusive(END) {
        let Some(certificate) = part.find(BEGIN).map(|start| &part[start..]) else {
            continue;
        };
        if certificate.ends_with(END) && !there.contains(&bare(certificate)) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(certificate);
            text.push('\n');
        }
    }
    text
}

/// The drop-in `old` with the variables of the drop-in `new`; `None` if `new` has more than
/// variables, or `old` is no unit.
fn with_variables(old: &str, new: &str) -> Option<String> {
    let content = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', ';']);
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    let section = lines.iter().position(|line| line.trim() == "[Service]")?;
    let is_section = |line: &String| line.trim_start().starts_with('[');
    let next = lines.iter().skip(section + 1).position(is_section);
    let mut end = next.map_or(lines.len(), |next| section + 1 + next);
    // an empty line before the next section stays there
    while end > section + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    for line in new.lines().filter(content) {
        if line.trim() == "[Service]" {
            continue;
        }
        let (name, value) = variable(line)?;
        let is_same = |other: &String| variable(other).is_some_and(|(other, _)| other == name);
        // the last assignment of a variable is the one that counts
        match lines[section..end]
            .iter()
            .rposition(is_same)
            .map(|at| section + at)
        {
            Some(at) => {
                let there = variable(&lines[at])
                    .map(|(_, value)| value.to_owned())
                    .unwrap_or_default();
                let value = if is_no_proxy(name) {
                    with_entries(&there, value)
                } else {
                    value.to_owned()
                };
                if value != there {
                    lines[at] = format!("Environment=\"{name}={value}\"");
                }
            }
            None => {
                lines.insert(end, line.to_owned());
                end += 1;
            }
        }
    }
    let mut text = lines.join("\n");
    if old.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

/// The variable of a line with one assignment, and its value.
fn variable(line: &str) -> Option<(&str, &str)> {
    let assignment = line.trim().strip_prefix("Environment=")?;
    let quoted = assignment
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let (name, value) = quoted.unwrap_or(assignment).split_once('=')?;
    (!value.contains('"')).then_some((name, value))
}

/// Whether a variable or key has a list of what bypasses the proxy.
pub(super) fn is_no_proxy(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.to_ascii_lowercase().ends_with("noproxy")
}

/// The entries of the list `old`, and then those of `new` that it lacks.
pub(super) fn with_entries(old: &str, new: &str) -> String {
    let split = |list: &'_ str| -> Vec<String> {
        list.split(',')
            .map(|entry| entry.trim().to_owned())
            .filter(|entry| !entry.is_empty())
            .collect()
    };
    let there = split(old);
    let missing: Vec<String> = split(new)
        .into_iter()
        .filter(|entry| !there.contains(entry))
        .collect();
    match (old.trim().is_empty(), missing.is_empty()) {
        (true, _) => new.to_owned(),
        (false, true) => old.to_owned(),
        (false, false) => format!("{},{}", old.trim().trim_end_matches(','), missing.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn certificates_are_added_once() {
        let old = format!("# ours\n{}", pem("YQ=="));
        let both = merged(&old, &(pem("Yg==") + &pem("YQ=="))).unwrap();
        assert_eq!(both, format!("{old}{}", pem("Yg==")));
        assert_eq!(merged(&both, &pem("Yg==")).unwrap(), both);
        let encoded = merged(&STANDARD.encode(pem("YQ==")), &STANDARD.encode(pem("Yg=="))).unwrap();
        assert_eq!(decoded(&encoded).unwrap(), pem("YQ==") + &pem("Yg=="));
    }

    #[test]
    fn a_drop_in_keeps_its_lines_and_gets_the_variables() {
        let old = "[Unit]\nAfter=x\n[Service]\n# ours\nEnvironment=\"HTTP_PROXY=http://old\"\nEnvironment=NO_PROXY=10.0.0.0/8\n\
                   LimitNOFILE=1\n\n[Install]\nWantedBy=y\n";
        let new = "[Service]\nEnvironment=\"HTTP_PROXY=http://new\"\nEnvironment=\"HTTPS_PROXY=http://new\"\n\
                   Environment=\"NO_PROXY=svc,10.0.0.0/8\"\n";
        let expected = "[Unit]\nAfter=x\n[Service]\n# ours\nEnvironment=\"HTTP_PROXY=http://new\"\n\
                        Environment=\"NO_PROXY=10.0.0.0/8,svc\"\nLimitNOFILE=1\nEnvironment=\"HTTPS_PROXY=http://new\"\n\n\
                        [Install]\nWantedBy=y\n";
        assert_eq!(merged(old, new).unwrap(), expected);
        assert_eq!(merged(expected, new).unwrap(), expected);
    }

    #[test]
    fn a_text_without_known_parts_is_replaced_only_if_no_line_is_lost() {
        assert_eq!(merged("a\nb\n", "a\nc\nb\n").as_deref(), Some("a\nc\nb\n"));
        assert_eq!(merged("a\nb\n", "a\nc\n"), None);
        assert_eq!(merged("one", "two").as_deref(), Some("two"));
        assert_eq!(merged("one", "a\nb\n"), None);
        assert_eq!(merged(" \n", "x").as_deref(), Some("x"));
    }

    #[test]
    fn entries_of_a_list_are_added_once() {
        assert_eq!(with_entries("a, b", "b,c"), "a, b,c");
        assert_eq!(with_entries("a,b", "b"), "a,b");
        assert_eq!(with_entries("", "b"), "b");
        assert!(is_no_proxy("TKG_NO_PROXY") && is_no_proxy("noProxy") && !is_no_proxy("proxy"));
    }
}
