//! Checks that every row of `docs/explanation/threat-model.md` names tests, and that these exist.

use std::path::Path;

#[test]
fn every_row_of_the_threat_model_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/explanation/threat-model.md")).unwrap();
    let mut rows = 0;
    let mut gone = Vec::new();
    let mut has_tests = false;
    for row in page.lines() {
        // the head of a table says whether its rows name tests
        if row.ends_with("| test |") || !row.starts_with('|') {
            has_tests = row.starts_with('|');
            continue;
        }
        if !has_tests || row.starts_with("|-") {
            continue;
        }
        rows += 1;
        let tests = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        let mut source = String::new();
        let mut named = 0;
        for text in tests.split('`').skip(1).step_by(2) {
            if text.ends_with(".rs") {
                source = std::fs::read_to_string(root.join(text)).unwrap_or_default();
            } else {
                named += 1;
                // the name of a fuzz target is a line of a macro, not a function
                let is_there = source.contains(&format!("fn {text}("))
                    || source.contains(&format!("    {text},"));
                if !is_there {
                    gone.push(format!("{text}, in: {row}"));
                }
            }
        }
        assert!(named > 0, "no test is named: {row}");
    }
    assert!(
        rows > 40,
        "only {rows} rows were found; did the format of the tables change?"
    );
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}
