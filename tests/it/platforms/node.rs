//! `node`: the golden files, and the script run with dash below a folder that stands for the root
//! of a machine, with the files from a server on loopback, from `landfall serve`, and from a
//! folder.

use super::{CERTIFICATE, compare, files, place, refused};
use crate::support::faults::{Content, Faults};
use crate::support::images::sha256;
use crate::support::pki::Authority;
use crate::support::{Place, landfall_serve, need, run, test_name};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const KUBERNETES: &str = "https://dl.k8s.io/release/v1.35.8/bin/linux/amd64";
const UNITS: &str =
    "https://raw.githubusercontent.com/kubernetes/release/v0.16.2/cmd/krel/templates/latest";

/// The programs of the script and its tests. Units are enabled by systemctl of this machine.
const PROGRAMS: [&str; 5] = ["dash", "curl", "tar", "gzip", "systemctl"];

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The URL and the content of each file of the lock, for this machine.
pub(super) fn locked_files(place: &Place) -> Vec<(String, Vec<u8>)> {
    let program = |name: &str| format!("#!/bin/sh\necho {name} \"$@\"\n").into_bytes();
    let archive = |members: &[&str]| {
        for member in members {
            let path = place.write(&format!("stage/{member}"), program(member));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut tar = place.clean("tar");
        let stage = place.path("stage");
        let bytes = run(tar.arg("-C").arg(stage).args(["-czf", "-"]).args(members));
        std::fs::remove_dir_all(place.path("stage")).unwrap();
        bytes
    };
    let here = architecture();
    let url = |url: &str| url.replace("amd64", here);
    let mut all: Vec<(String, Vec<u8>)> = ["kubelet", "kubeadm", "kubectl"]
        .iter()
        .map(|name| (url(&format!("{KUBERNETES}/{name}")), program(name)))
        .collect();
    let github = "https://github.com";
    all.push((
        url(&format!(
            "{github}/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-amd64-v1.9.1.tgz"
        )),
        archive(&["bridge", "loopback"]),
    ));
    all.push((
        url(&format!(
            "{github}/kubernetes-sigs/cri-tools/releases/download/v1.35.0/crictl-v1.35.0-linux-amd64.tar.gz"
        )),
        archive(&["crictl"]),
    ));
    all.push((
        url(&format!(
            "{github}/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-amd64.tar.gz"
        )),
        archive(&["bin/containerd", "bin/ctr"]),
    ));
    all.push((
        url(&format!(
            "{github}/opencontainers/runc/releases/download/v1.4.3/runc.amd64"
        )),
        program("runc"),
    ));
    let start = |path: &str| {
        format!("[Service]\nExecStart={path}\n\n[Install]\nWantedBy=multi-user.target\n")
            .into_bytes()
    };
    all.push((
        "https://raw.githubusercontent.com/containerd/containerd/v2.3.4/containerd.service".into(),
        start("/usr/local/bin/containerd"),
    ));
    all.push((
        format!("{UNITS}/kubelet/kubelet.service"),
        start("/usr/bin/kubelet"),
    ));
    all.push((
        format!("{UNITS}/kubeadm/10-kubeadm.conf"),
        b"[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS\n".to_vec(),
    ));
    all.sort();
    all
}

/// The section `files` of a lock.
fn section(files: &[(String, Vec<u8>)]) -> String {
    let line = |(url, bytes): &(String, Vec<u8>)| {
        let digest = sha256(bytes);
        format!(
            "- {{name: \"{url}\", digest: \"{digest}\", size: {}}}\n",
            bytes.len()
        )
    };
    format!("files:\n{}", files.iter().map(line).collect::<String>())
}

/// A site with a file server, a rendered script, and a folder `machine` that has what a minimal
/// machine has.
struct Site {
    place: Place,
    server: Faults,
}

impl Site {
    fn new() -> Site {
        Site::with(&[])
    }

    fn with(render: &[&str]) -> Site {
        let mut content = Content::default();
        let place = place("", &["registry.k8s.io/pause:3.10.1"]);
        let files = locked_files(&place);
        for (url, bytes) in &files {
            let path = url.replacen("https:/", "/files", 1);
            content.files.insert(path, bytes.clone().into());
        }
        let lock = place.read("landfall.lock") + &section(&files);
        place.write("landfall.lock", lock);
        let server = Faults::new(content);
        place.write(
            "site.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"172.20.0.2:5000\", plainHTTP: true}}\nfiles: \"http://{}/files\"\n",
                server.address
            ),
        );
        let site = Site { place, server };
        site.render(render);
        site.machine();
        site
    }

    fn render(&self, more: &[&str]) {
        let args = ["render", "node", "--site", "site.yaml", "-o", "out"];
        self.place.ok(&[&args, more].concat());
    }

    /// Makes the machine anew.
    fn machine(&self) {
        let _ = std::fs::remove_dir_all(self.place.path("machine"));
        self.place
            .write("machine/etc/resolv.conf", "nameserver 172.20.0.2\n");
        for program in [
            "lib/systemd/systemd",
            "usr/sbin/conntrack",
            "usr/sbin/ip",
            "usr/sbin/iptables",
            "usr/bin/mount",
            "usr/bin/nsenter",
        ] {
            let path = self
                .place
                .write(&format!("machine/{program}"), "#!/bin/sh\n");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Runs the script on the machine. Returns whether it succeeded, and its output.
    fn install(&self, more: &[&str]) -> (bool, String) {
        let mut shell = self.place.clean("dash");
        shell
            .args(["out/install.sh", "--root", "machine"])
            .args(more);
        let ran = shell.output().unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        println!("{text}");
        (ran.status.success(), text)
    }

    /// Runs the script, which must succeed.
    fn installed(&self, more: &[&str]) -> String {
        let (good, text) = self.install(more);
        assert!(good, "{text}");
        text
    }

    /// Runs the script, which must fail in this step with these words and a fix.
    fn fails(&self, step: &str, words: &str, fix: &str, more: &[&str]) {
        let (good, text) = self.install(more);
        let head = format!("FAILED at step {step}: ");
        assert!(!good && text.matches("FAILED").count() == 1, "{text}");
        assert!(text.contains(&head) && text.contains(words), "{text}");
        let (_, told) = text.split_once("  fix: ").unwrap();
        assert!(told.contains(fix), "{text}");
    }

    fn on_machine(&self, path: &str) -> String {
        self.place.read(&format!("machine/{path}"))
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_files_match_the_golden_files() {
    let site = "registry:
  address: registry.corp.example/mirror
  ca: ca.crt
  credentials: {file: account}
files: http://172.20.0.2:8080
consumers: [containerd]
clusters: [{name: blue, serviceCIDR: 10.112.0.0/16}]
proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\"}
";
    let images = ["quay.io/team/app:v1", "registry.k8s.io/pause:3.10.1"];
    let place = place(site, &images);
    place.write("ca.crt", CERTIFICATE);
    place.write("account", "puller:pass'word\n");
    place.write(
        "own.toml",
        "[plugins.\"io.containerd.cri.v1.runtime\"]\nrestrict_oom_score_adj = true\n",
    );
    let packages = include_str!("../../data/packages/machines.lock").replace("version: 1\n", "");
    let url = |arch: &str| format!("https://dl.k8s.io/release/v1.35.8/bin/linux/{arch}/kubelet");
    let locked = [
        (
            "https://github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-amd64.tar.gz".to_owned(),
            b"c".to_vec(),
        ),
        (url("amd64"), b"k".to_vec()),
        (url("arm64"), b"a".to_vec()),
    ];
    let lock = place.read("landfall.lock") + &section(&locked) + &packages;
    place.write("landfall.lock", lock);
    let settings = [
        "cluster=blue",
        "interface=eth0",
        "nameserver=172.20.0.2",
        "bridge=10.244.1.0/24",
        "pod-routes=10.244.2.0/24@172.20.0.5,fd00:2::/64@fd00::5",
        "proxy=on",
    ];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let args: Vec<&str> = ["render", "node", "--site", "site.yaml", "-o", "out"]
        .into_iter()
        .chain(["--containerd-config", "own.toml"])
        .chain(settings)
        .collect();
    let printed = place.ok(&args);
    let mut made = files(&place.path("out"));
    // cloud-init writes the same script to its path, and runs it
    let data: serde_yaml::Value = serde_yaml::from_str(&place.read("out/cloud-init.yaml")).unwrap();
    assert_eq!(
        data["write_files"][0]["content"],
        place.read("out/install.sh").as_str()
    );
    assert_eq!(data["runcmd"][0][1], data["write_files"][0]["path"]);
    let data = made.remove(Path::new("cloud-init.yaml")).unwrap();
    assert!(
        data.starts_with("#cloud-config\n# Written by `landfall render node "),
        "{data}"
    );
    // so does Ignition with a unit
    let config = made.remove(Path::new("ignition.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let file = &config["storage"]["files"][0];
    let source = file["contents"]["source"].as_str().unwrap();
    let script = STANDARD.decode(source.strip_prefix("data:;base64,").unwrap());
    assert_eq!(script.unwrap(), place.read_bytes("out/install.sh"));
    assert_eq!(file["mode"], 0o700);
    let start = format!("/bin/sh {} --replace\n", file["path"].as_str().unwrap());
    let unit = config["systemd"]["units"][0]["contents"].as_str().unwrap();
    assert!(unit.contains(&start), "{unit}");
    // the steps are the same for every site, and their source is reviewed itself
    let script = made.get_mut(Path::new("install.sh")).unwrap();
    let steps = script.find("\n# --- steps").unwrap();
    script.truncate(steps);
    made.insert("printed.txt".into(), printed);
    compare(&made, "node-corp");
    for file in ["out/install.sh", "out/cloud-init.yaml", "out/ignition.json"] {
        assert_eq!(mode(&place.path(file)) & 0o077, 0, "{file} has the account");
    }
    if need(&["shellcheck"]) {
        let mut check = place.clean("shellcheck");
        run(check.args(["--shell=dash", "--severity=warning", "out/install.sh"]));
    }
}

#[test]
fn the_script_installs_everything_and_a_second_run_changes_nothing() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::with(&["--set", "interface=eth0"]);
    let printed = site.installed(&[]);
    assert!(
        printed.contains("files done: installed kubelet ("),
        "{printed}"
    );
    for program in [
        "usr/local/bin/kubelet",
        "usr/local/bin/kubeadm",
        "usr/local/bin/kubectl",
        "usr/local/bin/crictl",
        "usr/local/bin/containerd",
        "usr/local/bin/ctr",
        "usr/local/sbin/runc",
        "opt/cni/bin/bridge",
    ] {
        let path = site.place.path(format!("machine/{program}"));
        assert_eq!(mode(&path), 0o755, "{program}");
    }
    let units = "etc/systemd/system";
    for unit in ["kubelet.service", "kubelet.service.d/10-kubeadm.conf"] {
        let text = site.on_machine(&format!("{units}/{unit}"));
        assert!(text.contains("=/usr/local/bin/kubelet"), "{text}");
    }
    for unit in ["containerd", "kubelet", "landfall-route"] {
        let link = format!("machine/{units}/multi-user.target.wants/{unit}.service");
        assert!(site.place.path(link).symlink_metadata().is_ok(), "{unit}");
    }
    let config = site.on_machine("etc/containerd/config.toml");
    assert!(
        config.contains("version = 3\n") && config.contains("SystemdCgroup = true\n"),
        "{config}"
    );
    let checked = site
        .place
        .ok(&["doctor", "machine/etc/containerd/config.toml"]);
    assert!(checked.contains("/etc/containerd/certs.d"), "{checked}");
    assert!(
        site.on_machine("etc/crictl.yaml")
            .contains("containerd.sock")
    );
    let registry = "etc/containerd/certs.d/registry.k8s.io/hosts.toml";
    assert!(site.on_machine(registry).contains("172.20.0.2:5000"));
    if need(&["systemd-analyze"]) {
        let mut verify = site.place.clean("systemd-analyze");
        let root = format!("--root={}", site.place.path("machine").display());
        let ran = verify
            .args(["verify", &root, "landfall-route.service", "kubelet.service"])
            .output()
            .unwrap();
        // the folder has neither a shell nor the targets of systemd
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let wrong = ["Unknown", "parse", "Invalid", "Missing", "bad"];
        assert!(!wrong.iter().any(|word| said.contains(word)), "{said}");
    }

    let before = files(&site.place.path("machine"));
    let requests = site.server.seen().len();
    let again = site.installed(&[]);
    assert!(
        again.contains("ready: 0 changes") && !again.contains(" done: "),
        "{again}"
    );
    assert_eq!(files(&site.place.path("machine")), before);
    assert_eq!(
        site.server.seen().len(),
        requests,
        "nothing is downloaded again"
    );
    // what is lost or changed is installed again, and nothing else
    std::fs::remove_file(site.place.path("machine/opt/cni/bin/bridge")).unwrap();
    site.place.write("machine/usr/local/bin/kubeadm", "broken");
    let again = site.installed(&[]);
    assert_eq!(again.matches(" done: ").count(), 2, "{again}");
    assert_eq!(files(&site.place.path("machine")), before);
}

#[test]
fn a_wrong_checksum_or_a_missing_file_names_the_step_and_the_next_run_continues() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    let path = format!(
        "/files/dl.k8s.io/release/v1.35.8/bin/linux/{}/kubelet",
        architecture()
    );
    let good = site.server.content(|content| {
        content
            .files
            .insert(path.clone(), b"another kubelet".to_vec().into())
    });
    site.fails(
        "files",
        "wrong checksum of dl.k8s.io/",
        "deliver the bundle",
        &[],
    );
    assert!(!site.place.path("machine/usr/local/bin/kubelet").exists());
    assert!(
        site.place.path("machine/usr/local/sbin/runc").exists(),
        "earlier files stay"
    );
    site.server.content(|content| content.files.remove(&path));
    site.fails(
        "files",
        "the file server has no http://",
        "deliver the bundle",
        &[],
    );
    site.server
        .content(|content| content.files.insert(path.clone(), good.unwrap()));
    let printed = site.installed(&[]);
    assert!(printed.contains("files ok: runc is installed"), "{printed}");
    assert!(
        printed.contains("files done: installed kubelet"),
        "{printed}"
    );
    let nowhere = ["--from", "http://127.0.0.1:1"];
    site.machine();
    site.fails(
        "files",
        "cannot download http://127.0.0.1:1/",
        "start the file server",
        &nowhere,
    );
    site.fails(
        "files",
        "the folder has no ",
        "landfall export files",
        &["--from", "nowhere"],
    );
    site.fails(
        "options",
        "there is no step 'swop'",
        "swap network",
        &["--skip", "swop"],
    );
}

#[test]
fn files_of_an_older_installation_stay_unless_they_may_be_replaced() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    site.place
        .write("machine/usr/local/bin/kubelet", "an old kubelet");
    site.fails("files", "/usr/local/bin/kubelet exists", "--replace", &[]);
    assert_eq!(site.on_machine("usr/local/bin/kubelet"), "an old kubelet");
    let config = "etc/containerd/config.toml";
    site.place.write(
        &format!("machine/{config}"),
        "disabled_plugins = [\"cri\"]\n",
    );
    std::fs::remove_file(site.place.path("machine/usr/local/bin/kubelet")).unwrap();
    site.fails(
        "config",
        "/etc/containerd/config.toml exists",
        "--replace",
        &[],
    );
    site.place.write("machine/etc/crictl.yaml", "mine: true\n");
    site.installed(&["--replace"]);
    let saved = site.on_machine(&format!("{config}.before-landfall"));
    assert_eq!(saved, "disabled_plugins = [\"cri\"]\n");
    assert_eq!(
        site.on_machine("etc/crictl.yaml.before-landfall"),
        "mine: true\n"
    );
    // the files of the script itself are replaced without a question, such as those of a new lock
    site.render(&["--set", "nameserver=172.20.0.9"]);
    let config = format!("machine/{config}");
    let older = site.place.read(&config).replace("true", "false");
    site.place.write(&config, older);
    let printed = site.installed(&[]);
    assert!(
        printed.contains("config done: wrote /etc/containerd/config.toml"),
        "{printed}"
    );
}

#[test]
fn a_machine_that_lacks_something_is_named_in_its_step() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    std::fs::remove_file(site.place.path("machine/usr/sbin/conntrack")).unwrap();
    site.fails("programs", "the machine lacks: conntrack", "manifest", &[]);
    site.machine();
    std::fs::remove_file(site.place.path("machine/etc/resolv.conf")).unwrap();
    let printed = site.installed(&[]);
    assert!(
        printed.contains("network note: /etc/resolv.conf has no name server"),
        "{printed}"
    );
    site.render(&["--set", "nameserver=172.20.0.9"]);
    site.installed(&[]);
    assert_eq!(
        site.on_machine("etc/resolv.conf"),
        "nameserver 172.20.0.9\n"
    );
    std::fs::remove_dir_all(site.place.path("machine/lib")).unwrap();
    site.fails("system", "the machine has no systemd", "distribution", &[]);
}

#[test]
fn the_files_come_from_landfall_serve_and_from_a_folder() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    let hosts = ["dl.k8s.io", "github.com", "raw.githubusercontent.com"];
    let mirrors = hosts.map(|host| {
        let address = &site.server.address;
        format!("  {host}: {{mirror: \"http://{address}/files/{host}\"}}\n")
    });
    let up = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams:\n{}",
        mirrors.concat()
    );
    site.place.write("up.yaml", up);
    let lock = site.place.read("landfall.lock");
    let only_files = lock.split_once("files:").unwrap().1;
    site.place
        .write("files.lock", format!("version: 1\nfiles:{only_files}"));
    let bundle = ["--bundle", "b.tar.zst"];
    site.place.ok(&[
        &["pull", "--lock", "files.lock", "--site", "up.yaml"][..],
        &bundle,
    ]
    .concat());
    site.place
        .ok(&["export", "files", "b.tar.zst", "-o", "www"]);
    site.installed(&["--from", "www"]);

    let authority = Authority::new(&site.place, "site-ca");
    let (cert, key) = authority.issue(&site.place, &["localhost"]);
    let [cert, key] = [cert, key].map(|path| path.display().to_string());
    let args = ["b.tar.zst", "--tls-cert", &cert, "--tls-key", &key];
    let server = landfall_serve(&site.place, &args);
    let port = server.address.rsplit(':').next().unwrap();
    let from = format!("https://localhost:{port}");
    site.machine();
    site.fails(
        "files",
        "no trusted TLS connection to https://localhost",
        "registry.ca",
        &["--from", &from],
    );
    site.place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"localhost:{port}\", ca: site-ca/ca.pem}}\nfiles: \"{from}\"\n"
        ),
    );
    site.render(&[]);
    // the proxy of the environment is not used for a server of the site
    let mut shell = Command::new("dash");
    shell
        .current_dir(site.place.dir())
        .env("https_proxy", "http://127.0.0.1:1")
        .args(["out/install.sh", "--root", "machine"]);
    run(&mut shell);
    let trusted = site.on_machine("usr/local/share/ca-certificates/landfall-site-1.crt");
    assert!(trusted.contains("BEGIN CERTIFICATE"), "{trusted}");
}

#[test]
fn the_authority_is_where_the_system_reads_it() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    site.place.write("ca.crt", CERTIFICATE);
    let text = site.place.read("site.yaml");
    site.place
        .write("site.yaml", text.replace("plainHTTP: true", "ca: ca.crt"));
    site.render(&[]);
    for folder in [
        "usr/local/share/ca-certificates",
        "etc/pki/ca-trust/source/anchors",
        "etc/pki/trust/anchors",
    ] {
        site.machine();
        std::fs::create_dir_all(site.place.path(format!("machine/{folder}"))).unwrap();
        site.installed(&[]);
        let trusted = site.on_machine(&format!("{folder}/landfall-site-1.crt"));
        assert_eq!(trusted.matches("BEGIN CERTIFICATE").count(), 1, "{folder}");
    }
}

/// Flatcar has containerd and runc, and its `/usr` cannot be written.
#[test]
fn programs_are_below_opt_on_flatcar() {
    if !need(&PROGRAMS) {
        return;
    }
    let site = Site::new();
    site.place.write("ca.crt", CERTIFICATE);
    let text = site.place.read("site.yaml");
    site.place
        .write("site.yaml", text.replace("plainHTTP: true", "ca: ca.crt"));
    site.render(&[]);
    let usr = [
        ("bin/containerd", "#!/bin/sh\n"),
        ("bin/runc", "#!/bin/sh\n"),
        (
            "lib/systemd/system/containerd.service",
            "[Service]\nExecStart=/usr/bin/containerd --config /usr/share/containerd/config.toml\n\
             [Install]\nWantedBy=multi-user.target\n",
        ),
    ];
    for (file, text) in usr {
        let path = site.place.write(&format!("machine/usr/{file}"), text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    site.place
        .write("machine/etc/os-release", "NAME=Flatcar\nID=flatcar\n");
    let of_usr = files(&site.place.path("machine/usr"));
    let install = || {
        let mut shell = site.place.clean("dash");
        String::from_utf8(run(shell.args(["-c", ON_FLATCAR]))).unwrap()
    };
    let printed = install();
    assert!(
        printed.contains("containerd is that of Flatcar") && printed.contains("/usr/libexec"),
        "{printed}"
    );
    assert_eq!(files(&site.place.path("machine/usr")), of_usr);
    for program in ["kubelet", "kubeadm", "kubectl", "crictl"] {
        let path = site.place.path(format!("machine/opt/bin/{program}"));
        assert_eq!(mode(&path), 0o755, "{program}");
    }
    for (file, words) in [
        ("etc/containerd/config.toml", "version = 2\n"),
        ("etc/ssl/certs/landfall-site-1.pem", "BEGIN CERTIFICATE"),
        (
            "etc/systemd/system/containerd.service.d/10-landfall-config.conf",
            "ExecStart=/usr/bin/containerd\n",
        ),
        ("etc/systemd/system/kubelet.service", "=/opt/bin/kubelet"),
        (
            "etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
            "=/opt/bin/kubelet",
        ),
    ] {
        let text = site.on_machine(file);
        assert!(text.contains(words), "{file}: {text}");
    }
    assert!(install().contains("ready: 0 changes"));
}

/// Runs the script with a `chroot` that knows only the version of containerd.
const ON_FLATCAR: &str = r"
chroot() {
    case $* in *containerd\ --version) echo 'containerd github.com/containerd/containerd v1.7.27 05044ec0' ;; esac
}
set -- --root machine
. out/install.sh
";

/// Runs the script with a `chroot` that only records its commands. The first one of apt-get meets a
/// lock.
const RECORDED: &str = r#"
locked=yes
chroot() {
    shift
    echo "$*" >>said
    case $locked:$* in
        yes:*apt-get*)
            locked=no
            echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)' >&2
            return 100
            ;;
    esac
}
sleep() {
    echo "sleep $*" >>said
}
. out/install.sh
"#;

/// Installs the packages of a lock without files. Returns the output, the commands, and the sources
/// of apt.
fn install_packages(files: &str, from: &str) -> [String; 3] {
    let site = format!("files: \"{files}\"\n");
    let place = place(&site, &["registry.k8s.io/pause:3.10.1"]);
    let packages = include_str!("../../data/packages/machines.lock").replace("version: 1\n", "");
    place.write("landfall.lock", place.read("landfall.lock") + &packages);
    place.ok(&["render", "node", "--site", "site.yaml", "-o", "out"]);
    for program in ["lib/systemd/systemd", "usr/bin/apt-get"] {
        let path = place.write(&format!("machine/{program}"), "#!/bin/sh\n");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut shell = place.clean("dash");
    shell
        .args(["-c", RECORDED, "sh", "--root", "machine"])
        .args(["--from", from]);
    for step in ["config", "programs", "network", "services"] {
        shell.args(["--skip", step]);
    }
    let output = String::from_utf8(run(&mut shell)).unwrap();
    let sources = place.read("machine/etc/apt/landfall.sources.d/landfall.sources");
    [output, place.read("said"), sources]
}

#[test]
fn everything_may_come_from_packages() {
    const IPV4: &str = "http://172.20.0.2:8080";
    const IPV6: &str = "http://[fd00::1]:8080";
    if !need(&["dash"]) {
        return;
    }
    for (files, from, url, host) in [
        (IPV4, IPV4, IPV4, "172.20.0.2"),
        (IPV6, IPV6, IPV6, "fd00::1"),
        (IPV6, "http://f.test/", "http://f.test", "f.test"),
        (IPV4, IPV6, IPV6, "fd00::1"),
        (IPV6, "/srv/R&D|1", "file:/srv/R&D|1", "/srv/R&D|1"),
    ] {
        let [output, commands, sources] = install_packages(files, from);
        assert!(
            output.contains("packages done: installed conntrack"),
            "{output}"
        );
        let proxy = format!(" -o Acquire::http::Proxy::{host}=DIRECT ");
        assert_eq!(commands.matches(&proxy).count(), 3, "{commands}");
        assert_eq!(commands.matches("\nsleep 2\n").count(), 1, "{commands}");
        assert!(commands.contains(" install -y conntrack\n"), "{commands}");
        let url = format!("\nURIs: {url}/archive.example.com/debian\n");
        assert!(sources.contains(&url), "{from}: {sources}");
    }
}

#[test]
fn wrong_settings_and_ambiguous_locks_are_refused() {
    let place = place("registry: {address: r.test}\nfiles: http://f.test\n", &[]);
    for (setting, words) in [
        ("interface=eth0;reboot", "the name of an interface"),
        ("service-cidr=10.96.0.0", "a range of addresses"),
        ("service-cidr=10.96.0.0/40", "a range of addresses"),
        ("service-cidr=10.96.0.0/12,", "a range of addresses"),
        ("service-cidr=10.96.0.0/12,10.0.0.0/16", "one of IPv6"),
        ("bridge=10.244.0.0", "a range of addresses"),
        ("pod-routes=10.244.1.0/24@172.20.0.4", "needs --set bridge"),
        ("nameserver=dns.test", "an IP address"),
        ("kubernetes=v1.36.0", "no kubelet of this version"),
        ("cluster=red", "no `clusters`"),
    ] {
        let message = refused(&place, 2, &["node", "--set", setting]);
        assert!(message.contains(words), "{setting}: {message}");
    }
    for (routes, words) in [
        ("10.244.1.0/24", "the node's address"),
        ("10.244.1.0/24@node-2", "the node's address"),
        ("10.244.1.0@172.20.0.4", "the node's address"),
        ("10.244.1.0/24@172.20.0.4,", "the node's address"),
        ("10.244.1.0/24@172.20.0.4;reboot", "the node's address"),
        ("10.244.0.0/16@172.20.0.4", "overlaps"),
    ] {
        let routes = format!("pod-routes={routes}");
        let args = ["node", "--set", "bridge=10.244.0.0/24", "--set", &routes];
        let message = refused(&place, 2, &args);
        assert!(message.contains(words), "{routes}: {message}");
    }
    let url =
        |version: &str| format!("https://dl.k8s.io/release/{version}/bin/linux/amd64/kubelet");
    let two = [
        (url("v1.35.8"), b"a".to_vec()),
        (url("v1.35.9"), b"b".to_vec()),
    ];
    place.write(
        "landfall.lock",
        place.read("landfall.lock") + &section(&two),
    );
    let message = refused(&place, 4, &["node"]);
    assert!(
        message.contains("several files for kubelet (amd64)")
            && message.contains("--set kubernetes=VERSION"),
        "{}: {message}",
        test_name()
    );
    place.ok(&[
        "render",
        "node",
        "--set",
        "kubernetes=v1.35.9",
        "--site",
        "site.yaml",
        "-o",
        "out",
    ]);
    assert!(
        place.read("out/install.sh").contains("/v1.35.9/")
            && !place.read("out/install.sh").contains("/v1.35.8/")
    );
}

#[test]
fn services_of_both_families_get_routes_and_forwarding() {
    let site = "files: http://f.test\nclusters: [{name: a, serviceCIDR: \"10.112.0.0/16, fd00:1::/112\"}]\n";
    let place = place(site, &["registry.k8s.io/pause:3.10.1"]);
    let render = |settings: &[&str]| {
        let args = ["render", "node", "--site", "site.yaml", "-o", "out"];
        place.ok(&[&args, settings].concat());
        place.read("out/install.sh")
    };
    let forward = "\nnet.ipv6.conf.all.forwarding = 1\n";
    let script = render(&["--set", "interface=eth0"]);
    for line in [
        "\nSERVICE_CIDRS='10.112.0.0/16 fd00:1::/112'\n",
        "\nExecStart=/bin/sh -c 'exec ip route replace 10.112.0.0/16 dev eth0'\n",
        "\nExecStart=/bin/sh -c 'exec ip route replace fd00:1::/112 dev eth0'\n",
    ] {
        assert_eq!(script.matches(line).count(), 1, "{line}: {script}");
    }
    // in the step of the script, and in the file for the next start
    assert_eq!(script.matches(forward).count(), 2, "{script}");
    let script = render(&["--set", "service-cidr=10.112.0.0/16"]);
    assert!(!script.contains(forward), "{script}");
}

#[test]
fn no_registry_is_needed_if_images_are_loaded_from_archives() {
    let place = place("files: http://f.test\n", &["registry.k8s.io/pause:3.10.1"]);
    place.ok(&["render", "node", "--site", "site.yaml", "-o", "out"]);
    let script = place.read("out/install.sh");
    assert!(
        script.contains("sandbox = \"registry.k8s.io/pause:3.10.1\""),
        "{script}"
    );
    assert!(!script.contains("hosts.toml"), "{script}");
}
