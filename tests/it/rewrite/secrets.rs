//! The output of `rewrite` and `audit` shows references. It shows neither the values of Secrets
//! nor, outside of diffs, the text after a reference.

use super::{Place, err, out};
use base64::Engine as _;

#[test]
fn a_diff_hides_the_values_of_secrets() {
    let secret = "kind: Secret\nstringData:\n  password: not-a-real-secret\n  values: |\n    key: hidden-too\n    image: nginx:1.27\n\
                  metadata: {annotations: {a: nginx:1.27}}\n";
    let place = Place::new(&[("s.yaml", secret)]);
    let output = place.run(&["s.yaml", "--diff"], 0);
    let printed = out(&output) + &err(&output);
    assert!(
        !printed.contains("not-a-real") && !printed.contains("hidden-too"),
        "{printed}"
    );
    assert!(
        printed.contains("-    ***\n")
            && printed.contains("+    *** (changed)\n")
            && printed.contains("+metadata: {annotations: {a: 172.20.0.2:5000/"),
        "{printed}"
    );
    let template = format!("{{{{ if x }}}}\n{secret}");
    place.put("t.yaml", &template);
    let printed = out(&place.run(&["t.yaml", "--diff"], 0));
    assert!(
        !printed.contains("not-a-real")
            && !printed.contains("hidden-too")
            && printed.contains("(changed)"),
        "{printed}"
    );
}

/// The output of `rewrite --diff`, `rewrite --check` and `audit` for `file`.
fn printed(place: &Place, file: &str) -> String {
    let runs = [
        &[file, "--diff"][..],
        &[file, "--check"],
        &[file, "--check", "--output", "json"],
    ];
    let mut printed: String = runs
        .iter()
        .map(|args| {
            place
                .command(args)
                .args(["--site", "site.yaml"])
                .output()
                .unwrap()
        })
        .map(|output| out(&output) + &err(&output))
        .collect();
    let mut audit = assert_cmd::Command::new(env!("CARGO_BIN_EXE_landfall"));
    let audit = audit
        .env_clear()
        .current_dir(place.path("."))
        .args(["audit", file])
        .output()
        .unwrap();
    printed += &(out(&audit) + &err(&audit));
    printed
}

#[test]
fn text_after_a_reference_is_not_printed() {
    let command = "podman run quay.io/prometheus/node-exporter:$TAG --password hunter2";
    let place = Place::new(&[("run.sh", &format!("{command}\nctr pull nginx:1.27\n"))]);
    for args in [&["run.sh", "--check"][..], &["run.sh", "-o", "out"]] {
        let output = place
            .command(args)
            .args(["--site", "site.yaml"])
            .output()
            .unwrap();
        let printed = out(&output) + &err(&output);
        assert!(
            printed.contains("left quay.io/prometheus/node-exporter:$TAG:"),
            "{printed}"
        );
        assert!(!printed.contains("hunter2"), "{printed}");
    }
    place.put(
        "s.yaml",
        &format!("kind: Secret\nstringData:\n  run.sh: {command}\n  image: nginx:1.27\n"),
    );
    for file in ["s.yaml", "run.sh"] {
        let printed = printed(&place, file)
            .replace(&format!("-{command}"), "")
            .replace(&format!(" {command}"), "");
        assert!(
            printed.contains("node-exporter:$TAG") && !printed.contains("hunter2"),
            "{file}: {printed}"
        );
    }
}

#[test]
fn a_diff_masks_secrets_in_many_positions() {
    let inner = "kind: Secret\nstringData: {password: hunter2, image: nginx:1.27}\n";
    let encoded = base64::engine::general_purpose::STANDARD.encode(inner);
    let json = "{\"kind\":\"Secret\",\"stringData\":{\"a\":\"hunter2 nginx:1.27\"}}";
    let documents = [
        ("list", "kind: SecretList\nitems:\n- metadata: {name: x}\n  stringData:\n    a: hunter2\n    b: nginx:1.27\n".into()),
        ("comment", "kind: Secret\n# pw hunter2\nstringData:\n  a: nginx:1.27 # hunter2\n".into()),
        ("template", "{{ if .x }}\nkind: Secret # the secret\nstringData:\n  a: hunter2\n  b: nginx:1.27\n{{ end }}\n".into()),
        ("call", "{{ if .x }}\nkind: Secret\nstringData:\n  b: nginx:1.27\n{{ .k | pw \"hunter2\" }}\n{{ end }}\n".into()),
        ("kustomize", "secretGenerator:\n- name: x\n  literals:\n  - pw=hunter2\n  - image=nginx:1.27\n".into()),
        ("anchor", "x: &x {a: hunter2, b: nginx:1.27}\nkind: Secret\nstringData: *x\n".into()),
        ("split", "kind: Secret\nstringData: {repository: docker.io/nginx, tag: '1.27', password: hunter2}\n".into()),
        ("alias", "kind: List\nitems:\n- {kind: &k Secret}\n- kind: *k\n  stringData: {a: hunter2, b: nginx:1.27}\n".into()),
        ("block", format!("a: |\n{}", inner.replace("kind", "  kind").replace("string", "  string"))),
        ("applied", format!("metadata: {{annotations: {{l: '{json}'}}}}\nx: nginx:1.27\n")),
        ("encoded", format!("userData: {encoded}\n")),
    ];
    let place = Place::new(&[]);
    for (name, text) in documents {
        let file = format!("{name}.yaml");
        place.put(&file, &text);
        let printed = printed(&place, &file);
        assert!(
            printed.contains("+++ b/") && printed.contains("***"),
            "{name}: {printed}"
        );
        assert!(
            !printed.contains("hunter2") && !printed.contains(&encoded),
            "{name}: {printed}"
        );
    }
}

#[test]
fn the_password_of_a_url_is_not_printed() {
    let text = "resources:\n- https://bot:hunter2@git.example/a.git//k?ref=v1\n\
                - https://bot:hunter2@h.example/b\n- nginx:1.27\n";
    let place = Place::new(&[("k.yaml", text)]);
    let lock = place.read("landfall.lock");
    let url = "https://git.example/a.git";
    let file = format!(
        "files:\n- {{name: '{url}', digest: {}, size: 1}}\n",
        super::digest(url)
    );
    place.put("landfall.lock", &(lock + &file));
    place.put(
        "site.yaml",
        &format!("{}files: http://f.example\n", super::SITE),
    );
    let printed = printed(&place, "k.yaml");
    for part in [
        "https://***@git.example/a.git//k?ref=v1 -> http://f.example/git.example/a.git//k?ref=v1",
        "-- https://***@git.example/a.git//k?ref=v1\n",
        " - https://***@h.example/b\n",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("hunter2"), "{printed}");
}
