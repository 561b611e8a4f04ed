// Reads git repositories and artifacts with the clients of Flux and Argo CD.
//
//	gitops-clients flux URL FOLDER branch|tag|semver|commit|ref VALUE [shallow]
//	gitops-clients unchanged URL FOLDER BRANCH REVISION
//	gitops-clients argo URL
//	gitops-clients artifact REFERENCE FOLDER
//
// flux clones as Flux's source-controller does and prints the revision. unchanged prints it if the
// branch is still at REVISION, without a clone. argo lists the refs as Argo CD's repo-server does.
// artifact downloads an artifact as Flux does, and prints its digest and revision.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/git"
	"github.com/fluxcd/pkg/git/gogit"
	"github.com/fluxcd/pkg/git/repository"
	"github.com/fluxcd/pkg/oci"
	gogitlib "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/google/go-containerregistry/pkg/crane"
)

func clone(url, folder string, options repository.CloneConfig) (*git.Commit, error) {
	client, err := gogit.NewClient(folder, &git.AuthOptions{Transport: git.HTTP}, gogit.WithDiskStorage())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Clone(context.Background(), url, options)
}

func flux(url, folder, kind, value string, shallow bool) error {
	options := repository.CloneConfig{ShallowClone: shallow}
	switch kind {
	case "branch":
		options.Branch = value
	case "tag":
		options.Tag = value
	case "semver":
		options.SemVer = value
	case "commit":
		options.Commit = value
	case "ref":
		options.RefName = value
	default:
		return errors.New("unknown kind " + kind)
	}
	commit, err := clone(url, folder, options)
	if err != nil {
		return err
	}
	fmt.Println(commit.String())
	return nil
}

func unchanged(url, folder, branch, revision string) error {
	options := repository.CloneConfig{LastObservedCommit: revision}
	options.Branch = branch
	commit, err := clone(url, folder, options)
	if err != nil {
		return err
	}
	if git.IsConcreteCommit(*commit) {
		return errors.New("the branch was cloned")
	}
	fmt.Println(commit.String())
	return nil
}

func argo(url string) error {
	repository, err := gogitlib.Init(memory.NewStorage(), nil)
	if err != nil {
		return err
	}
	remote, err := repository.CreateRemote(&config.RemoteConfig{Name: gogitlib.DefaultRemoteName, URLs: []string{url}})
	if err != nil {
		return err
	}
	refs, err := remote.List(&gogitlib.ListOptions{})
	if err != nil {
		return err
	}
	for _, ref := range refs {
		fmt.Println(ref)
	}
	return nil
}

func artifact(reference, folder string) error {
	client := oci.NewClient([]crane.Option{crane.Insecure})
	read, err := client.Pull(context.Background(), reference, folder)
	if err != nil {
		return err
	}
	fmt.Println(read.Digest, read.Revision)
	return nil
}

func run(args []string) error {
	switch {
	case len(args) >= 5 && args[0] == "flux":
		return flux(args[1], args[2], args[3], args[4], len(args) > 5)
	case len(args) == 5 && args[0] == "unchanged":
		return unchanged(args[1], args[2], args[3], args[4])
	case len(args) == 2 && args[0] == "argo":
		return argo(args[1])
	case len(args) == 3 && args[0] == "artifact":
		return artifact(args[1], args[2])
	}
	return errors.New("unknown arguments")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
