#!/bin/sh
IMAGE="${IMAGE:-ghcr.io/dexidp/dex:v2.42.0}"
skopeo copy docker://quay.io/kubermatic/api:v2.26.2 docker://elsewhere.example/api:v1
docker pull quay.io/prometheus/node-exporter:$VERSION
for i in ghcr.io/dexidp/dex:v2.42.0 "k8s.gcr.io/pause:3.1"; do ctr i pull $i; done
echo "quay.io/kubermatic/api:v2.26.2,ghcr.io/dexidp/dex:v2.42.0;ok"
docker run "quay.io/kubermatic/api":v9
