//! Merging into YAML text.

use super::MergedText;
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

const FIRST: ObjectPosition = ObjectPosition {
    document: 0,
    item: None,
};

/// Merges values of which all texts are facts of the site.
fn merged(text: &str, values: &str) -> Result<MergedText, MergeError> {
    let values: Mapping = serde_yaml::from_str(values).unwrap();
    let mut facts = SiteFacts::default();
    add_texts(&Value::Mapping(values.clone()), &mut facts.wholes);
    let rules = MergeRules {
        facts: &facts,
        ..MergeRules::default()
    };
    merge(text, FIRST, &values, rules)
}

fn add_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Mapping(mapping) => mapping.values().for_each(|value| add_texts(value, texts)),
        Value::Sequence(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::String(text) => texts.push(text.clone()),
        other => texts.push(serde_json::to_string(other).unwrap()),
    }
}

/// Merges values that are no facts of the site.
fn merged_names(text: &str, values: &str) -> Result<MergedText, MergeError> {
    let values = serde_yaml::from_str(values).unwrap();
    merge(text, FIRST, &values, MergeRules::default())
}

fn text(text: &str, values: &str) -> String {
    merged(text, values)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .text
}

const FILE: &str = "\
# mine
apiVersion: v1   # kept
spec:
    'proxy': {http: \"old\"}   # in one line
    empty:   # filled
    none: []  # filled too
    files:
    - path: /a
      content: |
        one

        two
      # about the mode
      mode: 0640
    - path: /b
    users: [{name: x}]

# the end
status: {}
";

#[test]
fn new_texts_that_are_other_types_in_yaml_1_1_are_quoted() {
    assert_eq!(
        text("a: yes\n", "{b: \"yes\", c: {d: \"010\"}}"),
        "a: yes\nb: 'yes'\nc:\n  d: '010'\n"
    );
}

#[test]
fn keys_are_set_or_added_and_other_bytes_are_kept() {
    let values = "spec:\n  proxy: {http: new, https: \"\"}\n  empty: {a: 1}\n  none: [b]\n  \
                      files:\n  - {path: /a, mode: '0600', content: \"one\\n\\ntwo\\nx\\n\"}\n  - {path: /c}\n  users: [{name: x}, {name: y}]\n  more: {c: d}\n\
                      status: {ok: true}\nlast: 1\n";
    let expected = "\
# mine
apiVersion: v1   # kept
spec:
    'proxy': {http: \"new\", \"https\": \"\"}   # in one line
    empty:   # filled
      a: 1
    none:   # filled too
    - b
    files:
    - path: /a
      content: |
        one

        two
        x
      # about the mode
      mode: '0600'
    - path: /b
    - path: /c
    users: [{name: x}, {\"name\":\"y\"}]
    more:
      c: d

# the end
status:
  ok: true
last: 1
";
    let merged = merged(FILE, values).unwrap();
    assert_eq!(merged.text, expected);
    assert!(
        merged.paths.contains(&"spec.files./a.mode".to_owned()),
        "{:?}",
        merged.paths
    );
    // a second merge changes nothing
    assert!(merged_names(&merged.text, values).unwrap().paths.is_empty());
}

#[test]
fn other_documents_and_line_endings_are_kept_and_a_last_newline_is_added() {
    assert_eq!(
        text("a: 1\r\nb: 2", "{c: {d: 3}}"),
        "a: 1\r\nb: 2\r\nc:\r\n  d: 3\r\n"
    );
    let two = "a: 1\n---\n# two\nb: 1\n...\n";
    let position = ObjectPosition {
        document: 1,
        item: None,
    };
    let values = serde_yaml::from_str("{c: 3}").unwrap();
    let second = merge(two, position, &values, MergeRules::default()).unwrap();
    assert_eq!(second.text, "a: 1\n---\n# two\nb: 1\nc: 3\n...\n");
    assert_eq!(text("a: |\n  x\nb: 1\n", "{a: w}"), "a: w\nb: 1\n");
}

/// Notations in real files: a comment or an empty value at the end of a mapping, multi-line and
/// quoted scalars, lists of lists, flow collections, and a byte order mark.
#[test]
fn unusual_notations_keep_their_bytes() {
    for (before, values, after) in [
        (
            "a:\n  b: 1\n  # b's\nc: 2\n",
            "{a: {d: 1}}",
            "a:\n  b: 1\n  d: 1\n  # b's\nc: 2\n",
        ),
        (
            "a:\n  b:\nc: 2\n",
            "{a: {b: {x: 1}, d: 1}}",
            "a:\n  b:\n    x: 1\n  d: 1\nc: 2\n",
        ),
        (
            "a:\n  b:   # none\n",
            "{a: {b: x}}",
            "a:\n  b: x   # none\n",
        ),
        ("a: >-\n  x\n  y\n\nb: 1\n", "{a: z}", "a: z\n\nb: 1\n"),
        (
            "no_proxy: >- # c\n  x,\n  y\n\nb: 1\n",
            "{no_proxy: z}",
            "no_proxy: >- # c\n  x,\n  y,z\n\nb: 1\n",
        ),
        (
            "a: \"x\"   # c\nb: 'x'\nc: \"\"\nd: {e: 'x', \"f\": [\"x\"]}\n",
            "{a: y, b: it's, c: y, d: {e: y, f: [y]}}",
            "a: \"y\"   # c\nb: 'it''s'\nc: \"y\"\nd: {e: 'y', \"f\": [\"x\", \"y\"]}\n",
        ),
        (
            "kubernetesVersion: 1.33.4\n",
            "{kubernetesVersion: v1.33.4}",
            "kubernetesVersion: 1.33.4\n",
        ),
        ("a: x\n", "{a: \"x\\ny\\n\"}", "a: |\n  x\n  y\n"),
        (
            "a: 'it''s'   # c\n",
            "{a: 'no: way'}",
            "a: 'no: way'   # c\n",
        ),
        ("a: one\n  two   # c\n", "{a: x}", "a: x   # c\n"),
        ("a: \"\"\n", "{a: \"x\\ny\\n\"}", "a: |\n  x\n  y\n"),
        (
            "no_proxy: >-\r\n  x,\r\n  y\r\nb: 1\r\n",
            "{no_proxy: z}",
            "no_proxy: >-\r\n  x,\r\n  y,z\r\nb: 1\r\n",
        ),
        (
            "f:\n- list: a   # c\n  i: x\n- (name): '*'\n  i: x\n",
            "{f: [{list: a, i: w}, {(name): '*', i: w}]}",
            "f:\n- list: a   # c\n  i: w\n- (name): '*'\n  i: w\n",
        ),
        (
            "a:\n  - - 1\n    - 2\n  - x: 1\n",
            "{a: [[3]]}",
            "a:\n  - - 1\n    - 2\n  - x: 1\n  - - 3\n",
        ),
        (
            "a:\n- |\n  x\n# end\n",
            "{a: [b]}",
            "a:\n- |\n  x\n- b\n# end\n",
        ),
        (
            "#@data/values\n---\na: {}\n",
            "{a: {b: 1}}",
            "#@data/values\n---\na:\n  b: 1\n",
        ),
        (
            "a: {b: {c: 1,},}\n",
            "{a: {b: {d: x}}}",
            "a: {b: {c: 1, \"d\": \"x\",},}\n",
        ),
        (
            "a: [\n  x,   # c\n]\n",
            "{a: [y]}",
            "a: [\n  x, \"y\",   # c\n]\n",
        ),
        ("\u{feff}a: 1\n", "{b: 1}", "\u{feff}a: 1\nb: 1\n"),
        ("é: {ü: 1}   # ö\n", "{é: {ü: 2}}", "é: {ü: 2}   # ö\n"),
        ("a: 1\n...\n", "{b: 1}", "a: 1\nb: 1\n...\n"),
    ] {
        assert_eq!(text(before, values), after);
    }
}

#[test]
fn a_conflict_is_refused_with_its_path() {
    for (file, values, words) in [
        (
            "a: [1]\n",
            "{a: {b: 1}}",
            "a is a list, and would become a mapping",
        ),
        (
            "a: 1\n",
            "{a: [1]}",
            "a is a single value, and would become a list",
        ),
        (
            "x: &x {b: 1}\na: *x\n",
            "{a: {c: 1}}",
            "a is an alias, and would become a mapping",
        ),
        (
            "x: &x {b: {c: 1, d: 2}}\na: {<<: *x, e: 3}\n",
            "{a: {b: {c: 2}}}",
            "a.b is inherited by a merge key (`<<`), and would become a mapping",
        ),
        (
            "x: &x {noProxy: 10.0.0.0/8}\ny: &y {z: 1}\na:\n  <<: [*y, *x]\n",
            "{a: {noProxy: svc}}",
            "a.noProxy is inherited by a merge key (`<<`), and would become a single value",
        ),
        ("- 1\n", "{a: 1}", "its top level is a list"),
        ("? a\n: 1\n", "{b: 1}", "the notation of b cannot be edited"),
        ("a: [\n", "{a: 1}", "it is not YAML"),
        ("a: 1\na: 2\n", "{b: 1}", "it is not YAML"),
    ] {
        let error = merged(file, values).unwrap_err().to_string();
        assert!(error.contains(words), "{file}: {error}");
    }
}

#[test]
fn keys_that_a_merge_key_does_not_contain_are_added() {
    let file = "x: &x {b: 1}\na:\n  <<: *x\n";
    assert_eq!(text(file, "{a: {c: 2}}"), format!("{file}  c: 2\n"));
}

/// A Secret with hand-written content: vCenter's account in YAML with ytt's comments, as a block,
/// in quotes and in base64.
#[test]
fn yaml_in_a_scalar_is_merged_like_yaml_outside() {
    let inner = "#@data/values\n---\nvsphereCPI:\n  server: vc.test   # ours\n  no_proxy: 10.0.0.0/8\n  password: 'x: y'\n";
    let values = "{stringData: {values.yaml: \"#@data/values\\n---\\nvsphereCPI:\\n  http_proxy: http://p\\n  no_proxy: svc\\n\"}}";
    let expected = inner.replace("10.0.0.0/8", "10.0.0.0/8,svc") + "  http_proxy: http://p\n";
    let indented = |text: &str, width: usize| -> String {
        text.lines()
            .map(|line| format!("{:width$}{line}\n", ""))
            .collect()
    };
    for (header, width) in [("|", 4), ("|   # kept", 7)] {
        let text_of = |inner: &str| {
            format!(
                "stringData:\n  values.yaml: {header}\n{}  other: 1\n",
                indented(inner, width)
            )
        };
        assert_eq!(text(&text_of(inner), values), text_of(&expected));
    }
    // without a last line break, in quotes, and in base64
    let strip = |inner: &str| format!("stringData:\n  values.yaml: |-\n{}", indented(inner, 4));
    assert_eq!(text(&strip(inner), values), strip(&expected));
    let quoted = |inner: &str| {
        format!(
            "{{\"stringData\": {{\"values.yaml\": {}}}}}\n",
            serde_json::Value::from(inner)
        )
    };
    assert_eq!(text(&quoted(inner), values), quoted(&expected));
    let rules = MergeRules {
        base64: Some("data"),
        ..MergeRules::default()
    };
    let encoded = |inner: &str| {
        format!(
            "data:\n  values.yaml: {}   # kept\n",
            STANDARD.encode(inner)
        )
    };
    let plain: Mapping = serde_yaml::from_str(&values.replace("stringData", "data")).unwrap();
    let merged = merge(&encoded(inner), FIRST, &plain, rules).unwrap();
    assert_eq!(merged.text, encoded(&expected));
    assert_eq!(
        merged.paths,
        [
            "data.values.yaml: vsphereCPI.http_proxy",
            "data.values.yaml: vsphereCPI.no_proxy"
        ]
    );
    let [decoded] = &merged.decoded[..] else {
        panic!("{merged:?}")
    };
    assert_eq!((&*decoded.old, &*decoded.new), (inner, &*expected));
    assert_eq!(
        merge(&merged.text, FIRST, &plain, rules).unwrap().text,
        merged.text
    );
    // a text that is base64 according to its `encoding` key
    let file = |content: &str| {
        format!(
            "files:\n- path: /a\n  encoding: base64\n  content: {}\n",
            STANDARD.encode(content)
        )
    };
    let values = "{files: [{path: /a, content: \"a: 1\\nb: 2\\n\"}]}";
    assert_eq!(text(&file("c: 3\n"), values), file("c: 3\na: 1\nb: 2\n"));
    // JSON stays JSON
    let json = "{data: {auth: '{\"auths\":{\"a.test\":{\"auth\":\"eA==\"}}}'}}\n";
    let values = "{data: {auth: '{\"auths\": {\"b.test\": {\"auth\": \"eQ==\"}}}'}}";
    let merged = documents(&text(json, values)).unwrap().remove(0);
    let auths: serde_json::Value =
        serde_json::from_str(merged["data"]["auth"].as_str().unwrap()).unwrap();
    assert_eq!(
        (
            &auths["auths"]["a.test"]["auth"],
            &auths["auths"]["b.test"]["auth"]
        ),
        (&"eA==".into(), &"eQ==".into())
    );
}

#[test]
fn removals_are_refused_unless_replace_is_set() {
    let rules = MergeRules {
        replace: true,
        ..MergeRules::default()
    };
    for (file, values, lost, replaced) in [
        (
            "a: |\n  {{ mine }}\n  x\n",
            "{a: \"b: 1\\nc: 2\\n\"}",
            "a: it is not a YAML mapping",
            "a: |\n  b: 1\n  c: 2\n",
        ),
        (
            "a: |\n  b: 1\n  ---\n  c: 1\n",
            "{a: \"b: 1\\nc: 2\\n\"}",
            "a: it has several YAML documents",
            "a: |\n  b: 1\n  c: 2\n",
        ),
        (
            "a: |\n  x\n  y\n",
            "{a: \"x\\nz\\n\"}",
            "a: it has lines that the new text lacks",
            "a: |\n  x\n  z\n",
        ),
        (
            "files:\n- content: |\n    x\n  encoding: base64\n  path: /a\n",
            "{files: [{path: /a, contentFrom: {b: c}}]}",
            "files./a.content: it conflicts with contentFrom",
            "files:\n- path: /a\n  contentFrom:\n    b: c\n",
        ),
        (
            "files:\n- path: /a\n  encoding: base64\n  # ours\n  content: eA==\n- path: /b\n",
            "{files: [{path: /a, owner: x, contentFrom: {b: c}}]}",
            "files./a.encoding: it conflicts with contentFrom",
            "files:\n- path: /a\n  # ours\n  owner: x\n  contentFrom:\n    b: c\n- path: /b\n",
        ),
        (
            "files: [{content: x, encoding: base64, path: /a}, {path: /b, encoding: base64, content: y}]\n",
            "{files: [{path: /a, contentFrom: z}, {path: /b, contentFrom: z}]}",
            "files./b.content: it conflicts with contentFrom",
            "files: [{path: /a, \"contentFrom\": \"z\"}, {path: /b, \"contentFrom\": \"z\"}]\n",
        ),
        (
            "env:\n- name: A\n  valueFrom:\n    x: 1\n",
            "{env: [{name: A, value: x}]}",
            "env.A.valueFrom",
            "env:\n- name: A\n  value: x\n",
        ),
        (
            "env: [{name: A, value: b}]\n",
            "{env: [{name: A, valueFrom: {x: 1}}]}",
            "env.A.value",
            "env: [{name: A, \"valueFrom\": {\"x\":1}}]\n",
        ),
        (
            "args:\n- pull\n- --x\nb: 1\n",
            "{args: [pull, --y]}",
            "args: it is one command",
            "args:\n- pull\n- --y\nb: 1\n",
        ),
    ] {
        let error = merged(file, values).unwrap_err().to_string();
        assert!(
            error.contains(lost) && error.contains("--replace"),
            "{error}"
        );
        let values: Mapping = serde_yaml::from_str(values).unwrap();
        assert_eq!(merge(file, FIRST, &values, rules).unwrap().text, replaced);
    }
    // the error lists every value that would be lost
    let error = merged(
        "a: |\n  x\n  y\nb: |\n  x\n  y\n",
        "{a: \"1\\n2\\n\", b: \"1\\n2\\n\"}",
    )
    .unwrap_err();
    assert!(matches!(error, MergeError::Lost(lost) if lost.len() == 2));
}

#[test]
fn commands_are_merged_in_their_order() {
    let file = "preKubeadmCommands:\n# first\n- systemctl start containerd   # kept\n# second\n- |\n  mine\n  too\n- systemctl restart containerd\n";
    let values = "{preKubeadmCommands: [hostname x, systemctl stop containerd, systemctl start containerd, 'echo a: b', systemctl restart containerd]}";
    let expected = "preKubeadmCommands:\n# first\n- hostname x\n- systemctl stop containerd\n- systemctl start containerd   # kept\n# second\n- |\n  mine\n  too\n- 'echo a: b'\n- systemctl restart containerd\n";
    assert_eq!(text(file, values), expected);
    assert_eq!(text(expected, values), expected);
    let flow = "{mirrors: [\"b\", 'c']}\n";
    assert_eq!(
        text(flow, "{mirrors: [a, b, d]}"),
        "{mirrors: [\"a\", \"b\", 'c', \"d\"]}\n"
    );
    let error = merged(flow, "{mirrors: [c, b, x]}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("mirrors has some of these items in another order")
            && error.ends_with("- \"c\"\n- \"b\"\n- \"x\""),
        "{error}"
    );
    let exports = "preKubeadmCommands:\n  - export NO_PROXY=\"a\"\n  - mine\n";
    assert_eq!(
        text(exports, "{preKubeadmCommands: [\"export NO_PROXY='b'\"]}"),
        "preKubeadmCommands:\n  - export NO_PROXY='a,b'\n  - mine\n"
    );
    let error = merged(
        "preKubeadmCommands: ['export NO_PROXY=\"$MINE\"']\n",
        "{preKubeadmCommands: [\"export NO_PROXY='b'\"]}",
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "`export NO_PROXY` in preKubeadmCommands sets a value that cannot be read, or does more \
         than set the value; merge it with this command by hand:\n- \"export NO_PROXY='b'\""
    );
}

#[test]
fn a_no_proxy_list_keeps_its_entries() {
    assert_eq!(
        text("noProxy: 'a,b'\n", "{noProxy: 'b,c'}"),
        "noProxy: 'a,b,c'\n"
    );
    assert_eq!(
        text(
            "env:\n- name: NO_PROXY\n  value: a\n",
            "{env: [{name: NO_PROXY, value: 'b'}]}"
        ),
        "env:\n- name: NO_PROXY\n  value: a,b\n"
    );
}

/// The names that a person gave, and everything else that is not a fact of the site.
#[test]
fn an_existing_value_is_replaced_only_by_a_fact_of_the_site() {
    let facts = SiteFacts {
        parts: vec!["r.test:5000".into()],
        wholes: vec!["hush".into()],
    };
    let rules = MergeRules {
        facts: &facts,
        ..MergeRules::default()
    };
    let file = "config: {configMap: {name: mine}}\npatches:\n  directory: /mine\nenabled: false\ntemplate: '{{ mine }}'\n\
                count: 2\nname:\nquoted: \"true\"\nimage: old.test/a\npassword: x\nmode: 0600\n\
                text: |\n  image: old.test/a\n  tag: v1\n";
    let set = |values: &str| merge(file, FIRST, &serde_yaml::from_str(values).unwrap(), rules);
    for (values, path) in [
        (
            "{config: {configMap: {name: theirs}}}",
            "config.configMap.name: it has another value than \"theirs\"",
        ),
        (
            "{patches: {directory: /theirs}}",
            "patches.directory: it has another value than \"/theirs\"",
        ),
        (
            "{enabled: true}",
            "enabled: it has another value than \"true\"",
        ),
        (
            "{template: '{{ theirs }}'}",
            "template: it has another value than \"{{ theirs }}\"",
        ),
        ("{count: 3}", "count: it has another value than \"3\""),
        ("{count: x}", "count: it has another value than \"x\""),
        ("{mode: '0640'}", "mode: it has another value than \"0640\""),
        (
            "{image: other.test/a}",
            "image: it has another value than \"other.test/a\"",
        ),
        (
            "{text: \"image: r.test:5000/a\\ntag: v2\\n\"}",
            "text: tag: it has another value than \"v2\"",
        ),
    ] {
        let error = set(values).unwrap_err();
        assert!(
            matches!(&error, MergeError::Lost(lost) if lost[..] == [path]),
            "{values}: {error}"
        );
        let replaced = MergeRules {
            replace: true,
            ..rules
        };
        let values = serde_yaml::from_str(values).unwrap();
        assert!(
            !merge(file, FIRST, &values, replaced)
                .unwrap()
                .paths
                .is_empty()
        );
    }
    for (values, from, to) in [
        (
            "{image: \"r.test:5000/a\"}",
            "image: old.test/a\npass",
            "image: r.test:5000/a\npass",
        ),
        ("{password: hush}", "password: x", "password: hush"),
        ("{name: theirs}", "name:\n", "name: theirs\n"),
        ("{quoted: true, mode: '0600'}", "", ""),
        (
            "{text: \"image: r.test:5000/a\\ntag: v1\\n\"}",
            "  image: old.test/a",
            "  image: r.test:5000/a",
        ),
    ] {
        assert_eq!(
            set(values).unwrap().text,
            file.replacen(from, to, 1),
            "{values}"
        );
    }
}

#[test]
fn objects_of_a_list_are_merged_in_place() {
    let file = "apiVersion: v1\nitems:\n- kind: Secret   # ours\n  data: {a: eA==}\n- kind: App\n  \
                spec: {b: 1}\nkind: List\n---\nkind: App\n---\nkind: ShoppingList\nitems: [{a: 1}]\n";
    let found = objects(file).unwrap();
    let places: Vec<_> = found.iter().map(|(at, _)| (at.document, at.item)).collect();
    assert_eq!(places, [(0, Some(0)), (0, Some(1)), (1, None), (2, None)]);
    let rules = MergeRules {
        base64: Some("data"),
        ..MergeRules::default()
    };
    let values = serde_yaml::from_str("{data: {b: y}}").unwrap();
    let merged = merge(file, found[0].0, &values, rules).unwrap();
    assert_eq!(merged.text, file.replace("eA==}", "eA==, \"b\": \"eQ==\"}"));
    assert_eq!(merged.paths, ["items[0].data.b"]);
    let values = serde_yaml::from_str("{spec: {c: 2}, more: x}").unwrap();
    let merged = merge(file, found[1].0, &values, rules).unwrap();
    assert_eq!(
        merged.text,
        file.replace("{b: 1}", "{b: 1, \"c\": 2}\n  more: x")
    );
    let values = serde_yaml::from_str("{spec: {b: 2}}").unwrap();
    let error = merge(file, found[1].0, &values, rules)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("items[1].spec.b: it has another value"),
        "{error}"
    );
}

/// cluster-apps-operator spells NO_PROXY three times in one Secret; drop-ins and commands contain
/// the list, too.
#[test]
fn all_lists_of_a_document_are_equal_after_a_merge() {
    let values = "no_proxy: svc,10.0.0.1\ncluster: {proxy: {noProxy: 'svc,10.0.0.1'}}\n\
                  env: [{name: NO_PROXY, value: 'svc,10.0.0.1'}]\n\
                  unit: \"[Service]\\nEnvironment=\\\"NO_PROXY=svc,10.0.0.1\\\"\\n\"\n\
                  preKubeadmCommands: [\"export NO_PROXY='svc,10.0.0.1'\"]\n\
                  datacenters: {a: {noProxy: 'svc,10.0.0.1'}}\n";
    let rest = "datacenters:\n  a:\n    noProxy: dc.test\n";
    for (file, list) in [
        (
            "no_proxy: mine.test\ncluster: {proxy: {noProxy: ours.test}}\n",
            "mine.test,svc,10.0.0.1,ours.test",
        ),
        (
            "env:\n- name: NO_PROXY\n  value: mine.test,svc\n",
            "mine.test,svc,10.0.0.1",
        ),
        (
            "preKubeadmCommands:\n- export NO_PROXY=\"mine.test\"\n",
            "mine.test,svc,10.0.0.1",
        ),
        (
            "unit: |\n  [Service]\n  Environment=NO_PROXY=mine.test\n  User=x\nno_proxy: 10.0.0.1,svc\n",
            "10.0.0.1,svc,mine.test",
        ),
        ("mine: 1\n", "svc,10.0.0.1"),
    ] {
        let file = format!("{file}{rest}");
        let merged = merged_names(&file, values).unwrap();
        let found: Value = serde_yaml::from_str(&merged.text).unwrap();
        assert_eq!(found["no_proxy"], list, "{}", merged.text);
        assert_eq!(found["cluster"]["proxy"]["noProxy"], list);
        assert_eq!(found["env"][0]["value"], list);
        let unit = found["unit"].as_str().unwrap();
        assert!(unit.contains(&format!("=\"NO_PROXY={list}\"\n")), "{unit}");
        assert_eq!(
            found["preKubeadmCommands"][0],
            format!("export NO_PROXY='{list}'")
        );
        // each datacenter has a NO_PROXY of its own
        assert_eq!(found["datacenters"]["a"]["noProxy"], "dc.test,svc,10.0.0.1");
        assert!(merged_names(&merged.text, values).unwrap().paths.is_empty());
    }
}
