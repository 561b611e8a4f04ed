// Pulls images as RKE2 does before it has a container runtime: by a registries.yaml, with the code of its makers.
//
//	registries-yaml REGISTRIES.YAML REFERENCE...
//
// Prints each reference with the digest of the manifest for linux/amd64.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rancher/wharfie/pkg/registries"
)

func pull(file, reference string) (v1.Hash, error) {
	registry, err := registries.GetPrivateRegistries(file)
	if err != nil {
		return v1.Hash{}, err
	}
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return v1.Hash{}, err
	}
	image, err := registry.Image(parsed, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		return v1.Hash{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return v1.Hash{}, err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return v1.Hash{}, err
		}
		// the reader compares the digest
		if _, err := io.Copy(io.Discard, content); err != nil {
			return v1.Hash{}, err
		}
		content.Close()
	}
	return image.Digest()
}

func main() {
	for _, reference := range os.Args[2:] {
		digest, err := pull(os.Args[1], reference)
		if err != nil {
			fmt.Fprintln(os.Stderr, reference, err)
			os.Exit(1)
		}
		fmt.Println(reference, digest)
	}
}
