//! Compares the packages that `base: minimal` assumes with those that debootstrap installs.

use super::{Offered, Suite, suites};
use crate::support::apt::AptUpstream;
use crate::support::{need, run};
use std::collections::BTreeSet;
use std::process::Command;

/// Returns the packages that debootstrap installs from `suite` into a minimal root, or `None`
/// without debootstrap. Afterwards, `up` offers the suite.
pub fn minimal_root(up: &AptUpstream, suite: &Suite) -> Option<BTreeSet<String>> {
    if !need(&["debootstrap"]) {
        return None;
    }
    let Suite { name, text, .. } = suite;
    up.place.write(
        &format!("up/r/dists/{name}/main/binary-amd64/Packages"),
        text,
    );
    let head = format!("Suite: {name}\nCodename: {name}\nComponents: main\nArchitectures: amd64\n");
    up.release(&format!("dists/{name}"), &head);
    let mut print = Command::new("debootstrap");
    print.args([
        "--print-debs",
        "--variant=minbase",
        "--arch=amd64",
        "--no-check-gpg",
        name,
    ]);
    print.arg(up.place.path("root")).arg(up.url());
    let out = String::from_utf8(run(&mut print)).unwrap();
    Some(out.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn a_minimal_machine_has_what_debootstrap_installs() {
    let Some(suite) = suites().and_then(<[Suite]>::first) else {
        return;
    };
    let Some(up) = AptUpstream::new() else { return };
    let Some(debs) = minimal_root(&up, suite) else {
        return;
    };
    let place = &up.place;
    assert!(
        debs.contains("apt") && debs.contains("dpkg") && debs.len() > 50,
        "{debs:?}"
    );

    // packages that the minimal machine has are not mirrored; the other requested packages, such as
    // perl, are mirrored
    let all = Offered::by(std::slice::from_ref(suite)).own;
    let beside = [
        "perl",
        "usrmerge",
        "usr-is-merged",
        "gnupg",
        "ca-certificates",
        "mawk",
        "init",
    ];
    let beside = beside
        .into_iter()
        .filter(|name| all.contains_key(name))
        .map(str::to_owned);
    let requested: BTreeSet<String> = debs.iter().cloned().chain(beside).collect();
    let list: Vec<String> = requested.iter().map(|name| format!("'{name}'")).collect();
    let mut taken = Vec::new();
    for base in ["none", "minimal"] {
        up.wants(
            &suite.name,
            &list.join(", "),
            &format!(", architectures: [amd64], base: {base}"),
        );
        up.lock(0, &["--lock", "base.lock"]);
        let names = crate::support::apt::locked(&place.read("base.lock"));
        let names = names
            .iter()
            .map(|text| text.split(' ').next().unwrap().to_owned());
        taken.push(names.collect::<BTreeSet<String>>());
    }
    let [whole, lacking] = &taken[..] else {
        unreachable!()
    };
    assert_eq!(whole - &debs, *lacking, "debootstrap installs {debs:?}");
}
