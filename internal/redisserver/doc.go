// Package redisserver starts, stops and breaks real servers of Redis or Valkey, in
// temporary folders. It serves tests; it needs the server's program on this machine
// and nothing but the standard library.
//
// Servers listen on a free port of 127.0.0.1 only. One ends with the test that started
// it, and on Linux with the process, however that ends. It is made for Unix.
package redisserver
