// Package storetest is what every tidegate.Store has to pass: [Run] runs it on one.
//
// It looks at a store from outside, with tokens of its own. What a store must notice of
// its own history is not part of it: each kind of server loses things in its own way.
package storetest
