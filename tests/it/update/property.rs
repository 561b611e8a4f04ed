//! Updating manifests in any YAML notation changes only the bytes of versions and digests.

use super::upstream::Upstream;
use crate::support::rounds;
use std::fmt::Write as _;

/// The number of manifests in each run of `landfall update`.
const BATCH: usize = 20;

/// A small random number generator with a seed, so that a failure can be reproduced.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// The notation in a template for a version that the update changes: `<old|new>`.
fn slot(old: &str, new: &str) -> String {
    format!("<{old}|{new}>")
}

fn rendered(template: &str, new: bool) -> String {
    let mut text = String::new();
    for piece in template.split('<') {
        match piece
            .split_once('>')
            .and_then(|(slot, rest)| Some((slot.split_once('|')?, rest)))
        {
            Some(((old, now), rest)) => text.extend([if new { now } else { old }, rest]),
            None => text += piece,
        }
    }
    text
}

fn quoted(dice: &mut Dice, text: &str) -> String {
    match dice.roll(3) {
        0 => format!("\"{text}\""),
        1 => format!("'{text}'"),
        // a colon in the unquoted text does not begin a mapping, since no space follows
        _ => text.to_owned(),
    }
}

fn comment(dice: &mut Dice) -> &'static str {
    dice.one(&[
        "",
        "",
        "  # v1.0.0 -> 1.2.3",
        " # { [ \" ' & *",
        "   ",
        " # ünïcode ✓",
    ])
}

/// A manifest in a random notation. `at` makes its repositories unique.
fn template(dice: &mut Dice, at: usize, digests: &[(String, String)]) -> String {
    let mut text = String::new();
    if dice.roll(8) == 0 {
        text.push('\u{feff}');
    }
    text += dice.one(&["", "# 1.0.0 in a comment\n", "---\n", "\n\n"]);
    text += "apiVersion: landfall/v1\nkind: Manifest\n";
    let version = slot("1.0.0", "1.0.7");
    let value = quoted(dice, &version);
    let policy = quoted(dice, "patch");
    let anchor = dice.one(&["", "&v ", "!!str "]);
    match dice.roll(3) {
        0 => {
            let _ = writeln!(
                text,
                "vars: {{v: {{value: {anchor}{value}, update: {policy}}}, other: \"1.0.0\"}}{}",
                comment(dice)
            );
        }
        1 => {
            let _ = writeln!(
                text,
                "vars:{}\n  v:{}\n    update: {policy}{}\n    value:   {anchor}{value}{}\n  other: 'x1.0.0'",
                comment(dice),
                comment(dice),
                comment(dice),
                comment(dice)
            );
        }
        _ => {
            let _ = writeln!(
                text,
                "vars:\n    other: a1.0.0\n    v: {{update: {policy},{}\n        value: {anchor}{value} }}",
                comment(dice)
            );
        }
    }
    text += "images:\n";
    let _ = writeln!(text, "  - REG/r{at}/a:${{v}}{}", comment(dice));
    let own = slot("v2.3.4-alpine3.20", "v2.9.0-alpine3.21");
    let reference = format!("REG/r{at}/b:{own}");
    match dice.roll(5) {
        0 => {
            let reference = quoted(dice, &reference);
            let _ = writeln!(
                text,
                "  - {{ref: {reference}, update: minor}}{}",
                comment(dice)
            );
        }
        1 => {
            let reference = quoted(dice, &reference);
            let _ = writeln!(
                text,
                "  - update: \"^2\"{}\n    ref: {reference}{}\n    platforms: [linux/amd64]",
                comment(dice),
                comment(dice)
            );
        }
        2 => {
            let _ = writeln!(
                text,
                "  -   ref: >-\n        {reference}\n      update: minor{}",
                comment(dice)
            );
        }
        3 => {
            let _ = writeln!(
                text,
                "  - ref: |-\n      {reference}\n    update: minor{}",
                comment(dice)
            );
        }
        _ => {
            let (old, new) = &digests[at];
            let digest = slot(old, new);
            let reference = quoted(dice, &format!("REG/r{at}/c:{}", slot("1.0.0", "1.1.0")));
            match dice.roll(2) {
                0 => {
                    let _ = writeln!(
                        text,
                        "  - {{ref: {reference}, digest: \"{digest}\", update: minor}} # {old}"
                    );
                }
                _ => {
                    let _ = writeln!(
                        text,
                        "  - ref: \"REG/r{at}/c:{}@{digest}\" # {old}\n    update: minor",
                        slot("1.0.0", "1.1.0")
                    );
                }
            }
        }
    }
    let _ = writeln!(
        text,
        "  # - REG/r{at}/a:1.0.0\n  - REG/r{at}/a:2.0.0{}",
        comment(dice)
    );
    text += dice.one(&["", "# the end", "...\n", "\n\n  \n"]);
    if dice.roll(4) == 0 {
        text.replace('\n', "\r\n")
    } else {
        text
    }
}

#[test]
fn only_the_bytes_of_versions_change_in_manifests_of_any_notation() {
    let up = Upstream::new();
    let count = rounds(60);
    let digests: Vec<(String, String)> = (0..count)
        .map(|at| {
            for tag in ["1.0.0", "1.0.7", "1.1.0", "2.0.0"] {
                up.put(&format!("r{at}/a"), tag, 1);
            }
            for tag in [
                "v2.3.4-alpine3.20",
                "v2.9.0-alpine3.21",
                "v2.9.1",
                "v3.0.0-alpine3.21",
            ] {
                up.put(&format!("r{at}/b"), tag, 1);
            }
            let name = format!("r{at}/c");
            (
                up.put(&name, "1.0.0", 1),
                up.put(&name, "1.1.0", 2 + at as u64),
            )
        })
        .collect();
    let mut dice = Dice(20_261_122);
    let templates: Vec<String> = (0..count)
        .map(|at| up.here(&template(&mut dice, at, &digests)))
        .collect();
    for (number, batch) in templates.chunks(BATCH).enumerate() {
        let name = |at: usize| format!("batch-{number}/{at}.yaml");
        for (at, template) in batch.iter().enumerate() {
            up.place.write(&name(at), rendered(template, false));
        }
        let folder = format!("batch-{number}");
        let plain = [
            "--plain-http",
            &up.faults.address,
            "--store",
            "store",
            "--lock",
            &format!("{folder}.lock"),
        ];
        up.place
            .json(0, &[&["update", "-f", &folder], &plain[..]].concat());
        for (at, template) in batch.iter().enumerate() {
            let found = up.place.read(&name(at));
            let expected = rendered(template, true);
            assert_eq!(
                found,
                expected,
                "manifest {} was\n{}",
                number * BATCH + at,
                rendered(template, false)
            );
            assert_ne!(found, rendered(template, false));
        }
    }
}
