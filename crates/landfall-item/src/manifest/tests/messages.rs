//! The messages for errors in manifests and lists.

use super::*;

#[test]
fn an_error_shows_its_position_its_line_and_a_fix() {
    assert_eq!(
        fault(
            "platforms: [linux/amd64]\nimages:\n  - registry.k8s.io/pause:3.10.1\n  - quay.io/a/b\n"
        ),
        "\
m.yaml:6:5: error: `quay.io/a/b` names no version
  |
6 |   - quay.io/a/b
  |     ^^^^^^^^^^^
  |
  = help: add the tag or digest, as in quay.io/a/b:v1.2.3"
    );
    assert_eq!(
        fault("images: []\nfiles:\n- url: https://e.org/x\n  checksums: sha256:0\n"),
        "\
m.yaml:6:3: error: unknown key `checksums`
  |
6 |   checksums: sha256:0
  |   ^^^^^^^^^
  |
  = help: did you mean `checksum`?"
    );
    assert_eq!(
        fault("vars: {kubernetes: v1.33.4}\nfiles:\n- url: \"https://e.org/${kuberntes}/x\"\n"),
        "\
m.yaml:5:23: error: the variable `kuberntes` is not defined
  |
5 | - url: \"https://e.org/${kuberntes}/x\"
  |                       ^^^^^^^^^^^^
  |
  = help: did you mean `${kubernetes}`?"
    );
}

#[test]
fn a_wrong_age_is_one_error_at_its_value() {
    let error = fault("images: []\nminAge: 3x\n");
    assert!(
        error.starts_with("m.yaml:4:9: error: `3x` is not an age"),
        "{error}"
    );
    assert_eq!(error.matches("error: ").count(), 1, "{error}");
    let nested = fault("images:\n- {ref: 'r.test/a:1.0.0', update: {policy: patch, minAge: 3x}}\n");
    assert!(
        nested.starts_with("m.yaml:4:59: error: `3x` is not an age"),
        "{nested}"
    );
}

#[test]
fn faults_of_variables() {
    assert_eq!(
        brief("vars: {a: 1.30}"),
        "m.yaml:3:11: error: YAML reads `1.30` as a number, which may change how it is written | \
         quote it: \"1.30\""
    );
    assert!(brief("vars: {a: [x, true]}").contains("3:15: error: YAML reads `true` as a boolean"));
    assert!(brief("vars: {a: []}").contains("3:11: error: the variable `a` has no value"));
    assert!(brief("vars: {a: }").contains("error: the variable `a` has no value"));
    assert!(brief("vars: {a: [x, x]}").contains("3:15: error: `a` has the value `x` twice"));
    assert!(brief("vars: {a: {b: c}}").contains("a text, a list of texts, or a mapping"));
    assert!(brief("vars: {url: x}").contains("3:8: error: `${url}` is a file's own URL"));
    assert!(brief("vars: {a: '${b}', b: c}").contains("cannot use other variables"));
    assert!(brief("vars: {'a b': c}").contains("3:8: error: `a b` is not a valid name"));
    assert!(brief("vars: {a: b, a: c}").contains("3:14: error: the key `a` is repeated"));
    assert!(brief("images: ['a:${x']").contains("3:13: error: a `${` without a closing `}`"));
    assert!(
        brief("files: [{url: 'https://e.org/${url}'}]").contains("only available in `checksum`")
    );
    assert!(brief("images: ['a:${x}']").contains("set it in this file, as in `vars: {x: …}`"));
    let many = format!(
        "vars: {{{}}}",
        ["a", "b", "c", "d", "e"]
            .map(|v| format!("{v}: [p,q,r,s,t,u,v]"))
            .join(", ")
    );
    assert!(
        brief(&format!(
            "{many}\nimages: ['x:${{a}}${{b}}${{c}}${{d}}${{e}}']"
        ))
        .contains("too many items")
    );
}

#[test]
fn an_unknown_variable_is_reported_in_fields_of_charts_and_in_keys_of_files() {
    let chart = |more: &str| {
        let head = "charts: [{ref: 'oci://e.org/c:1.0.0', images: discover";
        brief(&format!("{head}, {more}}}]"))
    };
    let file = "files: [{url: 'https://e.org/x', key: 'keys/${no}'}]";
    let messages = [
        chart("platforms: ['linux/${no}']"),
        chart("values: ['${no}.yaml']"),
        chart("values: [{a: [{b: '${no}'}]}]"),
        brief(file),
    ];
    for message in messages {
        assert!(
            message.contains("the variable `no` is not defined"),
            "{message}"
        );
    }
}

#[test]
fn faults_of_images() {
    assert!(brief("images: ['https://quay.io/a:1']").contains("without a scheme"));
    assert!(
        brief("images: [a:1]\nplatforms: [linux/x86_64]")
            .contains("4:13: error: 'linux/x86_64' is not a platform")
    );
    assert!(
        brief("images: [{ref: a:1, platforms: [linus/amd64]}]")
            .contains("3:33: error: 'linus/amd64'")
    );
    assert!(
        brief("images: [{ref: a:1, digest: sha256:00}]")
            .contains("3:29: error: digest 'sha256:00'")
    );
    assert!(
        brief("images: [{digest: sha256:00}]")
            .contains("an image needs `ref`, or `repo` and `select`")
    );
    assert!(
        brief("images: [[a]]")
            .contains("this should be an image reference, or a mapping with `ref` or `repo`")
    );
    assert_eq!(
        brief("images:\n- a:1\n- docker.io/library/a:1\n"),
        "m.yaml:5:3: error: docker.io/library/a:1 is listed twice in this file; first at \
         m.yaml:4:3 | remove one of the two"
    );
    assert!(
        brief("vars: {p: [linux/amd64, linux/arm64]}\nimages: [{ref: a:1, platforms: ['${p}']}]")
            .contains("this entry expands to docker.io/library/a:1 more than once")
    );
}

#[test]
fn faults_of_files() {
    let file = |more: &str| brief(&format!("files: [{{url: 'https://e.org/x'{more}}}]"));
    assert!(brief("files: [{url: 'ftp://e.org/x'}]").contains("over http or https, not over ftp"));
    assert!(brief("files: [{url: e.org/x}]").contains("this is not a URL"));
    assert!(brief("files: [{url: 'https://e.org/x/'}]").contains("that of a folder"));
    assert!(brief("files: [{url: 'https://e.org/x#y'}]").contains("a `#` part"));
    assert!(brief("files: [{url: 'https://e.org/x y'}]").contains("white space"));
    assert!(file(", checksum: 'md5:00'").contains("unsupported algorithm"));
    assert!(
        file(&format!(", checksum: '{}'", digest("x").hex()))
            .contains(&format!("write {}", digest("x")))
    );
    assert!(file(", checksum: x").contains("is not a checksum"));
    assert!(file(", mode: '0799'").contains("3:40: error: `0799` is not a file mode"));
    assert!(
        file(", also: ['https://E.org/x']").contains("https://e.org/x is already a URL of this")
    );
    let twice = brief(
        "files: [{url: 'https://e.org/x', also: ['https://e.org/z']}, {url: 'https://e.org/z'}]",
    );
    assert!(
        twice.contains(
            "https://e.org/z is a URL of this file and of https://e.org/x at m.yaml:3:15"
        ),
        "{twice}"
    );
}

#[test]
fn a_password_in_a_url_is_refused_and_not_shown() {
    let fault = fault("vars: {t: s3cret}\nfiles: [{url: 'https://joe:s3cr3t@e.org/x'}]\n");
    assert!(
        fault.contains("m.yaml:4:15: error: a URL must not contain a user name or password"),
        "{fault}"
    );
    assert!(
        fault.contains("https://***@e.org/x") && !fault.contains("s3cr3t"),
        "{fault}"
    );
}

#[test]
fn faults_of_missing_endpoints_exclude_packages_and_lists() {
    let lost = |until: &str| {
        brief(&format!(
            "missing: [{{ref: a:1, reason: r, until: {until}}}]"
        ))
    };
    for until in [
        "2027-02-30",
        "31.01.2027",
        "2027-1-31",
        "20270131",
        "2027-01-31T00:00",
    ] {
        assert!(
            lost(until).contains("is not a date | write the last day"),
            "{}",
            lost(until)
        );
    }
    assert!(
        brief("missing: [{ref: a, reason: r, until: 2027-01-31}]").contains("names no version")
    );
    assert!(
        brief("missing: [{ref: a:1, reason: ' ', until: 2027-01-31}]")
            .contains("3:30: error: this is empty")
    );
    let end = |host: &str, port: &str| {
        brief(&format!(
            "endpoints: [{{host: '{host}', port: {port}, why: w}}]"
        ))
    };
    assert!(end("https://e.org", "443").contains("write only the host"));
    assert!(end("e.org:443", "443").contains("neither a host name nor an address"));
    assert!(end("e.org", "0").contains("0 is not a valid port"));
    assert!(end("e.org", "70000").contains("this should be a whole number"));
    let role = brief("endpoints: [{host: e.org, port: 443, why: w, from: [seed, KKP User]}]");
    assert!(
        role.contains("`KKP User` is not a role | write lower-case letters, digits and dashes"),
        "{role}"
    );
    assert_eq!(
        brief("images: [quay.io/example/app:1]\nexclude: [quay.io/example/ap]"),
        "m.yaml:4:11: error: no item is named quay.io/example/ap, so this excludes nothing \
         | did you mean quay.io/example/app? Otherwise remove it"
    );
    assert!(
        brief("images: [quay.io/example/app:1]\nexclude: [quay.io/example]")
            .contains("a prefix is not enough")
    );
    let yum = brief("packages: [{yum: {url: 'https://h/x', install: [a]}}]");
    assert!(
        yum.contains("3:18: error: a source needs `url` and `key`"),
        "{yum}"
    );
    assert!(
        brief("image: []").contains("3:1: error: unknown key `image` | did you mean `images`?")
    );
    assert!(brief("lists: [{format: images.txt, file: x}]").contains("did you mean `images-txt`?"));
    assert!(
        brief("lists: [{format: kkp, file: gone.log}]")
            .contains("3:29: error: cannot read gone.log: No such file")
    );
}

#[test]
fn the_source_of_a_list_is_a_file() {
    for (from, message) in [
        ("https://e.org/l.txt", None),
        ("e.org/l.txt", Some("this is not a URL of a file")),
        (
            "oci://e.org/chart:1.0.0",
            Some("this is not a URL of a file"),
        ),
        (
            "git+https://e.org/r.git",
            Some("this is not a URL of a file"),
        ),
    ] {
        let list = format!("lists: [{{format: images-txt, file: l.txt, from: '{from}'}}]");
        let folder = folder(&[("m.yaml", &list), ("l.txt", "e.org/a:1\n")]);
        let fault = load_files(folder.path(), &["m.yaml"])
            .err()
            .unwrap_or_default();
        assert_eq!(fault.is_empty(), message.is_none(), "{from}: {fault}");
        assert!(
            fault.contains(message.unwrap_or_default()),
            "{from}: {fault}"
        );
    }
}

#[test]
fn a_list_that_cannot_be_read_does_not_hide_the_faults_of_other_lists() {
    let lists = "lists:\n- {format: images-txt, file: gone.txt}\n\
                 - {format: images-txt, file: l.txt, from: e.org}";
    let folder = folder(&[("m.yaml", lists), ("l.txt", "e.org/a:1\n")]);
    let fault = load_files(folder.path(), &["m.yaml"]).unwrap_err();
    for part in [
        "m.yaml:4:30: error: cannot read gone.txt",
        "m.yaml:5:43: error: this is not a URL of a file",
    ] {
        assert!(fault.contains(part), "{part}: {fault}");
    }
}

#[test]
fn faults_in_a_list_are_reported_at_their_position_in_the_list() {
    let folder = folder(&[
        ("m.yaml", "lists: [{format: images-txt, file: lists/a.txt}]"),
        ("lists/a.txt", "# list\r\n\r\nquay.io/a/b\r\n"),
    ]);
    let fault = load_files(folder.path(), &["m.yaml"]).unwrap_err();
    assert!(
        fault.starts_with("lists/a.txt:3:1: error: `quay.io/a/b` names no version"),
        "{fault}"
    );
}

#[test]
fn contradictions_name_both_positions() {
    let a = digest("a");
    let b = digest("b");
    let clash = |first: &str, second: &str| {
        let folder = folder(&[("a.yaml", first), ("b.yaml", second)]);
        load_files(folder.path(), &["a.yaml", "b.yaml"])
            .unwrap_err()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        clash(
            &format!("images: ['x:1@{a}']"),
            &format!("images: ['x:1@{b}']")
        ),
        format!(
            "b.yaml:3:10: error: the digest of docker.io/library/x:1 is {b} here, but {a} at \
             a.yaml:3:10"
        )
    );
    assert_eq!(
        clash("images: [x:1]", "platforms: [linux/amd64]\nimages: [x:1]"),
        "b.yaml:4:10: error: the list of platforms of docker.io/library/x:1 is linux/amd64 here, \
         but all at a.yaml:3:10"
    );
    let chart =
        |more: &str| format!("charts: [{{ref: 'oci://r.test/app:1.0.0', images: discover{more}}}]");
    assert!(
        clash(&chart(""), &chart(", platforms: [linux/arm64]"))
            .contains("oci://r.test/app:1.0.0 is linux/arm64 here, but all at a.yaml:3:")
    );
    assert!(
        clash(&chart(""), &chart(", referrers: false"))
            .contains("the `referrers` of oci://r.test/app:1.0.0 is false here, but true at")
    );
    let file = |more: &str| format!("files: [{{url: 'https://e.org/x', {more}}}]");
    assert!(
        clash(
            &file(&format!("checksum: '{a}'")),
            &file("checksum: '${url}.sha256'")
        )
        .contains(&format!(
            "the checksum of https://e.org/x is https://e.org/x.sha256 here, but {a} at a.yaml:3:15"
        ))
    );
    assert!(
        clash(&file("mode: '0755'"), &file("mode: '0644'")).contains("is 0644 here, but 0755 at")
    );
    let lost = |until: &str| format!("missing: [{{ref: x:1, reason: r, until: {until}}}]");
    assert!(
        clash(&lost("2027-01-31"), &lost("2028-01-31"))
            .contains("is 2028-01-31 here, but 2027-01-31")
    );
}

#[test]
fn a_duplicate_in_one_file_is_found_even_if_another_file_has_the_item() {
    let folder = folder(&[
        ("a.yaml", "images: [x:1]"),
        ("b.yaml", "images: [x:1, x:1]"),
    ]);
    let fault = load_files(folder.path(), &["a.yaml", "b.yaml"]).unwrap_err();
    assert!(
        fault.starts_with(
            "b.yaml:3:15: error: docker.io/library/x:1 is listed twice in this file; first at \
             b.yaml:3:10"
        ),
        "{fault}"
    );
    assert_eq!(
        names(&load_files(folder.path(), &["a.yaml", "a.yaml"]).unwrap()).len(),
        1
    );
}
