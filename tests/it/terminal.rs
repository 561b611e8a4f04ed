//! The display of transfers, diffs and manual pages on pseudo-terminals.

use crate::platforms::lock;
use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use crate::support::{Place, need, which};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Starts a pull into the store `store` on a terminal with this many columns.
fn pull(rig: &Rig, columns: usize, store: &str, variables: &[(&str, &str)]) -> Child {
    let line = format!(
        "$LANDFALL pull --store stores/{store} --plain-http {}",
        rig.up.address
    );
    on_terminal(&rig.place, columns, &line, variables)
}

/// Runs a shell command on a terminal with this many columns.
fn on_terminal(place: &Place, columns: usize, line: &str, variables: &[(&str, &str)]) -> Child {
    let script = format!("stty cols {columns} rows 24; exec {line}");
    let mut command: Command = place.clean("script");
    command
        .args(["-qefc", &script, "/dev/null"])
        .env("LANDFALL", env!("CARGO_BIN_EXE_landfall"));
    command
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .envs(variables.iter().copied());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn slow() -> Rig {
    let rig = Rig::new();
    rig.set_faults([Fault::always(
        RequestKind::Blob,
        FaultKind::Drip(4000, Duration::from_millis(500)),
    )]);
    rig
}

/// Everything that was sent to the terminal until the command ended.
fn shown(mut child: Child) -> String {
    let mut all = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut all).unwrap();
    child.wait().unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

/// The successive contents of the terminal's lines, without escape sequences.
fn lines(shown: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut chars = shown.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => while chars.next().is_some_and(|char| !char.is_ascii_alphabetic()) {},
            '\r' | '\n' => lines.push(String::new()),
            _ => lines.last_mut().unwrap().push(char),
        }
    }
    lines
}

#[test]
fn the_bar_fits_its_terminal() {
    if !need(&["script", "stty"]) {
        return;
    }
    let rig = slow();
    let widths = [40, 60, 80, 120]
        .map(|columns| (columns, pull(&rig, columns, &format!("w{columns}"), &[])));
    for (columns, child) in widths {
        let shown = shown(child);
        let lines = lines(&shown);
        // on a terminal too narrow for a bar, the progress is a percentage
        let is_bar = |line: &String| match columns {
            40 => line.starts_with("pull ") && line.contains("% "),
            _ => line.starts_with("pull ["),
        };
        let bars: Vec<_> = lines.iter().filter(|line| is_bar(line)).collect();
        assert!(bars.len() > 5, "{columns}: {shown:?}");
        for line in &bars {
            assert!(line.chars().count() <= columns, "{columns}: {line:?}");
        }
        // the bar is one line, and each update replaces it
        let joined = lines.iter().find(|line| line.matches("pull ").count() > 1);
        assert_eq!(joined, None, "{columns}");
        let left = bars.iter().find(|line| line.contains(" left "));
        assert!(left.is_some(), "{columns}: {bars:#?}");
        assert!(shown.contains("pulled"), "{shown:?}");
    }
}

#[test]
fn the_message_of_ctrl_c_stays_visible() {
    if !need(&["script", "stty"]) {
        return;
    }
    let rig = slow();
    let mut child = pull(&rig, 80, "stopped", &[]);
    let mut out = child.stdout.take().unwrap();
    let mut all = Vec::new();
    let mut stdin = child.stdin.take().unwrap();
    let mut piece = [0; 4096];
    let mut is_pressed = false;
    while let Ok(count @ 1..) = out.read(&mut piece) {
        all.extend_from_slice(&piece[..count]);
        if !is_pressed && all.windows(6).any(|bytes| bytes == b"pull [") {
            stdin.write_all(b"\x03").unwrap();
            is_pressed = true;
        }
    }
    let shown = String::from_utf8_lossy(&all).into_owned();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{shown:?}");
    let words = "landfall: interrupted; run the same command again to resume";
    let Some((before, after)) = shown.split_once(words) else {
        panic!("{shown:?}")
    };
    assert_eq!(after.trim_end_matches(['\r', '\n']), "", "{shown:?}");
    // the message begins on its own line
    assert!(
        lines(before).last().unwrap().trim_end().is_empty(),
        "{shown:?}"
    );
}

#[test]
fn a_dumb_terminal_and_ci_get_plain_lines() {
    if !need(&["script", "stty"]) {
        return;
    }
    let rig = Rig::new();
    rig.set_faults([]);
    for (at, variables) in [("TERM", "dumb"), ("CI", "true")].into_iter().enumerate() {
        let shown = shown(pull(&rig, 80, &format!("plain{at}"), &[variables]));
        assert!(!shown.contains('\u{1b}'), "{variables:?}: {shown:?}");
        assert!(
            shown.contains("pull: 3/3 items, "),
            "{variables:?}: {shown:?}"
        );
    }
}

/// Everyone but a user at a terminal gets the bytes of the file, which `patch` applies.
#[test]
fn a_diff_has_colours_on_a_terminal_unless_no_color_is_set() {
    if !need(&["script", "stty"]) {
        return;
    }
    let place = Place::new();
    place.write("landfall.lock", lock(&["registry.k8s.io/pause:3.10.1"]));
    place.write("a.yaml", "image: registry.k8s.io/pause:3.10.1\n");
    let args = ["rewrite", "a.yaml", "--to", "r.test:5000", "--diff"];
    let line = format!("$LANDFALL {}", args.join(" "));
    let removed = "-image: registry.k8s.io/pause:3.10.1";
    for (value, is_coloured) in [("", true), ("1", false)] {
        let shown = shown(on_terminal(&place, 80, &line, &[("NO_COLOR", value)]));
        assert!(shown.contains(removed), "{shown:?}");
        assert_eq!(shown.contains('\u{1b}'), is_coloured, "{shown:?}");
    }
    let piped = place.ok(&args);
    assert!(piped.contains(removed), "{piped:?}");
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

/// Presses `keys` as soon as the terminal shows `words`. Returns the output up to then, and the
/// whole output.
fn pressed(mut child: Child, words: &str, keys: &str) -> (String, String) {
    let mut out = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (sender, pieces) = channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = out.read(&mut piece) {
            if sender.send(piece[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut before = None;
    let mut all = Vec::new();
    loop {
        match pieces.recv_timeout(Duration::from_mins(1)) {
            Ok(piece) => all.extend(piece),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!(
                    "no output for a minute; expected {words:?}, then the end: {}",
                    String::from_utf8_lossy(&all)
                );
            }
        }
        let shown = String::from_utf8_lossy(&all).into_owned();
        if before.is_none() && shown.contains(words) {
            stdin.write_all(keys.as_bytes()).unwrap();
            before = Some(shown);
        }
    }
    assert!(
        child.wait().unwrap().success(),
        "{}",
        String::from_utf8_lossy(&all)
    );
    let all = String::from_utf8_lossy(&all).into_owned();
    let before = before.unwrap_or_else(|| panic!("the terminal never shows {words:?}: {all}"));
    (before, all)
}

/// Replaces each run of whitespace by one space, because man inserts spaces to justify its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn man_opens_a_page_in_the_pager() {
    if !need(&["script", "stty", "man", "less"]) {
        return;
    }
    let place = Place::new();
    let pager = place.write("own-pager", "#!/bin/sh\necho \"paged by $0 $*\"\ncat\n");
    fs::set_permissions(&pager, fs::Permissions::from_mode(0o755)).unwrap();
    let pager = format!("{} -x", pager.display());
    let man = |by: &str, pager: &str| {
        let variables = [("PAGER", pager)];
        let variables = if pager.is_empty() {
            &[][..]
        } else {
            &variables
        };
        on_terminal(&place, 80, &format!("{by} $LANDFALL man pack"), variables)
    };
    // the pager that the user chose
    let (_, all) = pressed(man("", &pager), "paged by", "");
    assert!(
        all.contains("own-pager -x") && words(&all).contains("Split the bundle into volumes"),
        "{all}"
    );
    // without a configured pager, the default pager of man waits after its first screen
    let last = "Timeout for the next byte";
    let (before, all) = pressed(man("", ""), "SYNOPSIS", "q");
    assert!(!before.contains(last) && !all.contains(last), "{all}");
    // if the pager does not exist, the page is still shown
    let (_, all) = pressed(man("", "/no/such/pager"), last, "");
    assert!(
        words(&all).contains("Split the bundle into volumes"),
        "{all}"
    );
    // a machine without man
    for program in ["sh", "cat", "less"] {
        std::os::unix::fs::symlink(which(program).unwrap(), place.path(program)).unwrap();
    }
    let alone = format!("env PATH={}", place.dir().display());
    let (_, all) = pressed(man(&alone, &pager), "paged by", "");
    assert!(
        all.contains("own-pager -x") && words(&all).contains("Split the bundle into volumes"),
        "{all}"
    );
    let (before, all) = pressed(man(&alone, ""), "Usage:", "q");
    assert!(!before.contains(last) && !all.contains(last), "{all}");
    let (_, all) = pressed(man(&alone, "/no/such/pager"), last, "");
    assert!(
        words(&all).contains("Split the bundle into volumes"),
        "{all}"
    );
}
