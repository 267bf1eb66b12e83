// SPDX-License-Identifier: Apache-2.0

// Arrival orders and ranks of nodes for openb's pod lists, as the published packing experiments
// draw them: the generator is math/rand, so the tool is in Go.
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

const (
	nodeList     = "openb_node_list_gpu_node.csv"
	podLists     = "openb_pod_list_*.csv"
	loadPermille = 1300
	appendedMax  = 10_000_000
)

type pod struct {
	name         string
	count, milli int64
}

func (p pod) total() int64 { return p.count * p.milli }

// table reads a list with a first line, and hands each further row over.
func table(path string, row func(fields []string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	for first := true; ; first = false {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !first {
			err = row(fields)
		}
		if err != nil {
			line, _ := reader.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
}

func number(fields []string, column int) (int64, error) {
	if column >= len(fields) {
		return 0, fmt.Errorf("column %d is missing", column+1)
	}
	value, err := strconv.ParseInt(fields[column], 10, 32)
	if err == nil && value < 0 {
		err = fmt.Errorf("column %d is negative", column+1)
	}
	return value, err
}

func readPods(path string) ([]pod, error) {
	var pods []pod
	err := table(path, func(fields []string) error {
		count, err := number(fields, 3)
		if err != nil {
			return err
		}
		milli, err := number(fields, 4)
		pods = append(pods, pod{fields[0], count, milli})
		return err
	})
	sort.Slice(pods, func(i, k int) bool { return pods[i].name < pods[k].name })
	return pods, err
}

func readNodes(path string) (nodes int, milli int64, err error) {
	err = table(path, func(fields []string) error {
		gpus, err := number(fields, 3)
		nodes++
		milli += gpus * 1000
		return err
	})
	return nodes, milli, err
}

// draw is the protocol: one number is thrown away, the pods are shuffled, then random pods are
// added or dropped until they ask for 1.3 times the GPUs, then the nodes get their places.
func draw(listed []pod, nodes int, target, seed int64) ([]pod, []int, error) {
	random := rand.New(rand.NewSource(seed))
	random.Int()
	pods := append([]pod(nil), listed...)
	random.Shuffle(len(pods), func(i, k int) { pods[i], pods[k] = pods[k], pods[i] })
	var milli int64
	for _, p := range pods {
		milli += p.total()
	}
	isFull := milli >= target
	for milli > target {
		i := random.Intn(len(pods))
		milli -= pods[i].total()
		pods = append(pods[:i], pods[i+1:]...)
	}
	for !isFull { // also when the target is met: pods without GPUs may follow
		next := listed[random.Intn(len(listed))]
		if milli+next.milli > target { // of one GPU, however many it wants
			break
		}
		milli += next.total()
		if pods = append(pods, next); len(pods) > appendedMax {
			return nil, nil, errors.New("the pods ask for too few GPUs to fill the nodes")
		}
	}
	return pods, random.Perm(nodes), nil
}

func write[T any](path string, values []T, text func(T) string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for _, value := range values {
		fmt.Fprintln(out, text(value))
	}
	return errors.Join(out.Flush(), file.Close())
}

func run(lists, folder string, first, last int64) error {
	nodes, milli, err := readNodes(filepath.Join(lists, nodeList))
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(lists, podLists))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s holds no %s", lists, podLists)
	}
	if err = errors.Join(err, os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	for _, path := range paths {
		pods, err := readPods(path)
		if err != nil {
			return err
		}
		if len(pods) == 0 {
			return fmt.Errorf("%s names no pods", path)
		}
		for seed := first; seed <= last; seed++ {
			order, ranks, err := draw(pods, nodes, milli/1000*loadPermille, seed)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			base := strings.TrimSuffix(filepath.Base(path), ".csv")
			base = filepath.Join(folder, fmt.Sprintf("%s.%d", base, seed))
			err = errors.Join(
				write(base+".txt", order, func(p pod) string { return p.name }),
				write(base+".noderank.txt", ranks, strconv.Itoa))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func main() {
	if len(os.Args) == 5 {
		first, wrong := strconv.ParseInt(os.Args[3], 10, 63)
		last, alsoWrong := strconv.ParseInt(os.Args[4], 10, 63)
		if wrong == nil && alsoWrong == nil && first >= 0 && first <= last {
			if err := run(os.Args[1], os.Args[2], first, last); err != nil {
				fmt.Fprintln(os.Stderr, "orders:", err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: tools/orders LISTDIR OUTDIR FIRST LAST")
	os.Exit(2)
}
