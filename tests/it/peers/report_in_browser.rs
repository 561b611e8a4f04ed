//! The HTML report in Chromium: its treemap is enlarged by mouse and keyboard, and its text needs
//! no scripts.

use crate::support::browser::Browser;
use crate::support::faults::Rig;
use crate::support::{need, skip, test_name};
use serde_json::Value;

const BOX: &str = "document.getElementById('map').getAttribute('viewBox')";

/// The visible words of the page, without the line about the zoom.
const SEEN: &str = "document.body.innerText\
    .replace(document.getElementById('zoom-help').innerText, '').split(/\\s+/).join(' ')";

#[test]
fn the_treemap_is_enlarged_by_mouse_and_keys_and_no_text_needs_scripts() {
    if !need(&["chromium", "mkfifo"]) {
        return;
    }
    let rig = Rig::new();
    rig.set_faults([]);
    let page = rig.place.path("page.html");
    let store = ["--store", "s", "--plain-http", &rig.up.address];
    rig.place.ok(&[
        &["lock", "-f", "m.yaml", "--report", page.to_str().unwrap()][..],
        &store,
    ]
    .concat());
    let mut browser = match Browser::start(&rig.place) {
        Ok(browser) => browser,
        Err(why) => return skip(&test_name(), &why),
    };
    browser.open_file(&page);
    let whole = browser.value(BOX);
    let help = "document.getElementById('zoom-help').getClientRects().length";
    assert_eq!(browser.value(help), 1);
    let group = "document.querySelector('#map .group')";
    let own = browser.value(&format!("{group}.dataset.box"));
    assert_ne!(own, whole);

    // by mouse
    let at = browser.value(&format!(
        "(() => {{ document.getElementById('map').scrollIntoView(); const r = {group}.getBoundingClientRect(); \
         return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    ));
    let at = |index: usize| at[index].as_f64().unwrap();
    browser.click(at(0), at(1));
    assert_eq!(browser.value(BOX), own, "a click enlarges a group");
    browser.press("Escape", 27, "");
    assert_eq!(browser.value(BOX), whole, "Escape shows the whole picture");

    // by keyboard only, from the top of the page
    browser.open_file(&page);
    let is_at_group: Value = (0..200)
        .map(|_| {
            browser.press("Tab", 9, "");
            browser.value("document.activeElement.matches('#map .group')")
        })
        .find(|found| *found == true)
        .unwrap_or_default();
    assert_eq!(is_at_group, true, "Tab reaches the picture");
    assert_eq!(
        browser.value("document.activeElement.matches(':focus-visible')"),
        true
    );
    assert_eq!(
        browser.value("document.activeElement.closest('[role=img]') === null"),
        true
    );
    for (key, code, text) in [("Enter", 13, "\r"), (" ", 32, " ")] {
        browser.press(key, code, text);
        assert_eq!(browser.value(BOX), own, "{key:?} enlarges a group");
        browser.press(key, code, text);
        assert_eq!(browser.value(BOX), whole, "{key:?} shows the whole picture");
    }
    let seen = browser.value(SEEN);

    // without scripts
    browser.set_scripts(false);
    browser.open_file(&page);
    assert_eq!(browser.value(help), 0, "the help for enlarging is hidden");
    assert_eq!(browser.value(BOX), whole);
    assert_eq!(browser.value(SEEN), seen, "all other text is in the page");
    assert!(seen.as_str().unwrap().contains("team/app:v1"), "{seen}");
}
