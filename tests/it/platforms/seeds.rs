//! The values of the documents that landfall is based on. Each document is rendered from one
//! site file, and its values are checked one by one.

use super::{CERTIFICATE, entries, place};
use crate::support::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::Value;
use std::path::Path;

pub(super) fn yaml(place: &Place, file: &str) -> Value {
    serde_yaml::from_str(&place.read(&format!("out/{file}"))).unwrap()
}

pub(super) fn render(place: &Place, args: &[&str]) {
    place.ok(&[&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat());
}

/// The value at `path`, whose parts are separated by spaces.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split(' ')
        .fold(value, |value, part| match part.parse::<usize>() {
            Ok(index) => &value[index],
            Err(_) => &value[part],
        })
}

/// A Secret's text under `key`, read as YAML.
fn inner(secret: &Value, key: &str) -> Value {
    serde_yaml::from_str(secret["stringData"][key].as_str().unwrap()).unwrap()
}

/// A folder with the site that is shipped for `family`, and a lock of `images`.
pub(super) fn shipped(family: &str, images: &[&str]) -> Place {
    let place = place("", images);
    let site = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("manifests")
        .join(family)
        .join("site.yaml");
    place.write("site.yaml", std::fs::read(site).unwrap());
    place
}

/// Asserts that `list` has exactly the NO_PROXY entries of the page on TKG. The registry is not
/// among them: it is reached through the proxy.
fn tkg_no_proxy(list: &Value) {
    let shown = entries(".svc.cluster.local,.svc,localhost,127.0.0.1,100.64.0.0/13,100.96.0.0/11");
    assert_eq!(entries(list.as_str().unwrap()), shown);
}

#[test]
fn tkg_has_every_value_of_the_page_on_its_proxy() {
    let place = shipped("tkg", &["projects.registry.vmware.com/tkg/pause:3.9"]);
    render(&place, &["tkg"]);
    let is = |file: &str, path: &str, expected: Value| {
        assert_eq!(
            *at(&yaml(&place, &format!("cluster/{file}")), path),
            expected,
            "{file} {path}"
        );
    };
    let text = |text: &str| Value::from(text);
    is("cluster-config.yaml", "TKG_HTTP_PROXY_ENABLED", true.into());
    let variables = "spec topology variables";
    for (path, value) in [
        ("0 name", "imageRepository"),
        ("0 value host", "projects.registry.vmware.com/tkg"),
        ("1 name", "proxy"),
        ("1 value httpProxy", "http://asdf"),
        ("1 value httpsProxy", "https://asdf2"),
    ] {
        is("cluster.yaml", &format!("{variables} {path}"), text(value));
    }
    is("cluster-config.yaml", "TKG_HTTP_PROXY", text("http://asdf"));
    is(
        "cluster-config.yaml",
        "TKG_HTTPS_PROXY",
        text("https://asdf2"),
    );
    let machines = [
        (
            "kubeadm-control-plane.yaml",
            "spec kubeadmConfigSpec",
            "KubeadmControlPlane",
        ),
        (
            "kubeadm-config-template.yaml",
            "spec template spec",
            "KubeadmConfigTemplate",
        ),
    ];
    for (file, spec, kind) in machines {
        is(file, "kind", text(kind));
        is(
            file,
            &format!("{spec} files 0 path"),
            text("/etc/systemd/system/containerd.service.d/http-proxy.conf"),
        );
        is(
            file,
            &format!("{spec} files 1 path"),
            text("/usr/lib/systemd/system/kubelet.service.d/http-proxy.conf"),
        );
        is(
            file,
            &format!("{spec} joinConfiguration nodeRegistration name"),
            text("{{ ds.meta_data.hostname }}"),
        );
        let spec = at(&yaml(&place, &format!("cluster/{file}")), spec).clone();
        for one in spec["files"].as_sequence().unwrap() {
            assert_eq!(
                (&one["owner"], &one["permissions"]),
                (&text("root:root"), &text("0640"))
            );
            let unit = one["content"].as_str().unwrap();
            let variables = super::environment(unit);
            assert!(
                unit.starts_with("[Service]\n") && variables.len() == 3,
                "{unit}"
            );
            assert_eq!(
                (&*variables["HTTP_PROXY"], &*variables["HTTPS_PROXY"]),
                ("http://asdf", "https://asdf2")
            );
            tkg_no_proxy(&text(&variables["NO_PROXY"]));
        }
        let commands: Vec<&str> = spec["preKubeadmCommands"]
            .as_sequence()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect();
        let shown = [
            r#"hostname "{{ ds.meta_data.hostname }}""#,
            r#"echo "::1         ipv6-localhost ipv6-loopback" >/etc/hosts"#,
            "systemctl start containerd",
            "export HTTP_PROXY='http://asdf'",
            "export HTTPS_PROXY='https://asdf2'",
            r#"sed -i 's|".*/pause|"projects.registry.vmware.com/tkg/pause|' /etc/containerd/config.toml"#,
            "systemctl restart containerd",
        ];
        let places: Vec<Option<usize>> = shown
            .iter()
            .map(|line| commands.iter().position(|one| one == line))
            .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{commands:#?}"
        );
    }
    is(
        "kubeadm-config-template.yaml",
        "metadata name",
        text("cluster-md-0"),
    );
    is(
        "kubeadm-config-template.yaml",
        "metadata namespace",
        text("default"),
    );

    for (part, kind, key) in [
        ("cpi", "cloud-provider", "vsphereCPI"),
        ("csi", "csi", "vsphereCSI"),
    ] {
        let file = format!("cluster/vsphere-{part}-addon.yaml");
        let secret = yaml(&place, &file);
        assert_eq!(
            secret["metadata"]["name"],
            text(&format!("cluster-vsphere-{part}-addon"))
        );
        let annotation = format!("{kind}/vsphere-{part}");
        assert_eq!(
            secret["metadata"]["annotations"]["tkg.tanzu.vmware.com/addon-type"],
            text(&annotation)
        );
        let labels = &secret["metadata"]["labels"];
        assert_eq!(
            labels["tkg.tanzu.vmware.com/addon-name"],
            text(&format!("vsphere-{part}"))
        );
        assert_eq!(labels["tkg.tanzu.vmware.com/cluster-name"], text("cluster"));
        assert_eq!(secret["type"], text("tkg.tanzu.vmware.com/addon"));
        let values = secret["stringData"]["values.yaml"].as_str().unwrap();
        assert!(
            values.starts_with(
                "#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n"
            ),
            "{values}"
        );
        let values = &inner(&secret, "values.yaml")[key];
        assert_eq!(
            (&values["http_proxy"], &values["https_proxy"]),
            (&text("http://asdf"), &text("https://asdf2"))
        );
        tkg_no_proxy(&values["no_proxy"]);
    }
    let kapp = yaml(&place, "cluster/kapp-controller-addon.yaml");
    let labels = &kapp["metadata"]["labels"];
    assert_eq!(
        labels["tkg.tanzu.vmware.com/addon-name"],
        text("kapp-controller")
    );
    assert_eq!(labels["tkg.tanzu.vmware.com/cluster-name"], text("cluster"));
    let annotation = &kapp["metadata"]["annotations"]["tkg.tanzu.vmware.com/addon-type"];
    assert_eq!(*annotation, text("addons-management/kapp-controller"));
    assert!(
        kapp["stringData"]["values.yaml"]
            .as_str()
            .unwrap()
            .starts_with("#@data/values\n")
    );
    let kapp = &inner(&kapp, "values.yaml")["kappController"];
    assert_eq!(kapp["namespace"], text("tkg-system"));
    assert_eq!(kapp["createNamespace"], Value::from(true));
    assert_eq!(kapp["globalNamespace"], text("tanzu-package-repo-global"));
    assert_eq!(kapp["config"]["httpProxy"], text("http://asdf"));
    assert_eq!(kapp["config"]["httpsProxy"], text("https://asdf2"));
    tkg_no_proxy(&kapp["config"]["noProxy"]);

    for part in ["", " dns", " etcd local"] {
        let path = format!("spec kubeadmConfigSpec clusterConfiguration{part} imageRepository");
        is(
            "kubeadm-control-plane.yaml",
            &path,
            text("projects.registry.vmware.com/tkg"),
        );
    }

    let config = yaml(&place, "cluster/config-values.yaml");
    assert_eq!(config["metadata"]["name"], text("cluster-config-values"));
    assert_eq!(
        config["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/move"],
        text("")
    );
    assert_eq!(config["type"], text("addons.cluster.x-k8s.io/resource-set"));
    let values = inner(&config, "value");
    for (name, expected) in [
        ("CLUSTER_NAME", text("cluster")),
        ("NAMESPACE", text("default")),
        (
            "TKG_CUSTOM_IMAGE_REPOSITORY",
            text("projects.registry.vmware.com/tkg"),
        ),
        ("TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY", false.into()),
        ("TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE", text("")),
        ("TKG_HTTP_PROXY", text("http://asdf")),
        ("TKG_HTTPS_PROXY", text("https://asdf2")),
    ] {
        assert_eq!(values[name], expected, "{name}");
    }
    tkg_no_proxy(&values["TKG_NO_PROXY"]);
}

/// TKG uses the authority of the proxy in place of that of the registry.
#[test]
fn machines_of_tkg_trust_the_authorities_of_proxy_and_registry() {
    let site = "registry: {address: r.test/tkg, ca: ca.crt}\n\
                proxy: {http: \"http://p.test\", https: \"http://p.test\", ca: proxy.crt}\n\
                clusters: [{name: blue, namespace: n}]\n";
    let place = place(site, &["projects.registry.vmware.com/tkg/pause:3.9"]);
    place.write("ca.crt", CERTIFICATE);
    let other = CERTIFICATE.replace("b25l", "dHdv");
    place.write("proxy.crt", &other);
    render(&place, &["tkg"]);
    let both = format!("{CERTIFICATE}{other}");
    let variables = yaml(&place, "blue/cluster-config.yaml");
    assert_eq!(variables["TKG_PROXY_CA_CERT"], STANDARD.encode(&both));
    let cluster = yaml(&place, "blue/cluster.yaml");
    super::assert_published(&cluster, "cluster.yaml");
    let trust = at(
        &cluster,
        "spec topology variables 2 value additionalTrustedCAs",
    );
    let authority = format!("[{{name: proxy, data: {}}}]", STANDARD.encode(&both));
    assert_eq!(*trust, serde_yaml::from_str::<Value>(&authority).unwrap());
    let machines = yaml(&place, "blue/kubeadm-config-template.yaml");
    let machines = at(&machines, "spec template spec");
    let files = machines["files"].as_sequence().unwrap();
    let path = "/etc/ssl/certs/tkg-custom-ca.pem";
    let file = files.iter().find(|file| file["path"] == path).unwrap();
    assert_eq!(file["content"], both);
    let commands = machines["preKubeadmCommands"].as_sequence().unwrap();
    let trust = "! which update-ca-certificates 2>/dev/null || (mv /etc/ssl/certs/tkg-custom-ca.pem \
                 /usr/local/share/ca-certificates/tkg-custom-ca.crt && update-ca-certificates)";
    assert!(commands.iter().any(|command| command == trust));
}

/// A `ClusterClass` reads `tlsCertificateValidation` only if there is an authority.
#[test]
fn a_cluster_class_of_tkg_skips_the_verification_of_the_registry() {
    let variables = |ca: &str| {
        let site = format!("registry: {{address: r.test, skipVerify: true{ca}}}\n");
        let place = place(&site, &["projects.registry.vmware.com/tkg/pause:3.9"]);
        place.write("ca.crt", CERTIFICATE);
        render(&place, &["tkg", "--set", "cluster=blue"]);
        let cluster = yaml(&place, "cluster.yaml");
        super::assert_published(&cluster, "cluster.yaml");
        cluster["spec"]["topology"]["variables"].clone()
    };
    let repository =
        "{name: imageRepository, value: {host: r.test/tkg, tlsCertificateValidation: false}}";
    for (ca, other) in [
        (
            "",
            "{name: additionalImageRegistries, value: [{host: r.test, skipTlsVerify: true}]}"
                .to_owned(),
        ),
        (
            ", ca: ca.crt",
            format!(
                "{{name: trust, value: {{additionalTrustedCAs: [{{name: imageRepository, data: {}}}]}}}}",
                STANDARD.encode(CERTIFICATE)
            ),
        ),
    ] {
        let expected: Value = serde_yaml::from_str(&format!("[{repository}, {other}]")).unwrap();
        assert_eq!(variables(ca), expected, "{ca}");
    }
}

#[test]
fn giant_swarm_has_every_value_of_the_page_on_its_proxy() {
    let place = shipped("giantswarm", &[]);
    place.write("proxy-account", "myProxyUser:mySuperSecretPassword\n");
    render(&place, &["giantswarm"]);
    let url = Value::from("http://myProxyUser:mySuperSecretPassword@192.168.52.220:3128");
    let own = |list: &str| {
        let mut list = entries(list);
        list.insert("172.20.0.2".into());
        list
    };
    let set = |value: &Value| entries(value.as_str().unwrap());
    let patch = yaml(&place, "mycluster/secret-values.yaml.patch");
    assert_eq!(
        (&patch["proxy"]["http"], &patch["proxy"]["https"]),
        (&url, &url)
    );
    assert_eq!(
        set(&patch["proxy"]["noProxy"]),
        own("172.16.0.0/16,internal.corpdomain.net,example.com")
    );

    let composed = own(
        "cluster.local,100.64.0.0/13,100.96.0.0/11,178.170.32.59,172.16.0.0/16,internal.corpdomain.net,\
                        example.com,svc,127.0.0.1,localhost",
    );
    let secret = yaml(&place, "mycluster/cluster-values.yaml");
    assert_eq!(
        secret["metadata"]["name"],
        Value::from("mycluster-cluster-values")
    );
    let values = inner(&secret, "values");
    let proxy = &values["cluster"]["proxy"];
    assert_eq!((&proxy["http"], &proxy["https"]), (&url, &url));
    assert_eq!(set(&proxy["noProxy"]), composed);
    assert_eq!(set(&values["no_proxy"]), composed);
    assert_eq!(values["env"].as_sequence().unwrap().len(), 3);

    let app = yaml(&place, "mycluster/app.yaml");
    assert_eq!(
        app["apiVersion"],
        Value::from("application.giantswarm.io/v1alpha1")
    );
    for source in ["configMap", "secret"] {
        let source = &app["spec"]["config"][source];
        assert_eq!(source["name"], Value::from("mycluster-cluster-values"));
        assert_eq!(source["namespace"], Value::from("org-giantswarm"));
    }

    // six variables as on the page, and the same NO_PROXY list as in the pods
    let drop_in = yaml(&place, "mycluster/systemd-proxy.yaml");
    assert_eq!(
        drop_in["metadata"]["name"],
        Value::from("mycluster-systemd-proxy")
    );
    let unit = drop_in["stringData"]["containerdProxy"].as_str().unwrap();
    let variables = super::environment(unit);
    assert_eq!(
        (variables.len(), entries(&variables["NO_PROXY"])),
        (6, composed.clone())
    );

    let machines = |args: &[&str]| {
        render(&place, &[&["giantswarm"], args].concat());
        let spec = yaml(&place, "mycluster/kubeadm-config-spec.yaml");
        let drop_ins: Vec<Value> = spec["files"].as_sequence().unwrap().clone();
        let is_drop_in = |file: &Value| file["path"].as_str().unwrap().starts_with("/etc/systemd/");
        drop_ins.into_iter().filter(is_drop_in).collect::<Vec<_>>()
    };
    let [containerd] = &machines(&[])[..] else {
        panic!("the drop-in of containerd is not the only one")
    };
    assert_eq!(
        containerd["path"],
        Value::from("/etc/systemd/system/containerd.service.d/http-proxy.conf")
    );
    assert_eq!(containerd["permissions"], Value::from("0600"));
    let from = &containerd["contentFrom"]["secret"];
    assert_eq!(from["name"], Value::from("mycluster-systemd-proxy"));
    assert_eq!(from["key"], Value::from("containerdProxy"));
    let both = machines(&["--set", "cloud-provider=in-tree"]);
    assert_eq!(
        both[1]["path"],
        Value::from("/etc/systemd/system/kubelet.service.d/http-proxy.conf")
    );

    let chart = yaml(&place, "mycluster/cluster-chart-values.yaml");
    let proxy = at(&chart, "global connectivity proxy");
    assert_eq!(proxy["enabled"], Value::from(true));
    assert_eq!([&proxy["httpProxy"], &proxy["httpsProxy"]], [&url, &url]);
    assert_eq!(set(&proxy["noProxy"]), composed);
    let kyverno = yaml(
        &place,
        "mycluster/bootstrap/kyverno-policies-connectivity.yaml",
    );
    assert_eq!(kyverno["proxy"]["enabled"], Value::from(true));
    assert_eq!(set(&kyverno["cluster"]["proxy"]["noProxy"]), composed);
    assert_eq!(
        yaml(&place, "mycluster/bootstrap/cert-manager.yaml")["https_proxy"],
        url
    );
    assert_eq!(
        yaml(&place, "mycluster/bootstrap/chart-operator.yaml")["cluster"]["proxy"]["https"],
        url
    );
}

/// The whitelisting page of 2019: `paths` maps the images of Kubernetes to one folder.
#[test]
fn kubermatic_of_2019_has_its_node_settings() {
    let site = "registry:
  address: 172.20.0.2:5000
  plainHTTP: true
  paths: {k8s.gcr.io: kubernetes, gcr.io/google_containers: kubernetes}
consumers: [kubermatic]
proxy: {http: \"http://172.20.0.2:3128\", https: \"http://172.20.0.2:3128\"}
";
    let images = [
        "gcr.io/google_containers/hyperkube-amd64:v1.14.8",
        "k8s.gcr.io/pause:3.1",
    ];
    let place = place(site, &images);
    render(
        &place,
        &[
            "kubermatic",
            "--set",
            "version=2.12",
            "--set",
            "datacenter=dc-1",
        ],
    );
    let node = yaml(&place, "datacenters.yaml")["datacenters"]["dc-1"]["node"].clone();
    for (key, expected) in [
        ("http_proxy", "http://172.20.0.2:3128"),
        ("pause_image", "172.20.0.2:5000/kubernetes/pause:3.1"),
        // machine-controller crashes if this image has a tag
        (
            "hyperkube_image",
            "172.20.0.2:5000/kubernetes/hyperkube-amd64",
        ),
    ] {
        assert_eq!(node[key], Value::from(expected), "{key}");
    }
    assert_eq!(
        node["insecure_registries"][0],
        Value::from("172.20.0.2:5000")
    );
    // the certificate is verified unless the site says otherwise
    for (setting, note) in [
        (
            "  ca: ca.crt\n",
            "only if the image of their operating system contains it",
        ),
        ("", "nodes connect to 172.20.0.2:5000 over https"),
    ] {
        let verified = super::place(&site.replace("  plainHTTP: true\n", setting), &images);
        verified.write("ca.crt", CERTIFICATE);
        let version = ["--set", "version=2.12", "--set", "datacenter=dc-1"];
        let args = ["render", "kubermatic", "--site", "site.yaml", "-o", "out"];
        let printed = verified.ok(&[&args, &version[..]].concat());
        assert!(printed.contains(note), "{printed}");
        let text = verified.read("out/datacenters.yaml");
        assert!(!text.contains("insecure_registries"), "{text}");
    }
    // a containerd mirror can add a path prefix to a name, but not remove one
    let alone = super::place(&site.replace("consumers: [kubermatic]\n", ""), &images);
    let printed = super::refused(&alone, 4, &["containerd"]);
    assert!(
        printed.contains("google_containers/hyperkube-amd64")
            && printed.contains("consumers: [containerd]"),
        "{printed}"
    );
}

#[test]
fn the_shipped_site_of_kubeone_has_its_registry_and_proxy() {
    let images = [
        "registry.k8s.io/coredns/coredns:v1.12.0",
        "registry.k8s.io/pause:3.10",
    ];
    let place = shipped("kubeone", &images);
    render(&place, &["kubeone"]);
    let cluster = yaml(&place, "kubeone-cluster.yaml");
    assert_eq!(
        *at(&cluster, "registryConfiguration overwriteRegistry"),
        Value::from("172.20.0.2:5000")
    );
    assert_eq!(
        *at(&cluster, "proxy http"),
        Value::from("http://192.168.52.220:3128")
    );
    let list = entries(at(&cluster, "proxy noProxy").as_str().unwrap());
    assert!(
        ["172.20.0.2", "10.244.0.0/16", "10.96.0.0/12"]
            .iter()
            .all(|one| list.contains(*one)),
        "{list:?}"
    );
}

#[test]
fn the_shipped_site_of_cluster_api_has_a_folder_for_each_cluster() {
    let place = shipped("capi", &["registry.k8s.io/pause:3.10"]);
    render(&place, &["capi"]);
    for cluster in ["blue", "green"] {
        let secret = yaml(&place, &format!("{cluster}/secret.yaml"));
        assert_eq!(
            *at(&secret, "metadata namespace"),
            Value::from(format!("org-{cluster}"))
        );
        let machines = yaml(&place, &format!("{cluster}/kubeadm-control-plane.yaml"));
        assert_eq!(
            *at(&machines, "metadata name"),
            Value::from(format!("{cluster}-control-plane"))
        );
    }
}

#[test]
fn importing_and_rendering_a_tkg_configuration_reproduces_it() {
    let place = shipped("tkg", &["projects.registry.vmware.com/tkg/pause:3.9"]);
    render(&place, &["tkg"]);
    let first = yaml(&place, "cluster/cluster-config.yaml");
    place.ok(&[
        "import",
        "tkg",
        "out/cluster/config-values.yaml",
        "-o",
        "again",
    ]);
    std::fs::copy(place.path("again/site.yaml"), place.path("site.yaml")).unwrap();
    render(&place, &["tkg"]);
    let second = yaml(&place, "cluster/cluster-config.yaml");
    for (name, value) in first.as_mapping().unwrap() {
        match name.as_str().unwrap() {
            // the order of these entries does not matter
            "TKG_NO_PROXY" => tkg_no_proxy(&second[name]),
            _ => assert_eq!(second[name], *value, "{name:?}"),
        }
    }
    // an existing folder is not overwritten
    let again = [
        "import",
        "tkg",
        "out/cluster/config-values.yaml",
        "-o",
        "again",
    ];
    let run = place.command().args(again).output().unwrap();
    assert!(
        run.status.code() == Some(2),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
