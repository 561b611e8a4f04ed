//! The `landfall render` commands of docs/how-to/platforms/, run unchanged with a site that every
//! platform supports.

use super::place;
use std::path::Path;

const SITE: &str = "registry: {address: \"mirror.corp.example:5000\"}
consumers: [containerd, kubeadm, kubeone, kubermatic]
proxy: {http: \"http://10.0.0.1:3128\", https: \"http://10.0.0.1:3128\"}
";

#[test]
fn every_render_command_of_the_pages_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/platforms");
    let mut ran = Vec::new();
    for page in std::fs::read_dir(folder).unwrap() {
        let page = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let blocks = page
            .split("```sh\n")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once("```")?.0));
        for line in blocks
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix("landfall render "))
        {
            let place = place(
                SITE,
                &[
                    "docker.io/library/nginx:1.27",
                    "ghcr.io/aquasecurity/trivy-db:2",
                    "registry.k8s.io/pause:3.10",
                ],
            );
            place.write(
                "osp-ubuntu.yaml",
                include_str!("../../data/osp-example.yaml"),
            );
            let words: Vec<&str> = line.split_whitespace().collect();
            place.ok(&[&["render"], &words[..]].concat());
            ran.push(words[0].to_owned());
        }
    }
    // every platform except helm-values has a command on a page
    let place = place("", &[]);
    let listed = place.json(0, &["render", "--list"])["platforms"].clone();
    for platform in listed.as_object().unwrap().keys() {
        assert!(
            ran.contains(platform) || platform == "helm-values",
            "{platform} has no command in docs/how-to/platforms"
        );
    }
}
