//! The page at `/misses` and the document at `/misses.json`: what clients asked for in vain.

use super::{MAX_CONTENT, PageFrame};
use crate::api;
use crate::observe::Miss;
use crate::route::Route;
use crate::state::ServerState;
use askama::Template;
use landfall_item::RequestedName;
use landfall_model::report::EntryKind;
use serde_json::{Value, json};

/// The estimated number of bytes of a row besides its name.
const ROW: usize = 400;

#[derive(Template)]
#[template(path = "misses.html")]
struct MissesPage<'a> {
    frame: PageFrame<'a>,
    rows: &'a [(RequestedName, Miss)],
    /// The number of misses for which the page has no room.
    more: usize,
}

/// Renders the page with as many misses as fit.
pub(super) fn render_misses(frame: PageFrame<'_>, state: &ServerState) -> askama::Result<String> {
    let (misses, _) = still_missing(state);
    let mut room = MAX_CONTENT;
    let shown = misses.iter().take_while(|(requested, _)| {
        let length = ROW + 6 * requested.name.len();
        room = room.saturating_sub(length);
        room > 0
    });
    let (rows, more) = misses.split_at(shown.count());
    let more = more.len();
    MissesPage { frame, rows, more }.render()
}

fn seconds(time: &jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The document at `/misses.json`.
pub(crate) fn misses_document(state: &ServerState) -> Value {
    let (misses, dropped) = still_missing(state);
    let misses = misses.iter().map(|(requested, miss)| {
        json!({
            "kind": requested.kind,
            "name": requested.name,
            "count": miss.count,
            "first": seconds(&miss.first),
            "last": seconds(&miss.last),
            "clients": miss.clients,
        })
    });
    json!({"misses": misses.collect::<Vec<Value>>(), "dropped": dropped})
}

/// The misses that this server still does not have: a push or a new bundle may have brought them.
fn still_missing(state: &ServerState) -> (Vec<(RequestedName, Miss)>, u64) {
    let (mut misses, dropped) = state.observer.misses.list();
    misses.retain(|(requested, miss)| !is_here(state, requested, &miss.path));
    (misses, dropped)
}

fn is_here(state: &ServerState, requested: &RequestedName, path: &str) -> bool {
    match requested.kind {
        EntryKind::Image => match Route::parse(path) {
            Ok(Route::Manifest(name, reference)) => {
                api::has_manifest(state, &name, &reference, requested.host.as_deref())
            }
            _ => false,
        },
        EntryKind::File => {
            let url = requested.name.strip_prefix("https://");
            url.is_some_and(|url| state.bundles.files.has(url))
        }
        EntryKind::Chart => state.bundles.charts.find(&requested.name).is_ok(),
        EntryKind::Provider => state.bundles.providers.find(&requested.name).is_ok(),
        _ => false,
    }
}
