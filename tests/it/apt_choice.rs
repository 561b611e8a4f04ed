//! Compares landfall's selection of packages with apt's.

use crate::support::apt::{Apt, AptUpstream, deb};
use crate::support::run;

/// Publishes `packages` in the suite `stable`. Returns an apt whose source is this suite, and whose
/// installed packages are those in `status`.
fn machine(up: &AptUpstream, packages: &[crate::support::apt::Deb<'_>], status: &str) -> Apt {
    up.build("pool/stable", packages);
    up.suite("stable", "");
    let source = format!(
        "deb [signed-by={}] {} stable main\n",
        up.place.path("key.asc").display(),
        up.url()
    );
    up.place.write("status", status);
    let apt = Apt::new(&up.place, "apt", &source, status);
    run(&mut apt.get(&up.place, &["update"]));
    apt
}

#[test]
fn earlier_requests_decide_between_alternatives_of_later_ones() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    // these alternatives are from lxc and docker.io of Debian 12
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
    let lxc_first = [
        "docker.io 1",
        "iptables 1",
        "libedit2 1",
        "lxc 1",
        "nftables 1",
    ];
    let docker_first = ["docker.io 1", "iptables 1", "lxc 1"];
    for (requested, chosen) in [
        (["lxc", "docker.io"], &lxc_first[..]),
        (["docker.io", "lxc"], &docker_first[..]),
        // a package that is listed twice counts at its first position
        (["docker.io, lxc", "docker.io"], &docker_first[..]),
    ] {
        up.wants("stable", &requested.join(", "), ", base: none");
        up.lock(0, &[]);
        assert_eq!(up.locked(), chosen, "{requested:?}");
        let words: Vec<&str> = requested.iter().flat_map(|text| text.split(", ")).collect();
        assert_eq!(
            apt.simulate(place, false, &words).unwrap(),
            chosen,
            "{requested:?}"
        );
    }
    // `doctor packages` keeps the order of the requests, too
    up.wants("stable", "lxc, docker.io", ", base: none");
    up.lock(0, &[]);
    place.ok(&["pull"]);
    place.write(
        "bare",
        "Package: dpkg\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n\n",
    );
    let printed = place.json(
        0,
        &[
            "doctor",
            "packages",
            "--status",
            "bare",
            "--lock",
            "landfall.lock",
        ],
    );
    assert_eq!(
        printed["items"].as_array().unwrap().len(),
        lxc_first.len(),
        "{printed}"
    );

    // if several files have an entry with the same name, the order of the files is kept
    let source = format!(
        "url: '{}', suite: stable, components: [main], key: key.asc, base: none",
        up.url()
    );
    let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
    for install in ["lxc", "docker.io"] {
        let entry = format!("- apt: {{name: n, {source}, install: [{install}]}}\n");
        place.write(&format!("{install}.yaml"), format!("{head}{entry}"));
    }
    for (files, chosen) in [
        (["lxc", "docker.io"], &lxc_first[..]),
        (["docker.io", "lxc"], &docker_first[..]),
    ] {
        let [first, second] = files.map(|name| format!("{name}.yaml"));
        place.json(
            0,
            &["lock", "-f", &first, "-f", &second, "--lock", "joined.lock"],
        );
        assert_eq!(
            crate::support::apt::locked(&place.read("joined.lock")),
            chosen,
            "{files:?}"
        );
    }
}

#[test]
fn an_impossible_installation_is_reported_with_all_reasons() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let apt = machine(
        &up,
        &[
            deb("python3", "3.11", "Multi-Arch: allowed\n"),
            deb("mta-a", "1", "Provides: mailer\n"),
            deb("mta-b", "1", "Provides: mailer\n"),
            deb("script", "1", "Depends: tool:any\n"),
            deb("tool", "1", ""),
            deb("either", "1", "Depends: left | right\n"),
            deb("left", "1", "Depends: gone-left\n"),
            deb("right", "1", "Depends: tool (>= 9)\n"),
            deb("new-style", "1", "Depends: library (>= 2)\n"),
            deb("library", "1", ""),
        ],
        "",
    );
    up.build("pool/back", &[deb("library", "2", "")]);
    up.suite("back", "NotAutomatic: yes\n");
    let source = |suite: &str| {
        format!(
            "{{url: '{}', suite: {suite}, components: [main], key: key.asc}}",
            up.url()
        )
    };
    let sources = format!(
        "base: none, sources: [{}, {}]",
        source("stable"),
        source("back")
    );
    let refused = |install: &str| {
        up.manifest(&format!("name: n, {sources}, install: [{install}]"));
        up.lock(1, &["--lock", "refused.lock"])["items"][0]["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (install, why) in [
        (
            "mailer",
            "mailer is a virtual package, provided by mta-a, mta-b; request one of them",
        ),
        (
            "script",
            "script 1 needs tool:any, and the sources have tool 1",
        ),
        (
            "'tool:any'",
            "no source has tool with `Multi-Arch: allowed`; request tool",
        ),
        (
            "either",
            "either 1 needs left | right, which could be left or right; \
             left 1 needs gone-left, which no source offers; \
             right 1 needs tool (>= 9), and the sources have tool 1",
        ),
        (
            "new-style",
            "new-style 1 needs library (>= 2); library 2 would satisfy it, but apt selects \
             library 1 or no version: request library=2 too",
        ),
    ] {
        assert_eq!(refused(install), why);
    }
    // the suggested request works, and apt reads `:any` the same way
    up.manifest(&format!(
        "name: n, {sources}, install: [new-style, library=2]"
    ));
    up.lock(0, &[]);
    assert_eq!(up.locked(), ["library 2", "new-style 1"]);
    up.wants("stable", "'python3:any'", ", base: none");
    up.lock(0, &["--lock", "any.lock"]);
    let chosen = crate::support::apt::locked(&place.read("any.lock"));
    assert_eq!(
        (chosen, apt.simulate(place, false, &["python3:any"])),
        (vec!["python3 3.11".into()], Ok(vec!["python3 3.11".into()]))
    );
    apt.simulate(place, false, &["mailer"]).unwrap_err();
}

#[test]
fn flat_suites_can_be_written_as_in_apt_sources() {
    let Some(up) = AptUpstream::new() else { return };
    up.build("flat", &[deb("app", "1", "")]);
    up.flat("flat", "");
    let wants = |url: &str, suite: &str| {
        up.manifest(&format!(
            "url: '{}{url}', suite: '{suite}', key: key.asc, install: [app], base: none",
            up.url()
        ));
    };
    for (url, suite) in [
        ("/flat", "./"),
        ("/flat", "/"),
        ("", "./flat/"),
        ("", "flat/"),
    ] {
        wants(url, suite);
        up.lock(0, &["--refresh"]);
        assert_eq!(up.locked(), ["app 1"], "{suite}");
        assert!(!up.place.read("landfall.lock").contains("./"), "{suite}");
    }
    wants("/flat", ".");
    let printed = up.lock(2, &[]).to_string();
    assert!(
        printed.contains("`.` is not a suite") && printed.contains("`/` for the URL itself"),
        "{printed}"
    );
}
