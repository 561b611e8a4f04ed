// Copies an image from a registry to a folder if the policy.json allows it, as podman, skopeo and
// CRI-O do: with their library.
//
//	copy-by-policy POLICY.JSON REGISTRIES.D HOST/REPOSITORY:TAG FOLDER
package main

import (
	"context"
	"fmt"
	"os"

	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

func run(policyFile, registries, image, folder string) error {
	policy, err := signature.NewPolicyFromFile(policyFile)
	if err != nil {
		return err
	}
	allowed, err := signature.NewPolicyContext(policy)
	if err != nil {
		return err
	}
	defer allowed.Destroy()
	from, err := docker.ParseReference("//" + image)
	if err != nil {
		return err
	}
	to, err := directory.NewReference(folder)
	if err != nil {
		return err
	}
	system := &types.SystemContext{
		RegistriesDirPath:           registries,
		DockerInsecureSkipTLSVerify: types.OptionalBoolTrue,
	}
	options := &copy.Options{SourceCtx: system, DestinationCtx: system}
	_, err = copy.Image(context.Background(), allowed, to, from, options)
	return err
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
