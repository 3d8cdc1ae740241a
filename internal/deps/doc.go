// Package deps holds no code, only tests: that the root module needs nothing
// but the standard library, that the layers keep to themselves, and that no
// file speaks of the machine it was written on.
//
// The linter's configuration has the same fences. They are here as well so
// that go test alone keeps them.
package deps
