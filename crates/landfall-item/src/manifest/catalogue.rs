//! The catalogue: manifests and sites that landfall ships, from the folder `manifests/`.

/// The manifests for one system, with an example site.
#[derive(Debug)]
pub struct CatalogueManifest {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The files below `manifests/`, each with its text. The last is the site.
    pub files: &'static [(&'static str, &'static str)],
    /// The edits that are required before use, one line each.
    pub edit: &'static [&'static str],
    /// The platform to which `landfall render` applies the site, with the platform's settings.
    pub platform: &'static str,
}

macro_rules! files {
    ($($file:literal),* $(,)?) => { &[$(($file, include_str!(concat!("../../../../manifests/", $file)))),*] };
}

// lines of `edit` that several systems share
const REGISTRY: &str = "site.yaml: the address of your registry, its CA and credentials";
const PACKAGES: &str =
    "site.yaml: the address of your registry, and of the server that has the packages";
const PROVIDERS: &str =
    "the images and endpoints of cloud providers: remove the unused ones, and add your hosts";

/// All systems, in the order of `landfall init --list`. docs/how-to/catalogue.md has a row for each
/// manifest.
pub const CATALOGUE: &[CatalogueManifest] = &[
    CatalogueManifest {
        name: "kubermatic",
        about: "Kubermatic (KKP) 2.31: nodes of user clusters, master and seed, helper tools, \
                applications",
        files: files![
            "kubermatic/worker-node.yaml",
            "kubermatic/seed.yaml",
            "kubermatic/tools.yaml",
            "kubermatic/applications.yaml",
            "kubermatic/site.yaml",
        ],
        edit: &[
            REGISTRY,
            "site.yaml: the proxy, the ranges that bypass it, and the names of your installation",
            PROVIDERS,
            "applications.yaml: the images of the Enterprise Edition need an account",
        ],
        platform: "kubermatic",
    },
    CatalogueManifest {
        name: "kubermatic-2019",
        about: "A worker node of Kubermatic 2.12, according to its documentation on whitelisting",
        files: files!["kubermatic/worker-node-2019.yaml", "kubermatic/site.yaml"],
        edit: &[
            REGISTRY,
            "site.yaml: the proxy, and the names of your installation",
            "missing: the items that upstream has removed since",
        ],
        platform: "kubermatic --set version=2.12",
    },
    CatalogueManifest {
        name: "kubeone",
        about: "KubeOne 1.14 with Kubernetes 1.35",
        files: files!["kubeone/kubeone.yaml", "kubeone/site.yaml"],
        edit: &[REGISTRY, PROVIDERS],
        platform: "kubeone",
    },
    CatalogueManifest {
        name: "tkg",
        about: "Tanzu Kubernetes Grid 1.4 with Kubernetes 1.21, as an example; for your version, \
                use `landfall import tkg-bom`",
        files: files!["tkg/tkg.yaml", "tkg/site.yaml"],
        edit: &[
            REGISTRY,
            "site.yaml: the proxies; TKG needs both or none",
            PROVIDERS,
        ],
        platform: "tkg",
    },
    CatalogueManifest {
        name: "giantswarm",
        about: "Charts of Giant Swarm for a cluster behind a proxy",
        files: files!["giantswarm/giantswarm.yaml", "giantswarm/site.yaml"],
        edit: &[
            REGISTRY,
            "site.yaml: the proxy, the file of its account, and your clusters",
            PROVIDERS,
        ],
        platform: "giantswarm",
    },
    CatalogueManifest {
        name: "kubeadm",
        about: "kubeadm with Kubernetes 1.35 and Flannel, and its nodes: containerd, units, packages",
        files: files![
            "kubeadm/kubeadm.yaml",
            "kubeadm/packages.yaml",
            "kubeadm/site.yaml",
        ],
        edit: &[
            REGISTRY,
            "site.yaml: the address of the server that has the files and packages",
            "packages.yaml: the distribution of your nodes, and its key, as the first lines of \
             the file explain; remove the file if the nodes have the packages",
        ],
        platform: "kubeadm",
    },
    CatalogueManifest {
        name: "k3s",
        about: "k3s 1.35",
        files: files!["k3s/k3s.yaml", "k3s/site.yaml"],
        edit: &[REGISTRY],
        platform: "k3s",
    },
    CatalogueManifest {
        name: "rke2",
        about: "RKE2 1.35.7 with Canal, Cilium and Calico",
        files: files!["rke2/rke2.yaml", "rke2/site.yaml"],
        edit: &[
            REGISTRY,
            "rke2.yaml: remove the networks that you do not use",
        ],
        platform: "rke2",
    },
    CatalogueManifest {
        name: "k0s",
        about: "k0s 1.36.3 with kube-router and Calico",
        files: files!["k0s/k0s.yaml", "k0s/site.yaml"],
        edit: &[
            REGISTRY,
            "site.yaml: the address of the server that has the k0s binary",
            "k0s.yaml: remove the network and the load balancer that you do not use",
        ],
        platform: "k0s",
    },
    CatalogueManifest {
        name: "talos",
        about: "Talos 1.13.9 with Kubernetes 1.36: images, talosctl, boot images",
        files: files!["talos/talos.yaml", "talos/site.yaml"],
        edit: &[
            REGISTRY,
            "talos.yaml: the installer, if you use extensions or the Image Factory",
        ],
        platform: "talos",
    },
    CatalogueManifest {
        name: "kubespray",
        about: "Kubespray 2.31.0 with Kubernetes 1.35: all images and files of its list",
        files: files!["kubespray/kubespray.yaml", "kubespray/site.yaml"],
        edit: &[
            REGISTRY,
            "site.yaml: the address of the server that has the files",
            "kubespray.yaml: remove the groups that you do not use",
        ],
        platform: "kubespray",
    },
    CatalogueManifest {
        name: "network",
        about: "Calico 3.32, Cilium 1.19, Flannel 0.28, and a bridge without images",
        files: files![
            "network/bridge.yaml",
            "network/calico.yaml",
            "network/cilium.yaml",
            "network/flannel.yaml",
            "network/site.yaml",
        ],
        edit: &[
            REGISTRY,
            "remove the manifests of the networks that you do not use",
        ],
        platform: "containerd",
    },
    CatalogueManifest {
        name: "monitoring",
        about: "kube-prometheus-stack 88.5: Prometheus, Alertmanager, Grafana, exporters",
        files: files![
            "monitoring/kube-prometheus-stack.yaml",
            "monitoring/site.yaml"
        ],
        edit: &[REGISTRY],
        platform: "containerd",
    },
    CatalogueManifest {
        name: "scanners",
        about: "Databases of vulnerability scanners: Trivy (vulnerabilities, Java, checks) and \
                Grype, for a nightly refresh",
        files: files![
            "scanners/trivy.yaml",
            "scanners/grype.yaml",
            "scanners/site.yaml"
        ],
        edit: &[
            REGISTRY,
            "remove the manifest of the scanner that you do not use",
            "trivy.yaml: the tag of trivy-checks, if your Trivy expects another",
        ],
        platform: "trivy",
    },
    CatalogueManifest {
        name: "packages-ubuntu",
        about: "apt packages for nodes with Ubuntu 24.04: workers of KKP, machines of KubeOne, \
                kubeadm and Kubespray",
        files: files!["packages/ubuntu.yaml", "packages/site.yaml"],
        edit: &[
            PACKAGES,
            "keys: add the keys of the repositories, as the first lines of ubuntu.yaml explain",
        ],
        platform: "apt",
    },
    CatalogueManifest {
        name: "packages-bionic",
        about: "apt packages for Ubuntu 18.04 worker nodes of Kubermatic, as of 2019",
        files: files!["packages/bionic.yaml", "packages/site.yaml"],
        edit: &[
            PACKAGES,
            "keys: add the keys of the repositories, as the first lines of bionic.yaml explain",
        ],
        platform: "apt",
    },
    CatalogueManifest {
        name: "packages-centos7",
        about: "yum packages for CentOS 7 worker nodes of Kubermatic, as of 2019",
        files: files!["packages/centos7.yaml", "packages/site.yaml"],
        edit: &[
            PACKAGES,
            "keys: add the key of the repositories, as the first lines of centos7.yaml explain",
        ],
        platform: "yum",
    },
    CatalogueManifest {
        name: "packages-rocky",
        about: "dnf packages for nodes with Rocky Linux 9: workers of KKP, machines of KubeOne, \
                kubeadm and Kubespray",
        files: files!["packages/rocky.yaml", "packages/site.yaml"],
        edit: &[
            PACKAGES,
            "keys: add the keys of the repositories, as the first lines of rocky.yaml explain",
        ],
        platform: "yum",
    },
];

impl CatalogueManifest {
    /// The system with this name.
    pub fn of(name: &str) -> Option<&'static CatalogueManifest> {
        CATALOGUE.iter().find(|shipped| shipped.name == name)
    }

    /// The name and content of each file, as written to a folder that contains only these files.
    pub fn standalone_files(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.files.iter().map(|(path, text)| {
            let (folder, name) = path.split_once('/').unwrap_or(("", path));
            // comments in the files contain commands with paths from the root of landfall's
            // repository
            (name, text.replace(&format!("manifests/{folder}/"), ""))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_catalogue_has_all_files_in_subfolders_of_manifests_except_three() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("manifests");
        let listed: BTreeSet<String> = CATALOGUE
            .iter()
            .flat_map(|shipped| shipped.files)
            .map(|(path, _)| (*path).to_owned())
            .collect();
        let mut there = BTreeSet::new();
        for folder in std::fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            for file in std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().path())
            {
                there.insert(file.strip_prefix(&root).unwrap().display().to_string());
            }
        }
        // not in the catalogue: an example of a site, and files for the how-to guides of Kubermatic
        let others = [
            "capi/site.yaml",
            "osm/worker-binaries.yaml",
            "ports/kubermatic.yaml",
        ];
        let lacking: Vec<&String> = there.difference(&listed).collect();
        assert_eq!(lacking, others);
        assert!(listed.is_subset(&there));
    }
}
