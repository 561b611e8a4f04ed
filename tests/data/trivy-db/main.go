// Makes a database of Trivy with one vulnerability of one package.
//
//	trivy-db FILE RELEASE PACKAGE FIXED ID
package main

import (
	"encoding/json"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// put stores value as JSON under the last of the names; the others are nested buckets.
func put(transaction *bolt.Tx, value any, names ...string) error {
	bucket, err := transaction.CreateBucketIfNotExists([]byte(names[0]))
	if err != nil {
		return err
	}
	for _, name := range names[1 : len(names)-1] {
		if bucket, err = bucket.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return bucket.Put([]byte(names[len(names)-1]), text)
}

func create(file, release, name, fixed, id string) error {
	database, err := bolt.Open(file, 0o644, nil)
	if err != nil {
		return err
	}
	defer database.Close()
	return database.Update(func(transaction *bolt.Tx) error {
		advisory := map[string]string{"FixedVersion": fixed}
		if err := put(transaction, advisory, release, name, id); err != nil {
			return err
		}
		source := map[string]string{"ID": "alpine", "Name": "Alpine Secdb", "URL": "https://secdb.test"}
		if err := put(transaction, source, "data-source", release); err != nil {
			return err
		}
		detail := map[string]string{"Title": "a fault", "Severity": "HIGH"}
		return put(transaction, detail, "vulnerability", id)
	})
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: trivy-db FILE RELEASE PACKAGE FIXED ID")
		os.Exit(2)
	}
	if err := create(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
