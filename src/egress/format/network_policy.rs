//! Formats a Kubernetes `NetworkPolicy`, which supports ports and addresses but not names. A
//! comment in the policy says that it allows more than the list.

use super::groups::{by_port, comment};
use crate::egress::Egress;
use std::fmt::Write as _;

const LIMIT: &str = "\
# A NetworkPolicy does not support names: for hosts listed by name, it allows every address at
# their ports. To allow only the names above, use `--format cilium`, or allow only a proxy here and
# give the proxy the list of `--format squid`.
";

pub(super) fn write(egress: &Egress) -> String {
    let mut text = comment(egress) + LIMIT;
    text += "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: landfall-egress
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: landfall
  policyTypes: [Egress]
  egress:
  - ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
";
    for (port, group) in by_port(egress, |_| true) {
        text += "  - ports:\n";
        let _ = writeln!(text, "    - {{protocol: TCP, port: {port}}}");
        // a port with names needs a rule without `to`, which allows every address
        if group.names.is_empty() && group.below.is_empty() {
            text += "    to:\n";
            for address in group.addresses {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                let _ = writeln!(text, "    - ipBlock: {{cidr: \"{address}/{bits}\"}}");
            }
        }
    }
    text
}
