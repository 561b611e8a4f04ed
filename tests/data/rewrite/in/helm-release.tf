resource "helm_release" "dex" {
  name       = "dex"
  repository = "oci://ghcr.io/dexidp" # the chart is another argument
  chart      = "dex"
  version    = "v2.42.0"
}

resource "helm_release" "newer" {
  chart   = "oci://ghcr.io/dexidp/dex"
  version = "v2.43.0"
}
