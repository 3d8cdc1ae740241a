package redisserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// lowestPort keeps clear of the numbers that well-known services use.
const lowestPort = 20000

// freePort returns a port of 127.0.0.1 that nobody listens on now. Another process can be
// quicker, so the caller retries.
//
// As in internal/pgcluster it lies below those that the system hands out by itself:
// from there, an outgoing connection could take the port while the server is down, and a
// client that keeps trying it could end up connected to itself.
func freePort() (int, error) {
	if end := ephemeralStart(); end > lowestPort+1000 {
		for range 50 {
			if port, err := tryPort(lowestPort + rand.IntN(end-lowestPort)); err == nil {
				return port, nil
			}
		}
	}
	return tryPort(0)
}

func tryPort(port int) (int, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, fmt.Errorf("redisserver: free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ephemeralStart is the first port that the system gives to outgoing connections, or 0
// when it is not known.
func ephemeralStart() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0
	}
	start, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return start
}
