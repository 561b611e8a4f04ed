// Generates a machine configuration and applies patches to it, as `talosctl gen config --config-patch` does, with the
// code of Talos.
//
//	talos-config VERSION PATCH...
//
// VERSION is the release for which the configuration is generated, such as v1.13. Prints what Talos reads from the
// patched configuration as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// metal is the mode of a machine that Talos is installed on.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

type endpoint struct {
	URL          string `json:"url"`
	OverridePath bool   `json:"overridePath"`
}

type mirror struct {
	Endpoints    []endpoint `json:"endpoints"`
	SkipFallback bool       `json:"skipFallback"`
}

type trust struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

func read(version string, files []string) (map[string]any, error) {
	contract, err := config.ParseContractFromVersion(version)
	if err != nil {
		return nil, err
	}
	input, err := generate.NewInput("blue", "https://10.0.0.9:6443", constants.DefaultKubernetesVersion,
		generate.WithVersionContract(contract), generate.WithInstallDisk("/dev/sda"))
	if err != nil {
		return nil, err
	}
	generated, err := input.Config(machine.TypeControlPlane)
	if err != nil {
		return nil, err
	}
	patches, err := configpatcher.LoadPatches(files)
	if err != nil {
		return nil, err
	}
	patched, err := configpatcher.Apply(configpatcher.WithConfig(generated), patches)
	if err != nil {
		return nil, err
	}
	// through the text, because the parser refuses unknown keys
	text, err := patched.Bytes()
	if err != nil {
		return nil, err
	}
	whole, err := configpatcher.WithBytes(text).Config()
	if err != nil {
		return nil, err
	}
	if _, err := whole.Validate(metal{}); err != nil {
		return nil, err
	}

	mirrors := map[string]mirror{}
	for host, read := range whole.RegistryMirrorConfigs() {
		one := mirror{SkipFallback: read.SkipFallback()}
		for _, read := range read.Endpoints() {
			one.Endpoints = append(one.Endpoints, endpoint{read.Endpoint(), read.OverridePath()})
		}
		mirrors[host] = one
	}
	accounts := map[string][]string{}
	for host, read := range whole.RegistryAuthConfigs() {
		accounts[host] = []string{read.Username(), read.Password()}
	}
	trusts := map[string]trust{}
	for host, read := range whole.RegistryTLSConfigs() {
		one := trust{CA: string(read.CA())}
		if client := read.ClientIdentity(); client != nil {
			one.Cert, one.Key = string(client.Crt), string(client.Key)
		}
		trusts[host] = one
	}
	// the section `machine` first, as in machined
	environment := map[string]string{}
	maps.Copy(environment, whole.Machine().Env())
	maps.Copy(environment, whole.Environment().Variables())
	return map[string]any{
		"mirrors":     mirrors,
		"accounts":    accounts,
		"trust":       trusts,
		"environment": environment,
		"roots":       whole.TrustedRoots().ExtraTrustedRootCertificates(),
		"installer":   whole.Machine().Install().Image(),
	}, nil
}

func main() {
	read, err := read(os.Args[1], os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(read)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
