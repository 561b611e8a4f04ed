//! Hosts behind hosts, and hosts that do not answer.

use super::accounts::{images_of, lock, registry_with};
use crate::support::gate::Gate;
use crate::support::middle::{Middle, Turn};
use crate::support::{Place, need};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_backend_with_a_realm_of_its_own_costs_a_token_a_repository_and_no_turns() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..24).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let gate = Gate::new(&registry.address, None, usize::MAX);
    // as registry.k8s.io: everything is somewhere else
    let (behind, inside, most) = (gate.address.clone(), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let peak = most.clone();
    let front = Middle::new("", move |asked| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        inside.fetch_sub(1, Ordering::SeqCst);
        let to = format!("http://{behind}{}", asked.target);
        Turn::Answer(307, vec![("Location".into(), to)], String::new())
    });
    images_of(&place, &front.address, &names);
    let report = lock(&place, 0, &front.address);
    let seen = gate.seen();
    assert_eq!(seen.tokens.len(), names.len(), "{:?}", seen.tokens);
    assert!(most.load(Ordering::SeqCst) >= 4, "{most:?} requests in flight");
    // each repository meets one challenge there; later requests bring the token along. Those that the image's first
    // request did not wait for may meet one more
    assert!(seen.refused <= names.len() + 12, "{} refused of {}", seen.refused, report["totals"]["requests"]);
    place.json(0, &["pull", "--store", "s", "--plain-http", &front.address]);
    assert_eq!(gate.seen().tokens.len(), 2 * names.len());
}
