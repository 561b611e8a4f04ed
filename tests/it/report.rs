//! The JSON documents of the commands match `landfall schema report`.

use crate::support::faults::Rig;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Asserts that `value` matches `schema`, and has only members that `schema` lists.
fn check(schema: &Value, value: &Value, place: &str) {
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        kinds => kinds
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect(),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(
        kinds.contains(&kind),
        "{place} is {value}; its type must be one of {kinds:?}"
    );
    if let (Some(properties), Some(members)) = (schema["properties"].as_object(), value.as_object())
    {
        for (name, member) in members {
            let known = properties
                .get(name)
                .unwrap_or_else(|| panic!("{place}.{name} is not in the schema: {member}"));
            check(known, member, &format!("{place}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                members.contains_key(name.as_str().unwrap()),
                "{place} lacks {name}: {value}"
            );
        }
    }
    if let (Some(each), Some(list)) = (schema.get("items"), value.as_array()) {
        list.iter()
            .for_each(|one| check(each, one, &format!("{place}[]")));
    }
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{place} is {value}");
    }
}

#[test]
fn reports_match_the_schema() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.write(
        "app.yaml",
        format!(
            "image: {}/team/app:v1\n---\nimage: nginx:1\n",
            rig.up.address
        ),
    );
    let schema = rig.place.json(0, &["schema", "report"])["schema"].clone();
    let properties: &Map<String, Value> = schema["properties"].as_object().unwrap();
    let mut members = BTreeSet::new();
    let mut reported = |exit: i32, line: &str| {
        let line = line
            .replace("UP", &rig.up.address)
            .replace("DOWN", &rig.down.address);
        let args: Vec<&str> = line.split(' ').chain(["--store", "stores/first"]).collect();
        let report = rig
            .place
            .json(exit, &[&args[..], &["--report", "report.json"]].concat());
        check(&schema, &report, &line);
        assert_eq!(report["command"], args[0]);
        let written: Value = serde_json::from_str(&rig.place.read("report.json")).unwrap();
        assert_eq!(written, report, "{line}");
        for name in report.as_object().unwrap().keys() {
            // if only some commands have a member, its description lists these commands
            let meaning = properties[name]["description"].as_str().unwrap();
            let commands = meaning
                .rsplit_once("(of ")
                .map_or(args[0], |(_, commands)| commands);
            assert!(commands.contains(args[0]), "{line}: {name}: {meaning}");
            members.insert(name.clone());
        }
    };
    reported(0, "lock -f m.yaml --lock l --plain-http UP");
    reported(0, "pull --lock l --plain-http UP");
    reported(0, "pull --lock l --dry-run --shard 1/2");
    reported(0, "pull --lock l --bundle p --plain-http UP");
    reported(0, "pack --lock l -o b");
    reported(0, "pull --lock l --bundle q --from b --plain-http UP");
    reported(0, "pack --lock l -o b --dry-run");
    reported(0, "pack --lock l -o v --volume-size 60000");
    reported(0, "pack --like v --only-volume 2");
    reported(0, "verify b --log log.jsonl");
    reported(0, "log verify log.jsonl");
    reported(2, "verify nowhere");
    reported(0, "doctor --role kkp-user");
    reported(0, "ls b");
    reported(0, "diff l b");
    reported(0, "report b --since l --log log.jsonl");
    reported(0, "sbom b");
    reported(0, "export referrers b -o out-referrers");
    reported(0, "push b --to DOWN --plain-http DOWN --dry-run");
    reported(0, "push b --to DOWN --plain-http DOWN");
    reported(0, "status b --to DOWN --plain-http DOWN");
    reported(
        0,
        "push b --to DOWN --plain-http DOWN --prune --repository team/app",
    );
    reported(
        0,
        "mirror --lock l --to DOWN/again --plain-http UP --plain-http DOWN",
    );
    reported(0, "export files --bundle b -o out");
    reported(0, "rewrite app.yaml --bundle b --to DOWN");
    reported(0, "rewrite app.yaml --bundle b --to DOWN --diff");
    reported(4, "audit app.yaml --bundle b");
    reported(0, "discover app.yaml");
    reported(0, "init app.yaml -o begun");
    reported(0, "init --list");
    reported(0, "init --from k3s -o shipped");
    // images.txt cannot contain the files of the lock
    reported(3, "export images-txt --lock l -o images.txt");
    reported(0, "import images-txt images.txt -o imported");
    reported(0, "update -f m.yaml --lock l --dry-run --plain-http UP");
    reported(0, "doctor --plain-http UP http://UP/");
    reported(0, "doctor --role all");
    reported(0, "egress --lock l");
    reported(0, "publish --lock l");
    reported(0, "gc --lock l");
    reported(0, "schema site");
    reported(2, "pull --lock nowhere");
    // no command above produces the remaining members
    let unseen: Vec<_> = properties
        .keys()
        .filter(|name| !members.contains(*name))
        .collect();
    assert_eq!(
        unseen,
        [
            "patches",
            "unlisted",
            "signatures",
            "unmatchedRules",
            "repositories",
            "archive",
            "keys",
            "stale",
            "condemned",
            "waiting",
            "uploads",
            "claims",
            "replaced",
            "diff"
        ]
    );
}
