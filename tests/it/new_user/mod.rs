//! landfall as a new user runs it: tables of command lines, their output, and their exit codes.

mod arguments;
mod failures;
mod far_side;
mod references;
mod reports;
mod words;

use crate::support::Place;
use crate::support::faults::Rig;

/// A command line, its exit code, texts that it prints, and texts that it does not print (with `!`
/// in front). stdout and stderr are searched together.
pub(super) type Row<'a> = (&'a str, i32, &'a [&'a str]);

/// Runs every row in `place`, and checks the expectations. `replace` lists words of the rows, such
/// as `UP`, and their replacements.
fn run(place: &Place, replace: &[(&str, &str)], rows: &[Row<'_>]) {
    for (line, exit, expected) in rows {
        let fill = |text: &str| {
            replace
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        let words = fill(line);
        let output = place
            .command()
            .args(words.split(' '))
            .args(["--progress", "none"])
            .output()
            .unwrap();
        let printed =
            String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert_eq!(
            output.status.code(),
            Some(*exit),
            "landfall {words}\n{printed}"
        );
        for words in *expected {
            match words.strip_prefix('!') {
                Some(words) => assert!(
                    !printed.contains(&fill(words)),
                    "landfall {line}: not {words}\n{printed}"
                ),
                None => assert!(
                    printed.contains(&fill(words)),
                    "landfall {line}: {words}\n{printed}"
                ),
            }
        }
    }
}

/// Like [`run`], in the folder of a rig and with the addresses of its registries.
fn run_with(rig: &Rig, rows: &[Row<'_>]) {
    run(
        &rig.place,
        &[("UP", &rig.up.address), ("DOWN", &rig.down.address)],
        rows,
    );
}
