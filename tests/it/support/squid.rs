//! A real squid as the only way out of a network: see [`Network::behind_proxy`].

use super::netns::Network;
use super::process::Guard;
use super::{Place, which};
use std::os::unix::fs::PermissionsExt;

/// The address of squid for the client.
pub const PROXY: &str = "10.99.0.1:3128";
/// The address of the server behind the proxy. squid's hosts file maps the `.test` names to it.
pub const SERVER: &str = "203.0.113.2";
/// The account, if squid requires one: user, password, and the percent-encoded password.
pub const USER: &str = "carrier";
pub const PASSWORD: &str = "p@ss:w/d";
pub const PASSWORD_ENCODED: &str = "p%40ss%3Aw%2Fd";

pub struct Squid {
    guard: Guard,
    dir: tempfile::TempDir,
    /// The service name. squid's shared memory segments begin with it, so each squid has its own:
    /// segments of a squid that was killed would keep others with the same name from starting.
    service: String,
}

impl Drop for Squid {
    fn drop(&mut self) {
        let of_this = |name: &std::ffi::OsStr| {
            name.to_str()
                .is_some_and(|name| name.starts_with(&self.service))
        };
        for entry in std::fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .flatten()
        {
            if of_this(&entry.file_name()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Squid {
    /// Starts squid on the host `proxy`. It allows requests to the hosts in `allowed`; if `signed`
    /// is true, only requests of the account.
    pub fn start(network: &Network, place: &Place, allowed: &[&str], signed: bool) -> Squid {
        let names = allowed.join(" ");
        let rules = format!(
            "acl allowed dstdomain {names}\nhttp_access allow allowed\nhttp_access deny all\n"
        );
        Squid::with_rules(network, place, &rules, signed)
    }

    /// Like `start`, with these access rules.
    pub fn with_rules(network: &Network, place: &Place, rules: &str, signed: bool) -> Squid {
        // squid drops its root privileges, and its user must be able to read these files
        let dir = tempfile::Builder::new()
            .prefix("landfall-squid-")
            .tempdir()
            .unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let at = dir.path().display();
        let write =
            |name: &str, content: String| std::fs::write(dir.path().join(name), content).unwrap();
        let names = [
            "registry", "files", "denied", "silent", "a.corp", "a.b.corp",
        ]
        .map(|name| format!("{SERVER} {name}.test\n"));
        write("hosts", names.concat());
        let sign_in = if signed {
            let mut htpasswd = place.clean("htpasswd");
            let made = htpasswd.args(["-nbm", USER, PASSWORD]).output().unwrap();
            write("passwords", String::from_utf8(made.stdout).unwrap());
            let helper = "/usr/lib/squid/basic_ncsa_auth";
            format!(
                "auth_param basic program {helper} {at}/passwords\nauth_param basic realm landfall\n\
                 acl known proxy_auth REQUIRED\nhttp_access deny !known\n"
            )
        } else {
            String::new()
        };
        write(
            "conf",
            format!(
                "http_port {PROXY}\nvisible_hostname proxy.test\npid_filename none\nhosts_file {at}/hosts\n\
                 dns_nameservers 127.0.0.1\nconnect_timeout 5 seconds\ncache deny all\ncoredump_dir {at}\n\
                 cache_log {at}/cache.log\nlogformat ours %>Hs %rm %ru %{{Proxy-Authorization}}>h\n\
                 access_log stdio:{at}/access.log ours\nshutdown_lifetime 0 seconds\n{sign_in}\
                 {rules}"
            ),
        );
        let mut command = place.clean(which("squid").expect("squid is installed"));
        // squid accepts only letters and digits
        let service: String = at.to_string();
        let service = service.split_once("landfall-").unwrap().1.replace('-', "");
        command.args(["-N", "-n", &service, "-f"]);
        command.arg(dir.path().join("conf"));
        Squid {
            guard: network.serve("proxy", &command, PROXY),
            dir,
            service,
        }
    }

    /// Waits until the log contains `part`. A tunnel is logged when it is closed.
    pub fn wait_for(&mut self, part: &str) {
        let log = self.dir.path().join("access.log");
        let is_there = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains(part));
        self.guard.wait_until(part, is_there);
    }

    /// One line per request: status, method, URL, and the account as it was sent, or `-`. The
    /// request that checks whether squid runs is omitted.
    pub fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("access.log")).unwrap_or_default();
        text.lines()
            .filter(|line| line.contains(".test"))
            .map(str::to_owned)
            .collect()
    }
}

/// The programs that tests with squid need.
pub const NEEDS: [&str; 5] = ["squid", "docker-registry", "htpasswd", "gzip", "curl"];
