// SPDX-License-Identifier: Apache-2.0

// grpcpeer is the other side of our gRPC, made of grpc-go and the kubelet's own stubs.
//
//	grpcpeer kubelet SOCKET   calls a device plugin as the kubelet does, prints what came
//	grpcpeer serve SOCKET     a PodResources server with odd answers, until standard input ends
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const allocations = 2000

var passed, failed int

func check(name string, good bool, detail ...any) {
	if good {
		passed++
		return
	}
	failed++
	fmt.Println("FAIL", name, fmt.Sprint(detail...))
}

func dial(socket, authority string) *grpc.ClientConn {
	connection, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(authority),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", address)
		}))
	if err != nil {
		panic(err)
	}
	return connection
}

func checkLists(client plugin.DevicePluginClient) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := client.ListAndWatch(ctx, &plugin.Empty{})
	check("stream opens", err == nil, err)
	// The plugin sends one device, then as many as fit 4 MiB, then none.
	for i, want := range []int{1, 70000, 0} {
		list, err := stream.Recv()
		check(fmt.Sprint("list ", i), err == nil && len(list.Devices) == want, err, len(list.GetDevices()))
		if err == nil && want > 1 {
			check("last of the long list", list.Devices[want-1].ID == fmt.Sprintf("GPU-%040d", want-1))
		}
	}
	cancel()
	_, err = stream.Recv()
	check("canceled", status.Code(err) == codes.Canceled, err)
}

func checkCodes(client plugin.DevicePluginClient, connection *grpc.ClientConn) {
	ctx := context.Background()
	err := connection.Invoke(ctx, "/v1beta1.DevicePlugin/Nothing", &plugin.Empty{}, &plugin.Empty{})
	check("unknown method", status.Code(err) == codes.Unimplemented, err)
	_, err = client.PreStartContainer(ctx, &plugin.PreStartContainerRequest{DevicesIds: []string{"bad"}})
	check("code", status.Code(err) == codes.NotFound, err)
	check("message", status.Convert(err).Message() == "no device \"bad\": 100%\nändere es", err)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = client.PreStartContainer(short, &plugin.PreStartContainerRequest{DevicesIds: []string{"hang"}})
	check("deadline", status.Code(err) == codes.DeadlineExceeded, err)
	_, err = client.Allocate(ctx, &plugin.AllocateRequest{}, grpc.UseCompressor(gzip.Name))
	check("compressed", status.Code(err) == codes.Unimplemented, err)
	long := &plugin.PreStartContainerRequest{DevicesIds: []string{strings.Repeat("x", 5<<20)}}
	_, err = client.PreStartContainer(ctx, long)
	check("too large", status.Code(err) == codes.ResourceExhausted, err)
}

func checkAllocations(client plugin.DevicePluginClient) {
	start := time.Now()
	for i := range allocations {
		id := fmt.Sprint("GPU-", i)
		answer, err := client.Allocate(context.Background(), &plugin.AllocateRequest{
			ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{id, "second"}}}})
		good := err == nil && len(answer.ContainerResponses) == 1 &&
			answer.ContainerResponses[0].CdiDevices[0].Name == "nvidia.com/gpu="+id
		check(fmt.Sprint("allocate ", i), good, err)
	}
	fmt.Printf("%d us an Allocate\n", time.Since(start).Microseconds()/allocations)
	done := make(chan error)
	for range 50 {
		go func() {
			_, err := client.Allocate(context.Background(), &plugin.AllocateRequest{
				ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"x"}}}})
			done <- err
		}()
	}
	for range 50 {
		err := <-done
		check("at once", err == nil, err)
	}
}

func actAsKubelet(socket string) {
	// The kubelet of today, and one from before 2022 that sends the socket's path.
	for _, authority := range []string{"localhost", socket, url.PathEscape(socket)} {
		connection := dial(socket, authority)
		client := plugin.NewDevicePluginClient(connection)
		options, err := client.GetDevicePluginOptions(context.Background(), &plugin.Empty{})
		check("options as "+authority, err == nil && options.PreStartRequired, err)
		_ = connection.Close()
	}
	connection := dial(socket, "localhost")
	client := plugin.NewDevicePluginClient(connection)
	checkLists(client)
	checkCodes(client, connection)
	checkAllocations(client)
	_ = connection.Close()
}

type podResources struct {
	resources.UnimplementedPodResourcesListerServer
}

// 20,000 pods are some 3 MiB.
func (podResources) List(context.Context, *resources.ListPodResourcesRequest) (*resources.ListPodResourcesResponse, error) {
	answer := &resources.ListPodResourcesResponse{}
	for i := range 20000 {
		answer.PodResources = append(answer.PodResources, &resources.PodResources{
			Name: fmt.Sprintf("pod-%06d", i), Namespace: "team-a",
			Containers: []*resources.ContainerResources{{Name: "c", Devices: []*resources.ContainerDevices{
				{ResourceName: "nvidia.com/gpu", DeviceIds: []string{fmt.Sprintf("GPU-%036d", i)}}}}}})
	}
	return answer, nil
}

func (podResources) Get(ctx context.Context, request *resources.GetPodResourcesRequest) (*resources.GetPodResourcesResponse, error) {
	switch request.PodName {
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "busy":
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit: 50% ü")
	}
	return &resources.GetPodResourcesResponse{PodResources: &resources.PodResources{Name: request.PodName}}, nil
}

func serve(socket string) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	resources.RegisterPodResourcesListerServer(server, podResources{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println("ready")
	if err := server.Serve(listener); err != nil {
		panic(err)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: grpcpeer kubelet|serve SOCKET")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "kubelet":
		actAsKubelet(os.Args[2])
		fmt.Printf("%d passed, %d failed\n", passed, failed)
		if failed > 0 {
			os.Exit(1)
		}
	case "serve":
		serve(os.Args[2])
	}
}
