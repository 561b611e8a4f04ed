//! A closed network of namespaces without a route to the outside: hosts on `172.20.0.0/24` with a
//! bridge between them, or a client and a server with a proxy between them. Everything is removed
//! when the [`Network`] is dropped.

use super::peers::{docker_registry_config, is_root};
use super::process::Guard;
use super::programs::LargeGoProgram;
use super::{Place, found, run, skip, test_name, which};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of the private registry in every network with a bridge.
pub const REGISTRY: &str = "172.20.0.2:5000";
/// The address of the node that runs containerd.
pub const NODE: &str = "172.20.0.3";
/// The address of the machine at which the bundle arrives.
pub const OPERATOR: &str = "172.20.0.10";

/// The namespaces of one test.
pub struct Network {
    prefix: String,
    names: Vec<String>,
}

impl Network {
    /// The hosts `registry`, `node` and `operator` on a bridge. `None` if namespaces cannot be
    /// created; the test then counts as skipped.
    pub fn new() -> Option<Network> {
        let mut network = Network::empty()?;
        let switch = network.name("switch");
        ip(&["-n", &switch, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "br0", "up"]);
        for (host, address) in [
            ("registry", "172.20.0.2"),
            ("node", NODE),
            ("operator", OPERATOR),
        ] {
            assert!(network.add(host), "cannot create the namespace of {host}");
            let name = network.name(host);
            // both ends of the link are created inside the namespaces, so the machine's own
            // namespace never contains one
            ip(&[
                "-n", &name, "link", "add", "eth0", "type", "veth", "peer", "name", host, "netns",
                &switch,
            ]);
            ip(&["-n", &switch, "link", "set", host, "master", "br0", "up"]);
            ip(&[
                "-n",
                &name,
                "addr",
                "add",
                &format!("{address}/24"),
                "dev",
                "eth0",
            ]);
            ip(&["-n", &name, "link", "set", "lo", "up"]);
            ip(&["-n", &name, "link", "set", "eth0", "up"]);
            let routes = run(Command::new("ip").args(["-n", &name, "route"]));
            let routes = String::from_utf8_lossy(&routes).into_owned();
            assert_eq!(
                routes.lines().count(),
                1,
                "there are routes out of the network:\n{routes}"
            );
            assert!(routes.starts_with("172.20.0.0/24 "), "{routes}");
        }
        Some(network)
    }

    /// A network with only the host `switch`, without a link. `None` as in [`Network::new`].
    fn empty() -> Option<Network> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut network = Network {
            prefix: format!("landfall-{}-{count}", std::process::id()),
            names: Vec::new(),
        };
        if which("ip").is_none() || !is_root() {
            skip(&test_name(), "network namespaces need root and iproute2");
            return None;
        }
        if !network.add("switch") {
            skip(&test_name(), "this machine allows no network namespaces");
            return None;
        }
        Some(network)
    }

    /// The hosts `client`, `proxy` and `server` in a row: packets from `client` reach `server` only
    /// through a program on `proxy`. `None` as in [`Network::new`].
    pub fn behind_proxy() -> Option<Network> {
        let mut network = Network::empty()?;
        for host in ["client", "proxy", "server"] {
            assert!(network.add(host), "cannot create the namespace of {host}");
            ip(&["-n", &network.name(host), "link", "set", "lo", "up"]);
        }
        let ends = [
            ("client", "10.99.0.2", "10.99.0.1"),
            ("server", "203.0.113.2", "203.0.113.1"),
        ];
        for (host, address, at_proxy) in ends {
            let name = network.name(host);
            let proxy = network.name("proxy");
            ip(&[
                "-n", &name, "link", "add", "eth0", "type", "veth", "peer", "name", host, "netns",
                &proxy,
            ]);
            ip(&[
                "-n",
                &name,
                "addr",
                "add",
                &format!("{address}/24"),
                "dev",
                "eth0",
            ]);
            ip(&[
                "-n",
                &proxy,
                "addr",
                "add",
                &format!("{at_proxy}/24"),
                "dev",
                host,
            ]);
            ip(&["-n", &name, "link", "set", "eth0", "up"]);
            ip(&["-n", &proxy, "link", "set", host, "up"]);
        }
        Some(network)
    }

    fn add(&mut self, host: &str) -> bool {
        let name = self.name(host);
        let made = Command::new("ip")
            .args(["netns", "add", &name])
            .stderr(Stdio::null())
            .status();
        let made = made.is_ok_and(|status| status.success());
        if made {
            self.names.push(name);
        }
        made
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// Wraps `command` so that it runs on a host of the network.
    pub fn on(&self, host: &str, command: &Command) -> Command {
        let mut ip = Command::new(found("ip".as_ref()));
        ip.args(["netns", "exec", &self.name(host)]);
        within(ip, command)
    }

    /// Like [`Network::on`], with the machine's own `/sys`, because dockerd needs the control
    /// groups in it. `ip netns exec` would mount another `/sys`.
    pub fn on_with_sys(&self, host: &str, command: &Command) -> Command {
        let mut nsenter = Command::new(found("nsenter".as_ref()));
        nsenter.arg(format!("--net=/run/netns/{}", self.name(host)));
        within(nsenter, command)
    }

    /// Adds an IPv6 address to a host. `false` if this machine has no IPv6; the test then counts as
    /// skipped.
    pub fn add_ipv6(&self, host: &str, address: &str) -> bool {
        let mut command = Command::new(found("ip".as_ref()));
        command.args([
            "-n",
            &self.name(host),
            "-6",
            "addr",
            "add",
            address,
            "dev",
            "eth0",
            "nodad",
        ]);
        let done = command
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !done {
            skip(&test_name(), "this machine has no IPv6");
        }
        done
    }

    /// Silently drops packets to these ports of a host. `false` if there is no firewall in
    /// namespaces; the test then counts as skipped.
    pub fn drop_silently(&self, host: &str, ports: &str) -> bool {
        let mut iptables = Command::new("iptables");
        let path = std::env::var("PATH").unwrap_or_default();
        iptables.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        iptables.args(["-A", "INPUT", "-p", "tcp", "--dport", ports, "-j", "DROP"]);
        let done = self
            .on(host, &iptables)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !done {
            skip(&test_name(), "iptables does not work in a namespace here");
        }
        done
    }

    /// Starts a server on a host and waits until `http://address/` answers inside the network.
    pub fn serve(&self, host: &str, command: &Command, address: &str) -> Guard {
        let mut guard = Guard::start(self.on(host, command));
        let mut probe = Command::new("curl");
        probe.args([
            "-s",
            "-o",
            "/dev/null",
            "--noproxy",
            "*",
            &format!("http://{address}/"),
        ]);
        guard.wait_until(&format!("an answer at {address}"), || {
            self.on(host, &probe)
                .env("PATH", std::env::var_os("PATH").unwrap())
                .status()
                .unwrap()
                .success()
        });
        guard
    }

    /// The private registry: docker-registry at [`REGISTRY`].
    pub fn docker_registry(&self, place: &Place) -> Guard {
        let config = docker_registry_config(place, REGISTRY, "");
        let mut command = place.clean("docker-registry");
        command.arg("serve").arg(config);
        self.serve("registry", &command, REGISTRY)
    }

    /// An empty containerd on the node, with its own folders.
    pub fn containerd(&self, place: &Place) -> Containerd<'_> {
        let config = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";
        self.start_containerd("node", place, Path::new("containerd"), config, "")
    }

    /// Like [`Network::containerd`], with the files that `landfall render containerd` wrote to
    /// `folder`. Files below `etc/containerd` are at the same path on the node. The file for this
    /// release of containerd is the configuration; only the test's folders, sockets and snapshotter
    /// are added to it.
    pub fn containerd_with(&self, place: &Place, folder: &Path) -> Containerd<'_> {
        self.containerd_on("node", place, folder, "")
    }

    /// Like [`Network::containerd_with`], on another host, where a shell first runs `before`. Only
    /// this containerd sees mounts of the shell.
    pub fn containerd_on(
        &self,
        host: &'static str,
        place: &Place,
        folder: &Path,
        before: &str,
    ) -> Containerd<'_> {
        // machines of TKG have containerd 1.x
        let program = match folder.join("config-2.x.toml").exists() {
            true => containerd(),
            false => PathBuf::from("containerd"),
        };
        // the native snapshotter copies folders: overlays need more rights than a namespace gives
        let (file, snapshots) = match is_second(&program) {
            false => (
                "config-1.x.toml",
                "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"native\"\n",
            ),
            true => (
                "config-2.x.toml",
                "[plugins.\"io.containerd.cri.v1.images\"]\nsnapshotter = \"native\"\n\
                 [[plugins.\"io.containerd.transfer.v1.local\".unpack_config]]\nplatform = \"linux/amd64\"\nsnapshotter = \"native\"\n",
            ),
        };
        let config = std::fs::read_to_string(folder.join(file)).unwrap();
        let config = format!("{config}\n{snapshots}");
        // only this process sees the mount: `ip netns exec` gives it its own mount namespace
        let before = format!(
            "mount --bind '{}' /etc/containerd; {before}",
            folder.join("etc/containerd").display()
        );
        self.start_containerd(host, place, &program, &config, &before)
    }

    fn start_containerd(
        &self,
        host: &'static str,
        place: &Place,
        program: &Path,
        config: &str,
        before: &str,
    ) -> Containerd<'_> {
        // a short path: the name of a socket has room for about a hundred bytes
        let dir = tempfile::Builder::new()
            .prefix("landfall-node-")
            .tempdir()
            .unwrap();
        let socket = dir.path().join("sock").display().to_string();
        let at = dir.path().display();
        let version = if config.contains("\nversion = 3\n") {
            "version = 3\n"
        } else {
            "version = 2\n"
        };
        let folders = format!("{version}root = \"{at}/root\"\nstate = \"{at}/state\"\n");
        let config = config.replacen(version, &folders, 1)
            + &format!(
                "\n[grpc]\naddress = \"{socket}\"\n[ttrpc]\naddress = \"{socket}.ttrpc\"\n\
                 [plugins.\"io.containerd.internal.v1.opt\"]\npath = \"{at}/opt\"\n"
            );
        let config = place.write("node.toml", config);
        let mut command = place.clean("sh");
        command.args([
            "-ec",
            &format!(
                "{before}exec '{}' --config '{}'",
                program.display(),
                config.display()
            ),
        ]);
        let mut guard = Guard::start(self.on(host, &command));
        guard.wait_until("a socket that answers", || {
            let mut version = place.clean("ctr");
            version
                .args(["-a", &socket, "version"])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            version.status().is_ok_and(|status| status.success())
        });
        Containerd {
            network: self,
            host,
            socket,
            guard,
            _dir: dir,
        }
    }
}

/// Appends `command` to the arguments of `outer`. The result has the environment and the working
/// directory of `command`.
pub fn within(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    outer.env_clear();
    outer.envs(
        command
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    if let Some(dir) = command.get_current_dir() {
        outer.current_dir(dir);
    }
    outer
}

const CONTAINERD_2: LargeGoProgram = LargeGoProgram {
    variable: "LANDFALL_CONTAINERD",
    module: "github.com/containerd/containerd/v2@v2.4.2",
    path: "cmd/containerd",
    go: "1.26.6",
    replace: "",
    experiment: "",
};

/// The containerd for rendered files: the one that the variable `LANDFALL_CONTAINERD` names,
/// containerd 2 if `LANDFALL_BUILD_TOOLS` is set, or the installed one.
pub fn containerd() -> PathBuf {
    let variables = [CONTAINERD_2.variable, "LANDFALL_BUILD_TOOLS"];
    if variables
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        return "containerd".into();
    }
    CONTAINERD_2.find().expect("containerd 2 is built")
}

/// Whether this containerd is of release 2.
pub fn is_second(program: &Path) -> bool {
    let printed = run(Command::new(program).arg("--version"));
    String::from_utf8_lossy(&printed)
        .split_whitespace()
        .any(|word| word.trim_start_matches('v').starts_with("2."))
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.names.drain(..) {
            let _ = Command::new("ip").args(["netns", "delete", &name]).status();
        }
    }
}

/// A containerd that runs in a network namespace.
pub struct Containerd<'a> {
    network: &'a Network,
    host: &'static str,
    socket: String,
    guard: Guard,
    _dir: tempfile::TempDir,
}

impl Containerd<'_> {
    /// The log so far.
    pub fn log(&self) -> String {
        self.guard.log()
    }

    /// `ctr images pull` of a reference with these options. Returns the digest that containerd then
    /// has for the reference.
    pub fn pull(&self, place: &Place, options: &[&str], reference: &str) -> String {
        let pull = ["images", "pull", "--snapshotter", "native"];
        run(&mut self.ctr(place, &[&pull[..], options, &[reference]].concat()));
        let images = run(&mut self.ctr(place, &["images", "list", &format!("name=={reference}")]));
        let images = String::from_utf8_lossy(&images).into_owned();
        let digest = images
            .split_whitespace()
            .find(|word| word.starts_with("sha256:"));
        digest
            .unwrap_or_else(|| panic!("{reference} is not there:\n{images}"))
            .to_owned()
    }

    /// Pulls as the kubelet does: `PullImage` of the container runtime interface, written by hand
    /// because no client of it is packaged. The account, if any, is the one in containerd's
    /// configuration. Returns the response of containerd.
    pub fn pull_for_kubernetes(&self, place: &Place, reference: &str) -> String {
        // a message with one field, the image, which has one field, its name
        let field =
            |content: &[u8]| [&[0x0a, u8::try_from(content.len()).unwrap()], content].concat();
        let message = field(&field(reference.as_bytes()));
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let request = place.write("pull.grpc", [&[0], &length[..], &message].concat());
        let mut curl = place.clean("curl");
        curl.args([
            "-sS",
            "--http2-prior-knowledge",
            "--unix-socket",
            &self.socket,
            "-D",
            "-",
            "--output",
            "/dev/null",
        ]);
        curl.args([
            "-H",
            "content-type: application/grpc",
            "-H",
            "te: trailers",
            "--data-binary",
        ]);
        curl.arg(format!("@{}", request.display()))
            .arg("http://localhost/runtime.v1.ImageService/PullImage");
        let mut problem = String::new();
        for _ in 0..5 {
            let output = curl.output().unwrap();
            let headers = String::from_utf8_lossy(&output.stdout).into_owned();
            if headers.contains("grpc-status:") {
                return headers;
            }
            problem = headers + &String::from_utf8_lossy(&output.stderr);
            // some releases of curl take the reset with which a server ends a call for an error
            // (92), at times before they have written the answer
            if output.status.code() != Some(92) {
                break;
            }
        }
        panic!("no answer of containerd: {problem}");
    }

    /// `ctr images push` of a pulled image under another name, over plain http.
    pub fn push(&self, place: &Place, pulled: &str, name: &str) {
        run(&mut self.ctr(place, &["images", "tag", pulled, name]));
        run(&mut self.ctr(
            place,
            &[
                "images",
                "push",
                "--plain-http",
                "--platform",
                "linux/amd64",
                name,
            ],
        ));
    }

    /// The content of a file in a pulled image.
    pub fn file(&self, place: &Place, reference: &str, path: &str) -> Vec<u8> {
        // mounts in a namespace are visible only there: mount and read in one process
        let target = place.path("mounted");
        std::fs::create_dir_all(&target).unwrap();
        let target = target.display();
        let script = format!(
            "ctr -a '{0}' images mount --snapshotter native '{reference}' '{target}' >&2 && cat '{target}/{path}'; \
             status=$?; umount '{target}' 2>/dev/null; exit $status",
            self.socket
        );
        let mut shell = place.clean("sh");
        shell.args(["-c", &script]);
        run(&mut self.network.on(self.host, &shell))
    }

    /// A shell script on the host. In it, `ctr` uses this containerd.
    pub fn shell(&self, place: &Place, script: &str) -> Command {
        let mut shell = place.clean("sh");
        shell.args(["-ec", script]);
        shell
            .env("CONTAINERD_ADDRESS", &self.socket)
            .env("CONTAINERD_SNAPSHOTTER", "native");
        self.network.on(self.host, &shell)
    }

    fn ctr(&self, place: &Place, args: &[&str]) -> Command {
        let mut command = place.clean("ctr");
        command.args(["-a", &self.socket]).args(args);
        self.network.on(self.host, &command)
    }
}

/// Writes `HOST/hosts.toml` below `dir`, which makes containerd try `mirror` first for `host`.
pub fn hosts_toml(dir: &Path, host: &str, mirror: &str) {
    let folder = dir.join(host);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "server = \"https://{host}\"\n\n[host.\"{mirror}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
    );
    std::fs::write(folder.join("hosts.toml"), text).unwrap();
}

fn ip(args: &[&str]) {
    run(Command::new("ip").args(args));
}
