//! What is chosen for a machine of apt, beside what apt itself chooses.

use crate::support::apt::{Apt, AptUpstream, deb};
use crate::support::run;

/// A repository of the packages in `packages`, its apt with the status `status`, and a manifest's words for that machine.
fn machine(up: &AptUpstream, packages: &[crate::support::apt::Deb<'_>], status: &str) -> Apt {
    up.build("pool/stable", packages);
    up.suite("stable", "");
    let source = format!("deb [signed-by={}] {} stable main\n", up.place.path("key.asc").display(), up.url());
    up.place.write("status", status);
    let apt = Apt::new(&up.place, "apt", &source, status);
    run(&mut apt.get(&up.place, &["update"]));
    apt
}

#[test]
fn what_is_asked_for_first_decides_for_what_follows() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    // as lxc and docker.io of Debian 12 have it
    let apt = machine(
        &up,
        &[
            deb("lxc", "1", "Depends: nftables | iptables\n"),
            deb("docker.io", "1", "Depends: iptables\n"),
            deb("iptables", "1", ""),
            deb("nftables", "1", "Depends: libedit2\n"),
            deb("libedit2", "1", ""),
        ],
        "",
    );
    let lxc_first = ["docker.io 1", "iptables 1", "libedit2 1", "lxc 1", "nftables 1"];
    let docker_first = ["docker.io 1", "iptables 1", "lxc 1"];
    for (asked, chosen) in [
        (["lxc", "docker.io"], &lxc_first[..]),
        (["docker.io", "lxc"], &docker_first[..]),
        // each once, at its first mention
        (["docker.io, lxc", "docker.io"], &docker_first[..]),
    ] {
        up.wants("stable", &asked.join(", "), ", base: none");
        up.lock(0, &[]);
        assert_eq!(up.locked(), chosen, "{asked:?}");
        let words: Vec<&str> = asked.iter().flat_map(|text| text.split(", ")).collect();
        assert_eq!(apt.simulate(place, false, &words).unwrap(), chosen, "{asked:?}");
    }
    // the node that is tried in thought asks in this order too
    up.wants("stable", "lxc, docker.io", ", base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.write("bare", "Package: dpkg\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n\n");
    let told = place.json(0, &["doctor", "packages", "--status", "bare", "--lock", "landfall.lock"]);
    assert_eq!(told["items"].as_array().unwrap().len(), lxc_first.len(), "{told}");

    // entries of one name in several files ask in the order of the files
    let source = format!("url: '{}', suite: stable, components: [main], key: key.asc, base: none", up.url());
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    for install in ["lxc", "docker.io"] {
        let entry = format!("- apt: {{name: n, {source}, install: [{install}]}}\n");
        place.write(&format!("{install}.yaml"), format!("{head}{entry}"));
    }
    for (files, chosen) in [(["lxc", "docker.io"], &lxc_first[..]), (["docker.io", "lxc"], &docker_first[..])]
    {
        let [first, second] = files.map(|name| format!("{name}.yaml"));
        place.json(0, &["lock", "-f", &first, "-f", &second, "--lock", "joined.lock"]);
        assert_eq!(crate::support::apt::locked(&place.read("joined.lock")), chosen, "{files:?}");
    }
}
